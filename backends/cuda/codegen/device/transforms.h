// Fourier transforms of rows in shared memory, for loop kernels (loop_transforms.cpp).
#pragma once
#include "backends/cuda/codegen/device/loop.h"

namespace reel::generated {

/// e^(-i pi k / half) for k < half, which transforms of 2 half numbers read.
template <class R>
REEL_HD void roots_of_one(cuda::DeviceComplex<R>* roots, int half, int thread, int threads) {
  for (int k = thread; k < half; k += threads) {
    const double turn = -static_cast<double>(k) / half;
    roots[k] = {static_cast<R>(::cospi(turn)), static_cast<R>(::sinpi(turn))};
  }
}

/// Transforms `rows` rows of n numbers, n a power of 2, by Stockham's passes of radix 2, which need no reordering:
/// in pass p, number k + 2 j m of a row and the one m further are the sum of the numbers k + j m and n / 2 further, and
/// their difference times a root, m = 2^p. A pass reads `in` or what the one before wrote, to `out` or `spare` by
/// turns; the last one calls result(row, column, number). All threads of the block take part; barriers are between
/// passes.
template <int n, bool inverse, class T, class F>
REEL_HD void transform(const T* in, int in_pitch, T* out, int out_pitch, T* spare, const T* roots, int rows, int thread,
                       int threads, F result) {
  const T* from = in;
  int pitch = in_pitch;
#pragma unroll
  for (int m = 1; m < n; m *= 2) {
    const bool last = 2 * m == n;
    bool to_spare = true;  // the last but one, and every second before it
    for (int rest = 4 * m; rest < n; rest *= 2) to_spare = !to_spare;
    T* const to = to_spare ? spare : out;
    const int to_pitch = to_spare ? n : out_pitch;
    for (int e = thread; e < rows * (n / 2); e += threads) {
      const int row = e / (n / 2), b = e % (n / 2), j = b / m, k = b % m;
      const T x = from[row * pitch + b], y = from[row * pitch + b + n / 2];
      const T w = inverse ? conj(roots[j * m]) : roots[j * m];
      const T sum = x + y, turned = w * (x - y);
      if (last) {
        result(row, k, sum);
        result(row, k + m, turned);
      } else {
        to[row * to_pitch + k + 2 * j * m] = sum;
        to[row * to_pitch + k + 2 * j * m + m] = turned;
      }
    }
    if (!last) __syncthreads();
    from = to;
    pitch = to_pitch;
  }
}

}  // namespace reel::generated
