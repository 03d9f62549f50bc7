// What the parts of a loop's kernel cost on this GPU by themselves: barriers between blocks, by fences, by release and
// acquire, and by clusters; fetching other blocks' results; multiplying; the nodes of a captured graph. The last lines
// are the values for LoopCosts (backends/cuda/codegen/loop_costs.h).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <sstream>
#include <vector>

#include "bench/cuda/barriers.h"

namespace {

constexpr int threads = 256, rounds = 1000;

template <class... T>
void print(const T&... parts) {
  std::ostringstream text;
  (text << ... << parts) << "\n";
  reel::bench::write_line(text.str());
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  print(what, ": ", cudaGetErrorString(code));
  std::exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 77 : 1);
}

enum class Order { fences, release };

template <Order order>
__device__ void wait_for_all(unsigned* counter, unsigned blocks, unsigned n) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (order == Order::fences) {
      __threadfence();
      atomicAdd(counter, 1U);
    } else {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
    }
    unsigned now = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (now < n * blocks);
    if (order == Order::fences) __threadfence();
  }
  __syncthreads();
}

/// Each group of `group` blocks has a barrier in every round.
template <Order order>
__global__ void barriers(unsigned* counters, int group) {
  unsigned* const counter = counters + blockIdx.x / group * 32;
  for (unsigned i = 1; i <= rounds; ++i) wait_for_all<order>(counter, group, i);
}

__global__ void cluster_barriers() {
#if __CUDA_ARCH__ >= 900
  for (int i = 0; i < rounds; ++i)
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/// In every round a block brings `vectors` of 16 bytes to shared memory, by registers or by asynchronous copies.
template <bool async>
__global__ void fetches(const float4* from, int vectors, float* out) {
  extern __shared__ float4 to[];
  for (int i = 0; i < rounds; ++i) {
    for (int k = threadIdx.x; k < vectors; k += threads) {
#if __CUDA_ARCH__ >= 800
      if (async) {
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to + k))),
            "l"(__cvta_generic_to_global(from + k)));
        continue;
      }
#endif
      to[k] = __ldcg(from + k);
    }
#if __CUDA_ARCH__ >= 800
    if (async) asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
  }
  if (to[threadIdx.x].x == 1) *out = 1;
}

__global__ void multiplies(float x, float* out) {
  float sum[16] = {};
  for (int i = 0; i < 64 * rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 16; ++k) sum[k] = sum[k] * x + static_cast<float>(k);
  }
  float all = 0;
  for (const float s : sum) all += s;
  if (all == 1) *out = all;
}

__global__ void nothing(float*) {}

/// Median microseconds of what f puts into the stream.
double microseconds(cudaStream_t stream, const std::function<void()>& f) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int i = 0; i < 8; ++i) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    f();
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "a kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (i > 0) times.push_back(milliseconds);  // the first one loads code
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::nth_element(times.begin(), times.begin() + 3, times.end());
  return 1e3 * times[3];
}

/// Microseconds of a node, in a graph of many.
double node(cudaStream_t stream, const std::function<void()>& add) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  for (int i = 0; i < rounds; ++i) add();
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiateWithFlags(&ready, graph, 0), "cudaGraphInstantiate");
  const double time = microseconds(stream, [&] { check(cudaGraphLaunch(ready, stream), "cudaGraphLaunch"); });
  check(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return time / rounds;
}

void line(const char* what, int size, double time) {
  print(std::left, std::setw(44), what, std::right, std::setw(5), size, std::fixed, std::setprecision(3), std::setw(10),
        time, " us");
}

template <class Kernel>
double together(cudaStream_t stream, Kernel kernel, unsigned* counters, int blocks, int group) {
  return microseconds(stream,
                      [&] {
                        check(cudaMemsetAsync(counters, 0, 1 << 16, stream), "cudaMemsetAsync");
                        void* arguments[] = {&counters, &group};
                        check(cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, stream),
                              "barriers");
                      }) /
         rounds;
}

