// Products by tensor cores, for kernels of loops: a warp multiplies 16 rows of a factor by its columns of the weights,
// 8 columns and 16 terms of their sums at a time. Compiled by NVRTC, and by g++ in the tests (loop.h).
#pragma once
#include "backends/cuda/codegen/device/kernel.h"

namespace reel::generated {

#ifndef REEL_ON_HOST
/// sum += a b of a warp, with 10 bits of the factors' mantissas (mma.m16n8k8 of tf32). Of a [16, 8], b [8, 8] and sum
/// [16, 8] lane 4 g + q has a(g, q), a(g + 8, q), a(g, q + 4), a(g + 8, q + 4); b(q, g), b(q + 4, g); and sum(g, 2 q),
/// sum(g, 2 q + 1), sum(g + 8, 2 q), sum(g + 8, 2 q + 1).
__device__ inline void multiply_tile(float (&sum)[4], const float (&a)[4], const float (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#endif
}
/// upper_bits of a number that stays the same from step to step, each time anew: else the compiler keeps both of its
/// parts in registers, which there are not enough of.
__device__ inline float upper_bits_anew(float x) {
  unsigned out;
  asm volatile("and.b32 %0, %1, 0xffffe000;" : "=r"(out) : "r"(__float_as_uint(x)));
  return __uint_as_float(out);
}
__device__ inline float with_bits(unsigned bits) { return __uint_as_float(bits); }
__device__ inline unsigned bits_of(float x) { return __float_as_uint(x); }
#endif

/// The first 10 bits of x's mantissa; x less these has the other 13, exactly.
REEL_HD inline float upper_bits(float x) { return with_bits(bits_of(x) & 0xffffe000U); }
/// x rounded to 10 bits; NaN and infinities stay.
REEL_HD inline float rounded_to_tf32(float x) {
  const bool finite = (bits_of(x) & 0x7f800000U) != 0x7f800000U;
  return finite ? with_bits((bits_of(x) + 0x1000U) & 0xffffe000U) : x;
}

/// What a tensor core makes the best of, as it drops all but 10 bits: right on average, and off by two thirds of the
/// last bit at most. An exact rounding takes five times as long; NaN and infinities stay here, too.
REEL_HD inline float nearly_rounded(float x) { return x * (1 + 1.333F / 4096); }

/// A warp's part of the weights: `columns` columns, of each `vectors` times 16 terms of its sum, of which a lane has
/// four. `parts` is how many products of tf32 make one of f32: 1, which rounds both factors, or 3, which drop the
/// product of both lower parts, some 2^-22 of it.
template <class T, int columns, int vectors, int parts>
struct TensorWeights {
  AlignedVector<T, 4> kept[columns / 8][vectors];
};

template <class T, int columns, int vectors, int parts, class F>
REEL_HD void load_weights(TensorWeights<T, columns, vectors, parts>& w, int lane, int part, F weight) {
#pragma unroll
  for (int t = 0; t < columns / 8; ++t) {
#pragma unroll
    for (int m = 0; m < vectors; ++m) {
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const T x = weight(t * 8 + lane / 4, (part * vectors + m) * 16 + lane % 4 * 4 + u);
        w.kept[t][m].at[u] = parts == 1 ? rounded_to_tf32(x) : x;
      }
    }
  }
}

/// As multiply of loop.h; `count` is a multiple of 16 rows. The order of a sum's terms is the same for factor and
/// weights, so a lane takes four adjacent ones of each. Sums of few columns are kept in several parts, as a tensor core
/// takes a while to add to one.
template <int rows, class T, int columns, int vectors, int parts, class F>
REEL_HD void multiply(TensorWeights<T, columns, vectors, parts>& w, const T* x, int pitch, int count, int lane,
                      int part, F result) {
  constexpr int tiles = columns / 8, apart = tiles >= 4 ? 1 : 4 / tiles;
  const int g = lane / 4, q = lane % 4;
#pragma unroll 1
  for (int first = 0; first < count; first += rows) {
    float sum[apart][tiles][4] = {}, small[parts == 1 ? 1 : apart][tiles][4] = {};
#pragma unroll
    for (int m = 0; m < vectors; ++m) {
      const T* const from = x + (first + g) * pitch + (part * vectors + m) * 16 + 4 * q;
      const auto above = *reinterpret_cast<const AlignedVector<T, 4>*>(from),
                 below = *reinterpret_cast<const AlignedVector<T, 4>*>(from + 8 * pitch);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float a[4] = {above.at[2 * h], below.at[2 * h], above.at[2 * h + 1], below.at[2 * h + 1]}, rest[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const float upper = parts == 1 ? nearly_rounded(a[u]) : upper_bits(a[u]);
          rest[u] = a[u] - upper;
          a[u] = upper;
        }
#pragma unroll
        for (int t = 0; t < tiles; ++t) {
          float(&total)[4] = sum[(2 * m + h) % apart][t];
          float b[2] = {w.kept[t][m].at[2 * h], w.kept[t][m].at[2 * h + 1]};
          if constexpr (parts == 3) {
            float(&little)[4] = small[(2 * m + h) % apart][t];
            const float b_upper[2] = {upper_bits_anew(b[0]), upper_bits_anew(b[1])};
            const float b_rest[2] = {b[0] - b_upper[0], b[1] - b_upper[1]};
            multiply_tile(little, a, b_rest);
            multiply_tile(little, rest, b_upper);
            multiply_tile(total, a, b_upper);
          } else {
            multiply_tile(total, a, b);
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float all = 0;
        if constexpr (parts == 3) {
#pragma unroll
          for (int k = 0; k < apart; ++k) all += small[k][t][e];
        }
#pragma unroll
        for (int k = 0; k < apart; ++k) all += sum[k][t][e];
        result(first + g + 8 * (e / 2), t * 8 + 2 * q + e % 2, all);
      }
    }
  }
}

}  // namespace reel::generated
