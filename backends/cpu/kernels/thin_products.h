// Matrix products with few columns or rows, which BLAS handles badly: complex ones with a single column or row, real
// ones with up to 16 columns and long sums, or with one or two rows.
#pragma once
#include <algorithm>
#include <complex>

#include "backends/cpu/simd/vectors.h"
#include "ops/functors/math.h"

namespace reel::cpu {

/// c[i] = the sum of a[i, j] b[j] over j < k, for i < m; rows of a are `lda` elements apart, elements of c `ldc`.
template <class R>
void times_column(std::int64_t m, std::int64_t k, const std::complex<R>* a, std::int64_t lda, const std::complex<R>* b,
                  bool conj_b, std::complex<R>* c, std::int64_t ldc) {
  constexpr std::int64_t width = lanes<R>, elements = width / 2;
  for (std::int64_t i = 0; i < m; ++i, a += lda, c += ldc) {
    Vector<R> by_re{}, by_im{};  // a re(b) and a im(b)
    std::int64_t j = 0;
    for (; j + elements <= k; j += elements) {
      const Vector<R> x = load(reinterpret_cast<const R*>(a + j)), y = load(reinterpret_cast<const R*>(b + j));
      by_re += real_twice<R>(y) * x;
      by_im += imag_twice<R>(y) * x;
    }
    const Vector<R> sums = add_lanes<R, 2>(conj_b ? by_re - turned<R>(by_im) : by_re + turned<R>(by_im));
    std::complex<R> sum(sums[0], sums[1]);
    for (; j < k; ++j) sum += math::times(a[j], conj_b ? std::conj(b[j]) : b[j]);
    *c = sum;
  }
}

/// c[i] = the sum of a[j, i] b[j] over j < k, for i < m; elements of b are `ldb` apart. This is the gradient of a
/// vector shared by all time steps, so k may be long: single-precision sums are flushed to double every 256 rows.
template <class R>
void turned_times_column(std::int64_t m, std::int64_t k, const std::complex<R>* a, std::int64_t lda, bool conj_a,
                         const std::complex<R>* b, std::int64_t ldb, bool conj_b, std::complex<R>* c,
                         std::int64_t ldc) {
  constexpr std::int64_t tile = 256, some = 256;
  for (std::int64_t i0 = 0; i0 < m; i0 += tile) {
    const std::int64_t wide = std::min(tile, m - i0);
    double total_re[tile] = {}, total_im[tile] = {};
    for (std::int64_t j0 = 0; j0 < k; j0 += some) {
      R re[tile] = {}, im[tile] = {};
      for (std::int64_t j = j0; j < std::min(k, j0 + some); ++j) {
        const std::complex<R>* x = a + j * lda + i0;
        const R u = b[j * ldb].real(), v = conj_b == conj_a ? b[j * ldb].imag() : -b[j * ldb].imag();
        for (std::int64_t i = 0; i < wide; ++i) {  // conj(x) y = conj(x conj(y))
          re[i] += x[i].real() * u - x[i].imag() * v;
          im[i] += x[i].real() * v + x[i].imag() * u;
        }
      }
      for (std::int64_t i = 0; i < wide; ++i) {
        total_re[i] += static_cast<double>(re[i]);
        total_im[i] += static_cast<double>(im[i]);
      }
    }
    for (std::int64_t i = 0; i < wide; ++i)
      c[(i0 + i) * ldc] = {static_cast<R>(total_re[i]), static_cast<R>(conj_a ? -total_im[i] : total_im[i])};
  }
}

/// c[i, j] = a[i] b[j] for i < m and j < n; elements of a are `lda` apart, rows of c `ldc`.
template <class R>
void outer_product(std::int64_t m, std::int64_t n, const std::complex<R>* a, std::int64_t lda, bool conj_a,
                   const std::complex<R>* b, bool conj_b, std::complex<R>* c, std::int64_t ldc) {
  const R sign = conj_b ? R(-1) : R(1);
  for (std::int64_t i = 0; i < m; ++i, a += lda, c += ldc) {
    const R u = a->real(), v = conj_a ? -a->imag() : a->imag();
    for (std::int64_t j = 0; j < n; ++j) {
      const R x = b[j].real(), y = sign * b[j].imag();
      c[j] = {u * x - v * y, u * y + v * x};
    }
  }
}

/// Rows i..i+height of a times rows j..j+width of b: each dot product accumulates in a vector, reduced at the end.
template <int height, int width, class R>
void tile_of_dots(std::int64_t k, const R* a, std::int64_t lda, const R* b, std::int64_t ldb, R* c, std::int64_t ldc) {
  Vector<R> sums[height][width] = {};
  std::int64_t j = 0;
  for (; j + lanes<R> <= k; j += lanes<R>) {
    Vector<R> x[height];
    for (int i = 0; i < height; ++i) x[i] = load(a + i * lda + j);
    for (int l = 0; l < width; ++l) {
      const Vector<R> y = load(b + l * ldb + j);
      for (int i = 0; i < height; ++i) sums[i][l] += x[i] * y;
    }
  }
  for (int i = 0; i < height; ++i) {
    for (int l = 0; l < width; ++l) {
      R sum = add_lanes<R>(sums[i][l])[0];
      for (std::int64_t rest = j; rest < k; ++rest) sum += a[i * lda + rest] * b[l * ldb + rest];
      c[i * ldc + l] = sum;
    }
  }
}

template <int width, class R>
void strip_of_dots(std::int64_t m, std::int64_t k, const R* a, std::int64_t lda, const R* b, std::int64_t ldb, R* c,
                   std::int64_t ldc) {
  // 3 x 8 accumulators, 3 rows of a, one of b fit 32 registers. Without AVX-512 there are 16, and rows that come from
  // memory come faster one after the other.
  constexpr int height = sizeof(Vector<R>) < 64 ? 1 : 3;
  for (; m >= height; m -= height, a += height * lda, c += height * ldc)
    tile_of_dots<height, width>(k, a, lda, b, ldb, c, ldc);
  for (; m > 0; --m, a += lda, c += ldc) tile_of_dots<1, width>(k, a, lda, b, ldb, c, ldc);
}

/// c [m, n] = a b', with long rows of a and b. libxsmm vectorizes along n, where few lanes would be full.
template <class R>
void few_columns(std::int64_t m, std::int64_t n, std::int64_t k, const R* a, std::int64_t lda, const R* b,
                 std::int64_t ldb, R* c, std::int64_t ldc) {
  for (; n >= 8; n -= 8, b += 8 * ldb, c += 8) strip_of_dots<8>(m, k, a, lda, b, ldb, c, ldc);
  for (; n >= 2; n -= 2, b += 2 * ldb, c += 2) strip_of_dots<2>(m, k, a, lda, b, ldb, c, ldc);
  if (n == 1) strip_of_dots<1>(m, k, a, lda, b, ldb, c, ldc);
}

/// c = a b for one row a and so many vectors of columns.
template <std::int64_t vectors, class R>
void row_times_columns(std::int64_t k, const R* a, const R* b, std::int64_t ldb, R* c) {
  Vector<R> sums[vectors] = {};
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < vectors; ++j) sums[j] += a[i] * load(b + i * ldb + j * lanes<R>);
  }
  for (std::int64_t j = 0; j < vectors; ++j) store(c + j * lanes<R>, sums[j]);
}

/// c [n] = a b for one row a. Each sum goes along its column, as those of libxsmm, which is slower if b is large.
template <class R>
void row_times(std::int64_t n, std::int64_t k, const R* a, const R* b, std::int64_t ldb, R* c) {
  constexpr std::int64_t vectors = 8;
  std::int64_t j = 0;
  for (; j + vectors * lanes<R> <= n; j += vectors * lanes<R>) row_times_columns<vectors>(k, a, b + j, ldb, c + j);
  for (; j + lanes<R> <= n; j += lanes<R>) row_times_columns<1>(k, a, b + j, ldb, c + j);
  for (; j < n; ++j) {
    c[j] = 0;
    for (std::int64_t i = 0; i < k; ++i) c[j] += a[i] * b[i * ldb + j];
  }
}

}  // namespace reel::cpu
