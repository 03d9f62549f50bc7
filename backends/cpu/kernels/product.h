// A matrix product as the libraries take it: where its operands lie, and parts of it.
#pragma once
#include <cblas.h>

#include "ops/functors/math.h"

namespace reel::cpu {

/// The BLAS transpose flag of an operand. Conjugation without transposition is an OpenBLAS extension.
template <class T>
CBLAS_TRANSPOSE form(bool transpose, bool conj) {
  if (!is_complex_type<T> || !conj) return transpose ? CblasTrans : CblasNoTrans;
  return transpose ? CblasConjTrans : CblasConjNoTrans;
}

/// c [m, n] = op(a) op(b), rows of c `ldc` elements apart.
template <class T>
struct Product {
  CBLAS_TRANSPOSE form_a, form_b;
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;

  bool transpose_a() const { return form_a == CblasTrans || form_a == CblasConjTrans; }
  bool transpose_b() const { return form_b == CblasTrans || form_b == CblasConjTrans; }
  /// The part of the product that computes rows i0..i1 and columns j0..j1 of c.
  Product part(std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) const {
    Product p = *this;
    p.m = i1 - i0;
    p.n = j1 - j0;
    p.a += i0 * (transpose_a() ? 1 : lda);
    p.b += j0 * (transpose_b() ? ldb : 1);
    p.c += i0 * ldc + j0;
    return p;
  }
  /// The terms k0..k1 of its sums.
  Product terms(std::int64_t k0, std::int64_t k1) const {
    Product p = *this;
    p.k = k1 - k0;
    p.a += k0 * (transpose_a() ? lda : 1);
    p.b += k0 * (transpose_b() ? 1 : ldb);
    return p;
  }
};

template <class T>
std::int64_t bytes_of_b(const Product<T>& p) {
  return p.n * p.k * static_cast<std::int64_t>(sizeof(T));
}

/// Is the second factor too large for libxsmm, which does not block for the caches? OpenBLAS does, by copying it, which
/// enough rows pay for. Rows a multiple of 4 KB apart share few places in the cache.
template <class T>
bool exceeds_cache(const Product<T>& p) {
  constexpr std::int64_t largest = 4 << 20, large = 2 << 20, page = 4096, long_sum = 512, some = 24;  // bytes; rows
  const auto size = static_cast<std::int64_t>(sizeof(T)), bytes = bytes_of_b(p);
  if (bytes > largest) return true;
  return p.m >= some && (bytes >= large || (p.k >= long_sum && p.ldb * size % page == 0));
}

}  // namespace reel::cpu