/// A negative number where no cluster of that size fits.
double clusters(cudaStream_t stream, int size, int blocks) {
  check(cudaFuncSetAttribute(cluster_barriers, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "cluster sizes");
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks / size * size), config.blockDim = dim3(threads), config.stream = stream;
  config.attrs = &attribute, config.numAttrs = 1;
  int fitting = 0;
  if (cudaOccupancyMaxActiveClusters(&fitting, cluster_barriers, &config) != cudaSuccess || fitting == 0) {
    cudaGetLastError();
    return -1;
  }
  print("clusters of ", size, " blocks at the same time: ", fitting);
  return microseconds(stream, [&] { check(cudaLaunchKernelEx(&config, cluster_barriers), "clusters"); }) / rounds;
}

}  // namespace

int reel::bench::measure_barriers() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    print("skipped: no NVIDIA GPU can be used here");
    return 77;
  }
  cudaDeviceProp about{};
  check(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
  const int all = about.multiProcessorCount;
  print(about.name, ", ", all, " multiprocessors, sm_", about.major, about.minor);
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  unsigned* counters = nullptr;
  float4* memory = nullptr;
  constexpr int most = 96 * 1024;  // bytes that a block fetches
  check(cudaMalloc(&counters, 1 << 16), "cudaMalloc");
  check(cudaMalloc(&memory, 2 * most), "cudaMalloc");
  check(cudaMemsetAsync(memory, 0, 2 * most, stream), "cudaMemsetAsync");
  float* const out = reinterpret_cast<float*>(memory);
  double wait = 0;
  for (const int group : {2, 8, 16, 64, all}) {
    const int blocks = all / group * group;
    line("barrier by fences, blocks of a group", group,
         together(stream, barriers<Order::fences>, counters, blocks, group));
    const double time = together(stream, barriers<Order::release>, counters, blocks, group);
    line("barrier by release and acquire", group, time);
    if (group == 64) wait = time;
  }
  if (about.major >= 9) {
    for (const int size : {2, 4, 8, 16}) {
      const double time = clusters(stream, size, all);
      if (time >= 0) line("barrier of a cluster, blocks", size, time);
    }
  }
  double small = 0, large = 0;
  for (const int kilobytes : {1, 24, 96}) {
    const auto time = [&](auto kernel) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "shared memory");
      return microseconds(stream, [&] { kernel<<<all, threads, most, stream>>>(memory, kilobytes * 64, out); }) /
             rounds;
    };
    if (kilobytes * 1024 > static_cast<int>(about.sharedMemPerBlockOptin)) continue;
    line("fetch from L2 by registers, KB a block", kilobytes, time(fetches<false>));
    const double async = time(fetches<true>);
    line("fetch from L2 by asynchronous copies", kilobytes, async);
    if (kilobytes == 1) small = async;
    if (kilobytes == 96) large = async;
  }
  const double multiply = microseconds(stream, [&] { multiplies<<<all, threads, 0, stream>>>(0.5F, out); });
  const double cycles = 64.0 * rounds * 16 * threads / 128 / multiply;  // 128 multiply-adds a cycle
  line("1,000 multiply-adds of each of 256 threads", all, multiply / (64.0 * 16));
  const double launch = node(stream, [&] { nothing<<<1, threads, 0, stream>>>(out); });
  line("node of a graph: a kernel, blocks", 1, launch);
  line("node of a graph: a kernel, blocks", all, node(stream, [&] { nothing<<<all, threads, 0, stream>>>(out); }));
  line("node of a graph: a copy of 16 KB", 1, node(stream, [&] {
         check(cudaMemcpyAsync(memory, memory + most / 16, 1 << 14, cudaMemcpyDeviceToDevice, stream), "copy");
       }));
  line("node of a graph: zeros, 16 KB", 1,
       node(stream, [&] { check(cudaMemsetAsync(memory, 0, 1 << 14, stream), "zeros"); }));
  const double fetched = all * 95.0 * 1024 / std::max(1e-3, large - small);
  print("LoopCosts: cycles = ", cycles, ", wait = ", wait, ", fetch = ", small, ", fetched = ", fetched,
        ", launch = ", launch);
  print("products and their rates are bench_device's");
  return 0;
}
