// The CUDA runtime: memory, streams, events, graphs.
#include "tests/emulator/device.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/memory.h"

using cuda_emulator::Ready;
using cuda_emulator::Work;

struct Item {
  Work work;
  Ready ready;  // empty: always
};
struct CUgraph_st {
  std::vector<Item> work;
};
struct CUgraphExec_st : CUgraph_st {};
struct CUstream_st {
  std::deque<Item> waiting;
  std::size_t submitted = 0, done = 0;
  std::unique_ptr<CUgraph_st> graph;  // while it is captured
  int gpu = 0;
};
struct CUevent_st {
  cudaStream_t stream = nullptr;
  std::size_t at = 0;  // how much was submitted before it
};

namespace cuda_emulator {

namespace {

struct Device {
  Memory memory;
  std::set<CUstream_st*> streams;
  std::map<const std::byte*, std::size_t> pinned;  // of the host
};
/// It lives to the program's end: others use it in their destructors.
Device& device() {
  static auto* const one = new Device;
  return *one;
}

bool in_host_function = false;
thread_local int current = 0;  // GPU of this thread
thread_local cudaError_t last_error = cudaSuccess;
std::string to_fail;  // name of the call that fails next
int failures = 0;     // that are left

/// The result of a call that fails.
cudaError_t failed(cudaError_t code) { return last_error = code; }
/// Is this the call that is to fail?
bool fails(const char* call) {
  if (failures == 0 || to_fail != call) return false;
  --failures;
  return true;
}

/// Runs the next work, if it is ready.
bool run_next(CUstream_st& stream) {
  if (const Ready& ready = stream.waiting.front().ready; ready && !ready()) return false;
  const Work work = std::move(stream.waiting.front().work);
  stream.waiting.pop_front();
  ++stream.done;
  work();
  return true;
}
void run_until(CUstream_st& stream, std::size_t count) {
  if (stream.done >= count) return;
  const Memory::Access access(device().memory);
  while (stream.done < count)
    if (!run_next(stream)) usleep(50);
}
void run_all() {
  for (CUstream_st* stream : device().streams) run_until(*stream, stream->submitted);
}

cudaError_t wait_for(CUstream_st& stream, std::size_t count) {
  if (stream.graph) return failed(cudaErrorStreamCaptureUnsupported);
  run_until(stream, count);
  return cudaSuccess;
}

bool is_pinned(const void* p, std::size_t bytes) {
  return in_one_block(device().pinned, static_cast<const std::byte*>(p), bytes);
}

}  // namespace

void submit(cudaStream_t stream, Work work, Ready ready) {
  if (in_host_function) misused("submit", "a function of the host calls CUDA");
  if (!device().streams.contains(stream)) misused("submit", "the stream is not there (any more)");
  if (stream->graph) {
    stream->graph->work.push_back({std::move(work), std::move(ready)});
    return;
  }
  stream->waiting.push_back({std::move(work), std::move(ready)});
  ++stream->submitted;
}

void check_current(cudaStream_t stream) {
  if (stream->gpu != current) misused("launch", "the stream is another GPU's");
}

int devices() {
  const char* const wanted = std::getenv("REEL_EMULATOR_DEVICES");
  return wanted ? std::atoi(wanted) : 1;
}
int processors() {
  const char* const wanted = std::getenv("REEL_EMULATOR_PROCESSORS");
  return wanted ? std::atoi(wanted) : 8;
}

bool recorded(cudaStream_t stream) { return stream->graph != nullptr; }

void run_now(const Work& work) {
  run_all();
  const Memory::Access access(device().memory);
  work();
}

std::size_t waiting(cudaStream_t stream) { return stream->waiting.size(); }

void let_fail(const char* call, int times) { to_fail = call, failures = times; }

void misused(const char* call, const char* rule) {
  std::fprintf(stderr, "GPU in software: %s: %s\n", call, rule);
  std::abort();
}

}  // namespace cuda_emulator

