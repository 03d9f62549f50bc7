// The building blocks of loop kernels (loop_source.cpp); compiled by NVRTC, and by g++ in the tests, which define
// REEL_ON_HOST and supply the GPU's intrinsics.
#pragma once
#include "backends/cuda/codegen/device/tensor_cores.h"

namespace reel::generated {

#ifndef REEL_ON_HOST
/// The block's shared memory.
__device__ inline char* shared_memory() {
  extern __shared__ __align__(16) char memory[];
  return memory;
}
template <class T>
__device__ T from_lane(T value, int distance) {
  return __shfl_xor_sync(0xffffffffU, value, distance);
}
/// Loads past the L1 cache, where results of other blocks would not show.
template <class T>
__device__ T fresh(const T* p) {
  return __ldcg(p);
}
/// Starts to copy 16 bytes past the L1 cache into shared memory, or zeros unless `there`, when nothing is read. Copies
/// overlap and take no registers; they are done after wait_for_copies, to the thread that made them.
__device__ inline void start_copy(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
      "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
      : "memory");
#else
  *static_cast<float4*>(to) = there ? __ldcg(static_cast<const float4*>(from)) : float4{};
#endif
}
/// Ends a group of copies: those that a thread has started since the last one.
__device__ inline void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for all of the thread's groups but the last `others`.
template <int others>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(others) : "memory");
#endif
}
/// The two halves of a barrier between the blocks of a group. When all have arrived for the n-th time, what they wrote
/// before is visible. The block's barrier orders its threads' writes before the release, and the acquire before their
/// reads.
__device__ inline void arrive_in_group(unsigned* counter) {
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ inline void wait_for_group(unsigned* counter, unsigned blocks, unsigned n) {
  if (threadIdx.x == 0) {
    unsigned now = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (now < n * blocks);
  }
  __syncthreads();
}
#endif

/// The address of an operand: a constant stride from step to step.
struct Address {
  char* first;
  long long stride;  // in bytes
};
template <class T>
REEL_HD T* at(const Address& w, long long i) {
  return reinterpret_cast<T*>(w.first + i * w.stride);
}

REEL_HD inline int at_most(int x, int limit) { return x < limit ? x : limit; }

/// The index that j is paired with in a rotation; j itself outside of it.
REEL_HD inline int partner(int j, int first, int last, int distance) {
  if (j < first || j >= last) return j;
  return (j - first) % (2 * distance) < distance ? j + distance : j - distance;
}

/// Copies rows of other blocks' results to shared memory, `pitch` apart: `all`, or as many as there are. Of each it
/// writes `columns`, with zeros beyond `width`. A warp takes whole rows, so that addresses cost little. Aligned rows
/// are there after wait_for_copies.
template <class T, bool aligned, int columns>
REEL_HD void fetch(T* to, int all, int pitch, const T* from, int rows, int width, int thread, int threads) {
  constexpr int v = aligned ? 16 / sizeof(T) : 1, each = 32 * v;
  const int lane = thread % 32 * v, last = rows < all ? rows : all;
#pragma unroll 2
  for (int row = thread / 32; row < last; row += threads / 32) {
    const T* const first = from + row * width;
#pragma unroll
    for (int k = 0; k < (columns + each - 1) / each; ++k) {
      const int column = k * each + lane;
      if (columns % each != 0 && column >= columns) break;
      if constexpr (aligned)
        start_copy(to + row * pitch + column, first + column, column < width);
      else
        to[row * pitch + column] = column < width ? fresh(first + column) : T(0);
    }
  }
}

/// A warp's part of the weights: `columns` columns, each as `vectors` vectors of 16 bytes per lane, in registers.
template <class T, int columns, int vectors>
struct Weights {
  using Vector = AlignedVector<T, 16 / sizeof(T)>;
  Vector kept[columns][vectors];
  REEL_HD Vector& at(int c, int m) { return kept[c][m]; }
};

/// The same in shared memory, where each of the block's threads has places of its own.
template <class T, int columns, int vectors>
struct SharedWeights {
  using Vector = AlignedVector<T, 16 / sizeof(T)>;
  static constexpr int threads = 256;
  Vector* first;  // of this thread
  REEL_HD SharedWeights(char* memory, int thread) : first(reinterpret_cast<Vector*>(memory) + thread) {}
  REEL_HD Vector& at(int c, int m) { return first[(c * vectors + m) * threads]; }
};

/// Loads weight(column, index along the sum); this warp is number `part` along the sum.
template <class T, int columns, int vectors, template <class, int, int> class W, class F>
REEL_HD void load_weights(W<T, columns, vectors>& w, int lane, int part, F weight) {
  constexpr int v = 16 / sizeof(T);
#pragma unroll
  for (int c = 0; c < columns; ++c) {
#pragma unroll
    for (int m = 0; m < vectors; ++m) {
      AlignedVector<T, v> x;
#pragma unroll
      for (int u = 0; u < v; ++u) x.at[u] = weight(c, ((part * vectors + m) * 32 + lane) * v + u);
      w.at(c, m) = x;
    }
  }
}

/// Reduces n values across the lanes of a warp, n a power of two up to 32: lane l returns the sum of value
/// l / (32 / n). At each distance a lane passes half of its values on.
template <int n, int distance = 16, class T>
REEL_HD T sum_over_lanes(T* x, int lane) {
  if constexpr (n > 1) {
    const bool upper = (lane & distance) != 0;
#pragma unroll
    for (int j = 0; j < n / 2; ++j) {
      const T give = upper ? x[j] : x[j + n / 2], keep = upper ? x[j + n / 2] : x[j];
      x[j] = keep + from_lane(give, distance);
    }
    return sum_over_lanes<n / 2, distance / 2>(x, lane);
  } else if constexpr (distance > 0) {
    x[0] += from_lane(x[0], distance);
    return sum_over_lanes<1, distance / 2>(x, lane);
  } else {
    return x[0];
  }
}

/// Multiplies `count` rows in shared memory, `pitch` apart, by the warp's columns; one lane calls result(row, column,
/// sum) for each sum. `rows` rows are computed at a time; count is a multiple of that.
template <int rows, class T, int columns, int vectors, template <class, int, int> class W, class F>
REEL_HD void multiply(W<T, columns, vectors>& w, const T* x, int pitch, int count, int lane, int part, F result) {
  constexpr int v = 16 / sizeof(T), used = rows * columns;
  constexpr int n = used <= 1 ? 1 : used <= 2 ? 2 : used <= 4 ? 4 : used <= 8 ? 8 : used <= 16 ? 16 : 32;
  for (int first = 0; first < count; first += rows) {
    T sum[n] = {};
#pragma unroll
    for (int m = 0; m < vectors; ++m) {
      AlignedVector<T, v> p[rows];
#pragma unroll
      for (int r = 0; r < rows; ++r)
        p[r] = *reinterpret_cast<const AlignedVector<T, v>*>(x + (first + r) * pitch +
                                                             ((part * vectors + m) * 32 + lane) * v);
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const AlignedVector<T, v> q = w.at(c, m);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
#pragma unroll
          for (int u = 0; u < v; ++u) sum[r * columns + c] += q.at[u] * p[r].at[u];
        }
      }
    }
    const T total = sum_over_lanes<n>(sum, lane);
    constexpr int each = 32 / n;
    const int k = lane / each;
    if (lane % each == 0 && k < used) result(first + k / columns, k % columns, total);
  }
}

}  // namespace reel::generated
