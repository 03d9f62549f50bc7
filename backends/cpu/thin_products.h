// Products of complex matrices with one column or one row, which are too little work for BLAS to begin with.
#pragma once
#include <complex>

#include "backends/cpu/vectors.h"
#include "ops/functors/math.h"

namespace reel::cpu {

/// c[i] = the sum of a[i, j] b[j] over j < k, for i < m; rows of a are `lda` elements apart, elements of c `ldc`.
template <class R>
void times_column(std::int64_t m, std::int64_t k, const std::complex<R>* a, std::int64_t lda, const std::complex<R>* b,
                  std::complex<R>* c, std::int64_t ldc) {
  constexpr std::int64_t width = lanes<R>, elements = width / 2;
  for (std::int64_t i = 0; i < m; ++i, a += lda, c += ldc) {
    Vector<R> by_re{}, by_im{};  // a re(b) and a im(b)
    std::int64_t j = 0;
    for (; j + elements <= k; j += elements) {
      const Vector<R> x = load(reinterpret_cast<const R*>(a + j)), y = load(reinterpret_cast<const R*>(b + j));
      by_re += real_twice<R>(y) * x;
      by_im += imag_twice<R>(y) * x;
    }
    const Vector<R> sums = add_lanes<R, 2>(by_re + turned<R>(by_im));
    std::complex<R> sum(sums[0], sums[1]);
    for (; j < k; ++j) sum += math::times(a[j], b[j]);
    *c = sum;
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

}  // namespace reel::cpu
