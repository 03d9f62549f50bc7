// The building blocks of loop kernels (loop_source.cpp); compiled by NVRTC, and by g++ in the tests, which define
// REEL_ON_HOST and supply the GPU's intrinsics.
#pragma once
#include "backends/cuda/codegen/device/kernel.h"

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
__device__ inline float4 fresh_vector(const float4* p) { return __ldcg(p); }
/// A barrier between the blocks of a group, for the n-th time; afterwards their writes are visible.
__device__ inline void wait_for_group(unsigned* counter, unsigned blocks, unsigned n) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1U);
    unsigned now = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (now < n * blocks);
    __threadfence();
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

/// The index that j is paired with in a rotation; j itself outside of it.
REEL_HD inline int partner(int j, int first, int last, int distance) {
  if (j < first || j >= last) return j;
  return (j - first) % (2 * distance) < distance ? j + distance : j - distance;
}

/// Copies rows of other blocks' results to shared memory, `pitch` apart; beyond `rows` and `width` it fills with zeros.
template <class T, bool aligned>
REEL_HD void fetch(T* to, int all, int pitch, const T* from, int rows, int width, int thread, int threads) {
  constexpr int v = aligned ? 16 / sizeof(T) : 1;
#pragma unroll 4
  for (int k = thread * v; k < all * pitch; k += threads * v) {
    const int row = k / pitch, column = k % pitch;
    const bool there = row < rows && column < width;
    if constexpr (aligned) {
      float4 none{};
      *reinterpret_cast<float4*>(to + k) =
          there ? fresh_vector(reinterpret_cast<const float4*>(from + row * width + column)) : none;
    } else {
      to[k] = there ? fresh(from + row * width + column) : T(0);
    }
  }
}

/// A warp's part of the weights: `columns` columns, each as `vectors` vectors of 16 bytes per lane.
template <class T, int columns, int vectors>
struct Weights {
  static constexpr int v = 16 / sizeof(T);
  T at[columns][vectors][v];

  /// Loads weight(column, index along the sum); this warp is number `part` along the sum.
  template <class F>
  REEL_HD void load(int lane, int part, F weight) {
#pragma unroll
    for (int c = 0; c < columns; ++c) {
#pragma unroll
      for (int m = 0; m < vectors; ++m) {
#pragma unroll
        for (int u = 0; u < v; ++u) at[c][m][u] = weight(c, ((part * vectors + m) * 32 + lane) * v + u);
      }
    }
  }
};

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
template <int rows, class T, int columns, int vectors, class F>
REEL_HD void multiply(const Weights<T, columns, vectors>& w, const T* x, int pitch, int count, int lane, int part,
                      F result) {
  constexpr int v = 16 / sizeof(T), used = rows * columns;
  constexpr int n = used <= 1 ? 1 : used <= 2 ? 2 : used <= 4 ? 4 : used <= 8 ? 8 : used <= 16 ? 16 : 32;
  for (int first = 0; first < count; first += rows) {
    T sum[n] = {};
#pragma unroll
    for (int m = 0; m < vectors; ++m) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const auto p = *reinterpret_cast<const AlignedVector<T, v>*>(x + (first + r) * pitch +
                                                                     ((part * vectors + m) * 32 + lane) * v);
#pragma unroll
        for (int c = 0; c < columns; ++c) {
#pragma unroll
          for (int u = 0; u < v; ++u) sum[r * columns + c] += w.at[c][m][u] * p.at[u];
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
