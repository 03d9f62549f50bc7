#include "backends/cuda/runtime/graph.h"

#include "backends/cuda/cuda.h"
#include "backends/cuda/runtime/faults.h"
#include "engine/core/error.h"

namespace reel::cuda {

std::unique_ptr<CapturedGraph> Cuda::capture() {
  if (options_.sync) return nullptr;  // sync waits for each kernel, which a capture cannot
  return std::make_unique<Graph>(*this);
}

void Cuda::not_captured(const char* why) const {
  if (capturing_) throw NotCapturable(why);
}

Graph::Graph(Cuda& device) : device_(device), pool_(make_pool(device.allocator_)) {
  REEL_ASSERT(!device.capturing_);
  // Relaxed: the capture allows cudaMalloc, and calls from other threads.
  check(cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  device.capturing_ = this;
  writing_ = true;
}

Graph::~Graph() {
  if (writing_) {  // an abandoned capture: discard it
    end();
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(device_.stream_, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  if (graph_) cudaGraphExecDestroy(graph_);  // a run in progress goes on to its end
  for (Storage* storage : kept_) device_.release(storage);
  for (std::byte* block : host_memory_) cudaFreeHost(block);
}

void Graph::end() {
  writing_ = false;
  device_.capturing_ = nullptr;
}

void Graph::stop() {
  REEL_ASSERT(writing_);
  end();
  const cudaStream_t stream = device_.stream();
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
  const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> graph(captured, cudaGraphDestroy);
  check(cudaGraphGetNodes(captured, nullptr, &size_), "cudaGraphGetNodes");
  device_.retried([&] { check(cudaGraphInstantiateWithFlags(&graph_, captured, 0), "cudaGraphInstantiate"); });
  device_.retried([&] { check(cudaGraphUpload(graph_, stream), "cudaGraphUpload"); });
  for (Constant& c : constants_) {
    device_.write(c.room->data, c.bytes.data(), c.bytes.size());
    c.bytes = {};
  }
}

void Graph::replay() {
  REEL_ASSERT(graph_);
  const cudaStream_t stream = device_.stream();
  device_.retried([&] { check(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch"); });
  device_.faults_->launched();
}

void Graph::count_kernel() {
  constexpr std::size_t most = 200'000;
  if (++kernels_ > most) throw NotCapturable("it has more than 200,000 kernels");
}

std::byte* Graph::host_memory(std::size_t bytes) {
  void* block = nullptr;
  check(cudaMallocHost(&block, bytes), "cudaMallocHost");
  return host_memory_.emplace_back(static_cast<std::byte*>(block));
}

void Graph::call_host(std::function<void()> f) {
  const auto& call = host_calls_.emplace_back(std::make_unique<std::function<void()>>(std::move(f)));
  check(cudaLaunchHostFunc(
            device_.stream(), [](void* f) { (*static_cast<std::function<void()>*>(f))(); }, call.get()),
        "cudaLaunchHostFunc");
}

const void* Graph::constant(const void* host, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(host);
  constants_.push_back({StoragePtr(device_.allocate_from(nullptr, bytes)), {first, first + bytes}});
  return constants_.back().room->data;
}

}  // namespace reel::cuda
