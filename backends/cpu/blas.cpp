// Products, by OpenBLAS. Row-major throughout.
#include <cblas.h>

#include "backends/cpu/cpu.h"

namespace reel::cpu {

void Cpu::set_threads(int threads) { openblas_set_num_threads(threads); }

namespace {

/// What BLAS calls the form of a side. Conjugating without transposing is OpenBLAS's own addition.
template <class T>
CBLAS_TRANSPOSE form(bool transpose, bool conj) {
  if (!is_complex_type<T> || !conj) return transpose ? CblasTrans : CblasNoTrans;
  return transpose ? CblasConjTrans : CblasConjNoTrans;
}

template <class T>
void gemm_one(const GemmArgs& g, const T* a, const T* b, T* c) {
  const auto m = static_cast<blasint>(g.m), n = static_cast<blasint>(g.n), k = static_cast<blasint>(g.k);
  const CBLAS_TRANSPOSE ta = form<T>(g.transpose_a, g.conj_a), tb = form<T>(g.transpose_b, g.conj_b);
  const blasint lda = g.transpose_a ? m : k, ldb = g.transpose_b ? k : n;
  const T one(1), zero(0);
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, one, a, lda, b, ldb, zero, c, n);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, one, a, lda, b, ldb, zero, c, n);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, &one, a, lda, b, ldb, &zero, c, n);
  else
    cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, &one, a, lda, b, ldb, &zero, c, n);
}

}  // namespace

void Cpu::gemm(const GemmArgs& g) {
  dispatch(g.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T> || is_complex_type<T>) {
      const T *a = static_cast<const T*>(g.a), *b = static_cast<const T*>(g.b);
      T* c = static_cast<T*>(g.c);
      if (g.m == 0 || g.n == 0) return;
      for (std::int64_t i = 0; i < g.batch; ++i, a += g.stride_a, b += g.stride_b, c += g.m * g.n) {
        if (g.k == 0)
          std::fill_n(c, g.m * g.n, T{});  // an empty sum; BLAS wants leading dimensions of 1 or more
        else
          gemm_one(g, a, b, c);
      }
    } else {
      unsupported("gemm of integers or bool");
    }
  });
}

}  // namespace reel::cpu
