// A GPU for kernels that g++ compiles (tests/emulator/host_kernels.h, tests/emulator/): its threads are coroutines that
// run one after another, each until it has to wait, forwards and backwards in turn, so that a wait which is missing
// shows.
#pragma once
#include <bit>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define REEL_ON_HOST
#undef __global__
#undef __device__
#define __device__
#undef __shared__
#define __shared__ static  // right where blocks run one by one
#define __global__
#undef __launch_bounds__
#define __launch_bounds__(...)

struct Place {
  unsigned x = 0, y = 0;
};
inline Place blockIdx, threadIdx, blockDim, gridDim;

namespace simt_emulator {

/// Where threads wait for each other.
struct Gate {
  unsigned here = 0, opened = 0;
};
struct Warp {
  Gate gate;
  alignas(16) std::byte lane[32][32];
};
constexpr std::size_t most_threads = 1024, stack_bytes = 64 * 1024, shared_bytes = 256 * 1024;
struct Block {
  Gate gate;
  Warp warps[most_threads / 32];
  bool any = false;  // what __syncthreads_or finds
  unsigned read = 0;
  std::unique_ptr<std::byte[]> memory;
};
/// Runs threads to their end, one after another, until one waits; then others run the rest.
struct Fiber {
  boost::context::fiber rest;  // of it, while it waits
  unsigned block = 0, thread = 0;
  bool idle = false;
  std::vector<std::vector<std::pair<void*, const void*>>> copies{1};  // that its thread has started, in groups
};
inline std::vector<Block> blocks;  // those that run now
inline unsigned block_0 = 0;       // the first of them
inline unsigned begun = 0, all = 0;
inline bool backwards = false;
inline auto& fibers = *new std::vector<std::unique_ptr<Fiber>>;  // that have nothing to do; at the end, too
inline Fiber* running = nullptr;
inline boost::context::fiber scheduler;
inline std::function<void()> kernel;
inline bool moved = false;  // has any thread got on in this round?

inline unsigned threads_of_block() { return blockDim.x * blockDim.y; }
inline Block& this_block() { return blocks[blockIdx.x - block_0]; }
inline Warp& this_warp() { return this_block().warps[running->thread / 32]; }

inline void pause() { scheduler = std::move(scheduler).resume(); }
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
inline void set_place() {
  blockIdx.x = running->block;
  threadIdx = {running->thread % blockDim.x, running->thread / blockDim.x};
}
inline void work() {
  for (;;) {
    while (begun < all) {
      const unsigned k = backwards ? all - 1 - begun : begun;
      ++begun;
      running->block = block_0 + k / threads_of_block(), running->thread = k % threads_of_block();
      set_place();
      kernel();
      moved = true;
    }
    running->idle = true;
    pause();
  }
}
inline std::unique_ptr<Fiber> take_fiber() {
  if (!fibers.empty()) {
    auto fiber = std::move(fibers.back());
    fibers.pop_back();
    fiber->idle = false;
    return fiber;
  }
  auto fiber = std::make_unique<Fiber>();
  fiber->rest = boost::context::fiber(std::allocator_arg, boost::context::fixedsize_stack(stack_bytes),
                                      [](boost::context::fiber&& from) {
                                        scheduler = std::move(from);
                                        work();
                                        return std::move(scheduler);
                                      });
  return fiber;
}
inline void resume(Fiber& fiber) {
  running = &fiber;
  set_place();
  fiber.rest = std::move(fiber.rest).resume();
}

/// Runs some blocks; false: their threads wait for ever.
inline bool run_together(unsigned first_block, unsigned all_blocks) {
  blocks = std::vector<Block>(all_blocks);
  block_0 = first_block, begun = 0, all = all_blocks * threads_of_block();
  std::vector<std::unique_ptr<Fiber>> waiting;
  const auto keep = [&](std::unique_ptr<Fiber> fiber) { (fiber->idle ? fibers : waiting).push_back(std::move(fiber)); };
  while (begun < all) {
    auto fiber = take_fiber();
    resume(*fiber);
    keep(std::move(fiber));
  }
  for (bool back = !backwards; !waiting.empty(); back = !back) {
    moved = false;
    auto now = std::move(waiting);
    waiting.clear();
    for (std::size_t k = 0; k < now.size(); ++k) resume(*now[back ? now.size() - 1 - k : k]);
    for (auto& fiber : now) keep(std::move(fiber));
    if (moved) continue;
    for (auto& fiber : waiting) fiber.release();  // they can neither go on nor end
    return false;
  }
  return true;
}

/// `together`: the threads of all blocks run at the same time, not only those of one.
inline bool launch(std::function<void()> f, unsigned all_blocks, Place threads, bool together) {
  gridDim = {all_blocks, 1}, blockDim = threads;
  kernel = std::move(f);
  backwards = !backwards;
  if (together) return run_together(0, all_blocks);
  for (unsigned b = 0; b < all_blocks; ++b) {
    if (!run_together(backwards ? all_blocks - 1 - b : b, 1)) return false;
  }
  return true;
}

}  // namespace simt_emulator

inline void __syncthreads() {
  simt_emulator::wait(simt_emulator::this_block().gate, simt_emulator::threads_of_block());
}
/// Is it so for any thread of the block?
inline int __syncthreads_or(int yes) {
  simt_emulator::Block& block = simt_emulator::this_block();
  block.any = block.any || yes != 0;
  __syncthreads();
  const bool any = block.any;
  if (++block.read == simt_emulator::threads_of_block()) block.read = 0, block.any = false;
  __syncthreads();
  return any;
}

