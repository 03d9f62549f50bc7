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

/// The sums of a pass of radix 4, of numbers a quarter of a row apart; the second to fourth lack their roots.
template <bool inverse, class T>
struct Butterfly {
  T first, second, third, fourth;
  REEL_HD Butterfly(T a, T b, T c, T d) {
    const T sum = a + c, rest = a - c, other = b + d, z = b - d;
    const T turned = inverse ? T(-z.imag(), z.real()) : T(z.imag(), -z.real());  // by a quarter
    first = sum + other;
    second = rest + turned;
    third = sum - other;
    fourth = rest - turned;
  }
};

/// Transforms `rows` rows of n numbers, n a power of 2, by Stockham's passes, which need no reordering. With radix 4
/// the numbers b, b + n / 4, ... of a row, b = k + j m, k < m, become the numbers k + 4 j m, k + 4 j m + m, ...; m is 1
/// in the first pass, and 4 times as large in each further one. If n is no power of 4, the last pass has radix 2. It
/// needs no roots, as j is 0 in the last pass. A pass reads `in` or what the one before wrote, to `out` or `spare` by
/// turns; the last one calls result(row, column, number). All threads of the block take part; barriers are between
/// passes.
template <int n, bool inverse, int rows, int threads, class T, class F>
REEL_HD void transform(const T* in, int in_pitch, T* out, int out_pitch, T* spare, const T* roots, unsigned thread,
                       F result) {
  const T* from = in;
  int pitch = in_pitch;
#pragma unroll
  for (int m = 1; m < n; m *= 4) {
    const bool two = 2 * m == n, last = two || 4 * m == n;
    bool to_spare = true;  // the last but one, and every second before it
    for (int rest = 4 * m; 4 * rest < n; rest *= 4) to_spare = !to_spare;
    T* const to = to_spare ? spare : out;
    const int to_pitch = to_spare ? n : out_pitch;
    const unsigned each = two ? n / 2 : n / 4, all = rows * each;
    for (unsigned e = thread; e < all; e += threads) {
      const unsigned row = e / each, b = e % each, j = b / m, k = b % m;
      const T* const x = from + row * pitch + b;
      if (two) {
        result(row, k, x[0] + x[each]);
        result(row, k + m, x[0] - x[each]);
      } else {
        const Butterfly<inverse, T> y(x[0], x[each], x[2 * each], x[3 * each]);
        if (last) {
          result(row, k, y.first);
          result(row, k + m, y.second);
          result(row, k + 2 * m, y.third);
          result(row, k + 3 * m, y.fourth);
        } else {
          const auto root = [&](unsigned i) { return inverse ? conj(roots[i]) : roots[i]; };
          const T w = root(j * m), w_2 = root(2 * j * m);
          T* const y_k = to + row * to_pitch + k + 4 * j * m;
          y_k[0] = y.first;
          y_k[m] = w * y.second;
          y_k[2 * m] = w_2 * y.third;
          y_k[3 * m] = w * w_2 * y.fourth;
        }
      }
      if (all <= threads) break;
    }
    if (!last) __syncthreads();
    from = to;
    pitch = to_pitch;
  }
}

}  // namespace reel::generated
