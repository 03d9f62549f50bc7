// A GPU for generated kernels that g++ compiles (tests/host_kernels.h): its threads are coroutines that run one after
// another, each until it has to wait, forwards and backwards in turn, so that a wait which is missing shows.
#pragma once
#include <ucontext.h>
#include <vector_types.h>  // float4

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define REEL_WITH_COMPLEX
#define REEL_ON_HOST
#undef __global__
#define __global__
#undef __launch_bounds__
#define __launch_bounds__(n)

struct Place {
  unsigned x;
};
static Place blockIdx, threadIdx, blockDim, gridDim;

namespace host_gpu {

/// Where threads wait for each other.
struct Gate {
  unsigned here = 0, opened = 0;
};
struct Warp {
  Gate gate;
  double lane[32];
};
struct Block {
  Gate gate;
  std::vector<Warp> warps;
  std::unique_ptr<std::byte[]> memory;
};
struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  unsigned block, thread;
  bool done = false;
};
constexpr std::size_t stack_bytes = 48 * 1024, shared_bytes = 256 * 1024;
static std::vector<Block> blocks;
static std::vector<Thread> threads;
static Thread* running = nullptr;
static ucontext_t scheduler;
static std::function<void()> kernel;
static bool moved = false;  // has any thread got on in this round?

inline void pause() { swapcontext(&running->context, &scheduler); }
inline void wait(Gate& gate, unsigned all) {
  const unsigned before = gate.opened;
  moved = true;
  if (++gate.here == all) {
    gate.here = 0;
    ++gate.opened;
    return;
  }
  while (gate.opened == before) pause();
  moved = true;
}
inline void begin() {
  kernel();
  running->done = moved = true;
  pause();
}

/// False: the threads wait for ever.
inline bool launch(std::function<void()> f, unsigned all_blocks, unsigned all_threads, bool together) {
  gridDim.x = all_blocks, blockDim.x = all_threads;
  if (!together) {
    for (blockIdx.x = 0; blockIdx.x < all_blocks; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < all_threads; ++threadIdx.x) f();
    }
    return true;
  }
  kernel = std::move(f);
  blocks = std::vector<Block>(all_blocks);
  threads = std::vector<Thread>(all_blocks * all_threads);
  for (unsigned b = 0; b < all_blocks; ++b) {
    blocks[b].warps.resize((all_threads + 31) / 32);
    blocks[b].memory = std::make_unique<std::byte[]>(shared_bytes + 16);
    std::memset(blocks[b].memory.get(), 0xff, shared_bytes);  // not numbers
    for (unsigned t = 0; t < all_threads; ++t) {
      Thread& one = threads[b * all_threads + t];
      one.block = b, one.thread = t;
      one.stack.reset(new char[stack_bytes]);
      getcontext(&one.context);
      one.context.uc_stack.ss_sp = one.stack.get();
      one.context.uc_stack.ss_size = stack_bytes;
      one.context.uc_link = nullptr;
      makecontext(&one.context, begin, 0);
    }
  }
  std::size_t left = threads.size();
  for (int round = 0; left > 0; ++round) {
    moved = false;
    for (std::size_t k = 0; k < threads.size(); ++k) {
      running = &threads[round % 2 == 0 ? k : threads.size() - 1 - k];
      if (running->done) continue;
      blockIdx.x = running->block, threadIdx.x = running->thread;
      swapcontext(&scheduler, &running->context);
      left -= running->done;
    }
    if (!moved) return false;
  }
  return true;
}

}  // namespace host_gpu

static void __syncthreads() { host_gpu::wait(host_gpu::blocks[blockIdx.x].gate, blockDim.x); }

namespace reel::generated {

inline char* shared_memory() {
  auto* const first = reinterpret_cast<char*>(host_gpu::blocks[blockIdx.x].memory.get());
  return first + (16 - reinterpret_cast<unsigned long long>(first) % 16) % 16;
}
template <class T>
T from_lane(T value, int distance) {
  host_gpu::Warp& warp = host_gpu::blocks[blockIdx.x].warps[threadIdx.x / 32];
  warp.lane[threadIdx.x % 32] = value;
  host_gpu::wait(warp.gate, 32);
  const T other = static_cast<T>(warp.lane[(threadIdx.x % 32) ^ distance]);
  host_gpu::wait(warp.gate, 32);
  return other;
}
template <class T>
T fresh(const T* p) {
  return *p;
}
inline float4 fresh_vector(const float4* p) { return *p; }
inline void wait_for_group(unsigned* counter, unsigned blocks, unsigned n) {
  __syncthreads();
  if (threadIdx.x == 0) {
    ++*counter;
    host_gpu::moved = true;
    while (*counter < n * blocks) host_gpu::pause();
    host_gpu::moved = true;
  }
  __syncthreads();
}

}  // namespace reel::generated

#define CALL(name)                                                                                               \
  extern "C" bool call_##name(const void* a, unsigned blocks, unsigned threads, bool together) {                 \
    return host_gpu::launch([=] { name(*static_cast<const name##_Arguments*>(a)); }, blocks, threads, together); \
  }