using namespace cuda_emulator;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return failed(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  switch (what) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = processors();
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = shared_bytes;
      break;
    default:
      return failed(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
/// Each process has its GPU, unless REEL_EMULATOR_GPU names one for all.
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (device != 0) return failed(cudaErrorInvalidDevice);
  const char* const one = std::getenv("REEL_EMULATOR_GPU");
  std::snprintf(text, static_cast<std::size_t>(bytes), "%s", one ? one : std::to_string(getpid()).c_str());
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }  // bad launches abort
const char* cudaGetErrorName(cudaError_t code) { return code == cudaSuccess ? "cudaSuccess" : "an error"; }
const char* cudaGetErrorString(cudaError_t code) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "code %d of the GPU in software", static_cast<int>(code));
  return text;
}

cudaError_t cudaMalloc(void** block, std::size_t bytes) {
  *block = device().memory.take(bytes);
  return *block ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* block) {
  if (!block) return cudaSuccess;
  run_all();  // as it waits for the device
  return device().memory.give_back(block) ? cudaSuccess : failed(cudaErrorInvalidValue);
}
cudaError_t cudaMallocHost(void** block, std::size_t bytes) {
  *block = std::malloc(bytes);
  device().pinned[static_cast<std::byte*>(*block)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) {
  run_all();
  if (device().pinned.erase(static_cast<std::byte*>(block)) == 0) return failed(cudaErrorInvalidValue);
  std::free(block);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = device().memory.free_bytes(), *total = Memory::bytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Memory& memory = device().memory;
  const bool from_host = kind == cudaMemcpyHostToDevice, to_host = kind == cudaMemcpyDeviceToHost;
  if ((!from_host && !memory.holds(from, bytes)) || (!to_host && !memory.holds(to, bytes)))
    return failed(cudaErrorInvalidValue);
  if ((from_host && memory.inside(from)) || (to_host && memory.inside(to))) return failed(cudaErrorInvalidValue);
  // Only pinned memory of the host can be read and written later.
  if ((from_host && !is_pinned(from, bytes)) || (to_host && !is_pinned(to, bytes))) {
    if (stream->graph) return failed(cudaErrorStreamCaptureUnsupported);
    run_now([=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
  }
  submit(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  if (!device().memory.holds(to, bytes)) return failed(cudaErrorInvalidValue);
  submit(stream, [=] { std::memset(to, byte, bytes); });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void* argument) {
  submit(stream, [=] {
    const Memory::NoAccess none(device().memory);
    in_host_function = true;
    f(argument);
    in_host_function = false;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  (*stream)->gpu = current;
  device().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  run_until(*stream, stream->submitted);
  device().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream->graph) return failed(cudaErrorStreamCaptureUnsupported);
  const Memory::Access access(device().memory);
  while (!stream->waiting.empty())
    if (!run_next(*stream)) return failed(cudaErrorNotReady);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait_for(*stream, stream->submitted); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->graph)
    return failed(cudaErrorStreamCaptureUnsupported);  // a GPU would take it, and fail when it is waited for
  event->stream = stream, event->at = stream->submitted;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->stream ? wait_for(*event->stream, event->at) : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->graph) return failed(cudaErrorIllegalState);
  stream->graph = std::make_unique<CUgraph_st>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!stream->graph) return failed(cudaErrorIllegalState);
  *graph = stream->graph.release();
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes) return failed(cudaErrorNotSupported);
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (fails("cudaGraphInstantiate")) return failed(cudaErrorMemoryAllocation);
  *exec = new CUgraphExec_st{*graph};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return fails("cudaGraphUpload") ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (stream->graph) return failed(cudaErrorStreamCaptureUnsupported);
  if (fails("cudaGraphLaunch")) return failed(cudaErrorMemoryAllocation);
  for (const Item& item : exec->work) submit(stream, item.work, item.ready);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
