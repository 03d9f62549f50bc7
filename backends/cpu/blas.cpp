// Products: by libxsmm where it can, which makes code for each shape, by OpenBLAS else. Row-major throughout. Both work
// on one thread at a time here: the team shares out the rows or columns of the result, so that results do not depend on
// what a library thinks of the number of cores.
#include <cblas.h>
#include <libxsmm.h>

#include "backends/cpu/cpu.h"

namespace reel::cpu {

namespace {

/// What BLAS calls the form of a side. Conjugating without transposing is OpenBLAS's own addition.
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

  /// The part of it that makes rows i0..i1 and columns j0..j1 of c.
  Product part(std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) const {
    const bool ta = form_a == CblasTrans || form_a == CblasConjTrans,
               tb = form_b == CblasTrans || form_b == CblasConjTrans;
    return {form_a,  form_b,
            i1 - i0, j1 - j0,
            k,       a + i0 * (ta ? 1 : lda),
            lda,     b + j0 * (tb ? ldb : 1),
            ldb,     c + i0 * ldc + j0,
            ldc};
  }
};

template <class T>
void by_blas(const Product<T>& p) {
  const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n), k = static_cast<blasint>(p.k);
  const auto lda = static_cast<blasint>(p.lda), ldb = static_cast<blasint>(p.ldb), ldc = static_cast<blasint>(p.ldc);
  const T one(1), zero(0);
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasRowMajor, p.form_a, p.form_b, m, n, k, one, p.a, lda, p.b, ldb, zero, p.c, ldc);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(CblasRowMajor, p.form_a, p.form_b, m, n, k, one, p.a, lda, p.b, ldb, zero, p.c, ldc);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_cgemm(CblasRowMajor, p.form_a, p.form_b, m, n, k, &one, p.a, lda, p.b, ldb, &zero, p.c, ldc);
  else
    cblas_zgemm(CblasRowMajor, p.form_a, p.form_b, m, n, k, &one, p.a, lda, p.b, ldb, &zero, p.c, ldc);
}

/// False where libxsmm has no code for it. It counts columns first: what is a row to us is a column to it.
template <class T>
bool by_xsmm(const Product<T>& p) {
  if constexpr (is_complex_type<T>) {
    return false;
  } else {
    constexpr std::int64_t largest = std::int64_t{1} << 20;  // elements of b: beyond the caches, blocking wins
    if (p.form_a != CblasNoTrans || p.form_b != CblasNoTrans || p.n * p.k > largest) return false;
    const auto m = static_cast<libxsmm_blasint>(p.n), n = static_cast<libxsmm_blasint>(p.m),
               k = static_cast<libxsmm_blasint>(p.k), lda = static_cast<libxsmm_blasint>(p.ldb),
               ldb = static_cast<libxsmm_blasint>(p.lda), ldc = static_cast<libxsmm_blasint>(p.ldc);
    const T one(1), zero(0);
    const int flags = LIBXSMM_GEMM_FLAG_NONE;
    const auto call = [&](auto kernel) {
      if (kernel) kernel(p.b, p.a, p.c);
      return kernel != nullptr;
    };
    if constexpr (std::is_same_v<T, float>)
      return call(libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, &one, &zero, &flags, nullptr));
    else
      return call(libxsmm_dmmdispatch(m, n, k, &lda, &ldb, &ldc, &one, &zero, &flags, nullptr));
  }
}

template <class T>
void multiply(const Product<T>& p) {
  if (!by_xsmm(p)) by_blas(p);
}

}  // namespace

void Cpu::gemm(const GemmArgs& g) {
  dispatch(g.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T> || is_complex_type<T>) {
      if (g.m == 0 || g.n == 0 || g.batch == 0) return;
      Product<T> all{form<T>(g.transpose_a, g.conj_a),
                     form<T>(g.transpose_b, g.conj_b),
                     g.m,
                     g.n,
                     g.k,
                     static_cast<const T*>(g.a),
                     g.transpose_a ? g.m : g.k,
                     static_cast<const T*>(g.b),
                     g.transpose_b ? g.k : g.n,
                     static_cast<T*>(g.c),
                     g.n};
      if (g.k == 0) {
        std::fill_n(all.c, g.batch * g.m * g.n, T{});  // an empty sum; BLAS wants leading dimensions of 1 or more
        return;
      }
      const std::int64_t enough = (std::int64_t{1} << 17) / g.k;  // elements of c that are worth a second thread
      const auto one = [&](std::int64_t i) {
        Product<T> p = all;
        p.a += i * g.stride_a;
        p.b += i * g.stride_b;
        p.c += i * g.m * g.n;
        return p;
      };
      if (g.batch > 1) {
        shared(
            g.batch, std::max<std::int64_t>(2, enough / (g.m * g.n)),
            [&](std::int64_t first, std::int64_t last) {
              for (std::int64_t i = first; i < last; ++i) multiply(one(i));
            },
            1);
      } else if (g.m >= g.n) {
        shared(
            g.m, enough / g.n, [&](std::int64_t i, std::int64_t j) { multiply(all.part(i, j, 0, g.n)); }, 16);
      } else {
        shared(
            g.n, enough / g.m, [&](std::int64_t i, std::int64_t j) { multiply(all.part(0, g.m, i, j)); }, 16);
      }
    } else {
      unsupported("gemm of integers or bool");
    }
  });
}

}  // namespace reel::cpu