/// What lane `from` of the warp has.
template <class T>
T of_lane(T value, unsigned from) {
  static_assert(sizeof(T) <= 16);
  simt_emulator::Warp& warp = simt_emulator::this_warp();
  std::memcpy(warp.lane[simt_emulator::running->thread % 32], &value, sizeof value);
  simt_emulator::wait(warp.gate, 32);
  T other = value;
  if (from < 32) std::memcpy(static_cast<void*>(&other), warp.lane[from], sizeof other);
  simt_emulator::wait(warp.gate, 32);
  return other;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int distance) {
  return of_lane(value, simt_emulator::running->thread % 32 ^ static_cast<unsigned>(distance));
}
template <class T>
T __shfl_down_sync(unsigned, T value, int by) {
  return of_lane(value, simt_emulator::running->thread % 32 + static_cast<unsigned>(by));
}
template <class T>
T __shfl_up_sync(unsigned, T value, int by) {  // from the lane itself where there is none below
  return of_lane(value, simt_emulator::running->thread % 32 - static_cast<unsigned>(by));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return of_lane(value, static_cast<unsigned>(lane) % 32);
}
inline unsigned __ballot_sync(unsigned, int yes) {
  simt_emulator::Warp& warp = simt_emulator::this_warp();
  warp.lane[simt_emulator::running->thread % 32][0] = std::byte{yes != 0};
  simt_emulator::wait(warp.gate, 32);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) votes |= std::to_integer<unsigned>(warp.lane[lane][0]) << lane;
  simt_emulator::wait(warp.gate, 32);
  return votes;
}

inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double sinpi(double x) { return std::sin(3.14159265358979323846 * x); }

namespace reel::generated {

inline char* shared_memory() {
  auto& memory = simt_emulator::this_block().memory;
  if (!memory) {
    memory = std::make_unique<std::byte[]>(simt_emulator::shared_bytes + 16);
    std::memset(memory.get(), 0xff, simt_emulator::shared_bytes);  // not numbers
  }
  auto* const first = reinterpret_cast<char*>(memory.get());
  return first + (16 - reinterpret_cast<unsigned long long>(first) % 16) % 16;
}
template <class T>
T from_lane(T value, int distance) {
  return __shfl_xor_sync(~0U, value, distance);
}
template <class T>
T fresh(const T* p) {
  return *p;
}
inline float with_bits(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned bits_of(float x) { return std::bit_cast<unsigned>(x); }
inline float upper_bits_anew(float x) { return with_bits(bits_of(x) & 0xffffe000U); }
/// A tensor core does not look at the last 13 bits of the factors (tensor_cores.h says which lane has what).
inline void multiply_tile(float (&sum)[4], const float (&a)[4], const float (&b)[2]) {
  simt_emulator::Warp& warp = simt_emulator::this_warp();
  const unsigned lane = simt_emulator::running->thread % 32, g = lane / 4, q = lane % 4;
  for (unsigned u = 0; u < 6; ++u) {
    const float seen = upper_bits_anew(u < 4 ? a[u] : b[u - 4]);
    std::memcpy(warp.lane[lane] + u * sizeof seen, &seen, sizeof seen);
  }
  simt_emulator::wait(warp.gate, 32);
  const auto number = [&](unsigned of, unsigned u) {
    float x;
    std::memcpy(&x, warp.lane[of] + u * sizeof x, sizeof x);
    return x;
  };
  for (unsigned e = 0; e < 4; ++e) {
    for (unsigned k = 0; k < 8; ++k)
      sum[e] += number(4 * g + k % 4, k / 4 * 2 + e / 2) * number(4 * (2 * q + e % 2) + k % 4, 4 + k / 4);
  }
  simt_emulator::wait(warp.gate, 32);
}
/// As late as a GPU may copy: when they are waited for.
inline void start_copy(void* to, const void* from, bool there) {
  simt_emulator::running->copies.back().push_back({to, there ? from : nullptr});
}
inline void end_copies() { simt_emulator::running->copies.emplace_back(); }
template <int others>
void wait_for_copies() {
  auto& groups = simt_emulator::running->copies;
  const auto last = groups.end() - 1 - std::min<std::ptrdiff_t>(others, std::ssize(groups) - 1);
  for (auto group = groups.begin(); group != last; ++group) {
    for (const auto& [to, from] : *group) {
      if (from)
        std::memcpy(to, from, 16);
      else
        std::memset(to, 0, 16);
    }
  }
  groups.erase(groups.begin(), last);
}
inline void arrive_in_group(unsigned* counter) {
  __syncthreads();
  if (threadIdx.x == 0) ++*counter;
}
inline void wait_for_group(unsigned* counter, unsigned blocks, unsigned n) {
  if (threadIdx.x == 0) {
    simt_emulator::moved = true;
    while (*counter < n * blocks) simt_emulator::pause();
    simt_emulator::moved = true;
  }
  __syncthreads();
}

}  // namespace reel::generated

#define CALL(name)                                                                                              \
  extern "C" bool call_##name(const void* a, unsigned blocks, unsigned threads, bool together) {                \
    return simt_emulator::launch([=] { name(*static_cast<const name##_Arguments*>(a)); }, blocks, {threads, 1}, \
                                 together);                                                                     \
  }
