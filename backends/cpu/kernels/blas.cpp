// Matrix products, row-major: by libxsmm (which generates code for each shape) where possible, by OpenBLAS otherwise.
// On the device "cpu,bf16" large ones of f32 are oneDNN's (bf16_weights.h).
// All run single-threaded here; the thread pool divides the rows or columns of the result, so results do not depend on
// how a library divides work among cores.
#include <cblas.h>
#include <libxsmm.h>

#include <limits>

#include <vector>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/bf16_weights.h"
#include "backends/cpu/kernels/thin_products.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 20;  // elements for libxsmm; beyond the caches, blocking wins

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

  /// The part of the product that computes rows i0..i1 and columns j0..j1 of c.
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

/// False if libxsmm could not allocate its kernel registry, which dispatch would look up regardless.
bool xsmm_is_ready() {
  static const bool ready = [] {
    libxsmm_registry_info info{};
    return libxsmm_get_registry_info(&info) == 0;
  }();
  return ready;
}

/// libxsmm's kernel for c (+)= a b or a' b. libxsmm is column-major, so m and n are swapped, and so are a and b.
template <class T>
auto xsmm_kernel(const Product<T>& p, std::int64_t k, bool add) {
  const auto whole = [](std::int64_t i) { return static_cast<libxsmm_blasint>(i); };
  const libxsmm_blasint lda = whole(p.ldb), ldb = whole(p.lda), ldc = whole(p.ldc);
  const T one(1), sum(add ? 1 : 0);
  const int flags = p.form_a == CblasTrans ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  if constexpr (std::is_same_v<T, float>)
    return libxsmm_smmdispatch(whole(p.n), whole(p.m), whole(k), &lda, &ldb, &ldc, &one, &sum, &flags, nullptr);
  else
    return libxsmm_dmmdispatch(whole(p.n), whole(p.m), whole(k), &lda, &ldb, &ldc, &one, &sum, &flags, nullptr);
}

/// False if libxsmm has no code for the product.
template <class T>
bool by_xsmm(const Product<T>& p) {
  if constexpr (is_complex_type<T>) {
    return false;
  } else {
    if (p.form_b != CblasNoTrans || !xsmm_is_ready()) return false;
    if (p.form_a == CblasNoTrans) {
      if (p.n * p.k > largest) return false;
      const auto kernel = xsmm_kernel(p, p.k, false);
      if (kernel) kernel(p.b, p.a, p.c);
      return kernel != nullptr;
    }
    // a' b with long columns is the gradient of a weight: it runs over chunks of rows, which also keeps the sums
    // accurate.
    constexpr std::int64_t some = 256, lanes = 16;
    if (p.m * p.n > largest) return false;
    if (p.n < lanes && p.m > p.n) {  // libxsmm vectorizes along n, too short here: compute (b' a)' instead
      std::vector<T> turned(static_cast<std::size_t>(p.m * p.n));
      const Product<T> q{CblasTrans, CblasNoTrans, p.n, p.m, p.k, p.b, p.ldb, p.a, p.lda, turned.data(), p.m};
      if (!by_xsmm(q)) return false;
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] = turned[static_cast<std::size_t>(j * p.m + i)];
      }
      return true;
    }
    for (std::int64_t k = 0; k < p.k; k += some) {
      const auto kernel = xsmm_kernel(p, std::min(some, p.k - k), k > 0);
      if (!kernel) return false;
      kernel(p.b + k * p.ldb, p.a + k * p.lda, p.c);
    }
    return true;
  }
}

/// Real, with so few columns that vectorizing along the sums fills vectors better.
template <class T>
bool has_few_columns(const Product<T>& p) {
  return !is_complex_type<T> && p.form_a == CblasNoTrans && p.form_b == CblasTrans && is_narrow_product(p.n, p.k);
}

/// Handles products with few columns or rows; false for all others.
template <class T>
bool by_loop(const Product<T>& p) {
  if constexpr (!is_complex_type<T>) {
    if (!has_few_columns(p)) return false;
    few_columns(p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc);
    return true;
  } else {
    constexpr std::int64_t longest = 512;
    const bool ta = p.form_a == CblasTrans || p.form_a == CblasConjTrans,
               tb = p.form_b == CblasTrans || p.form_b == CblasConjTrans;
    const bool ca = p.form_a == CblasConjNoTrans || p.form_a == CblasConjTrans,
               cb = p.form_b == CblasConjNoTrans || p.form_b == CblasConjTrans;
    if (p.k == 1 && (!tb || p.ldb == 1)) {
      outer_product(p.m, p.n, p.a, ta ? 1 : p.lda, ca, p.b, cb, p.c, p.ldc);
      return true;
    }
    if (p.n == 1 && ta) {
      turned_times_column(p.m, p.k, p.a, p.lda, ca, p.b, tb ? 1 : p.ldb, cb, p.c, p.ldc);
      return true;
    }
    if (p.n == 1 && !ta && !ca && (tb || p.ldb == 1)) {
      times_column(p.m, p.k, p.a, p.lda, p.b, cb, p.c, p.ldc);
      return true;
    }
    if (p.n == 1 && !ta && !ca && p.k <= longest) {
      T column[longest];
      for (std::int64_t j = 0; j < p.k; ++j) column[j] = p.b[j * p.ldb];
      times_column(p.m, p.k, p.a, p.lda, column, cb, p.c, p.ldc);
      return true;
    }
  }
  return false;
}

template <class T>
void multiply(const Product<T>& p) {
  if (!by_loop(p) && !by_xsmm(p)) by_blas(p);
}

/// Transposes b, as libxsmm needs it, if there are enough rows to pay for that; the result owns the memory that p.b
/// then points to.
template <class T>
std::vector<T> turn_b(Product<T>& p, Backend& cpu) {
  constexpr std::int64_t many = 64;
  std::vector<T> turned;
  if (p.form_b != CblasTrans || p.form_a != CblasNoTrans || p.m < many || p.n * p.k > largest || is_complex_type<T>)
    return turned;
  if (has_few_columns(p)) return turned;
  turned.resize(static_cast<std::size_t>(p.n * p.k));
  StridedLoop<2> loop;
  loop.push(p.k, {1, p.n});
  loop.push(p.n, {p.ldb, 1});
  cpu.copy({dtype_of<T>(), loop, p.b, turned.data()});
  p.form_b = CblasNoTrans;
  p.b = turned.data();
  p.ldb = p.n;
  return turned;
}

}  // namespace

void Cpu::gemm(const GemmArgs& g) {
  dispatch(g.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T> || is_complex_type<T>) {
      if (g.m == 0 || g.n == 0 || g.batch == 0) return;
      constexpr std::int64_t longest = std::numeric_limits<blasint>::max();
      if (std::max({g.m, g.n, g.k}) > longest)
        throw Error("cpu",
                    fmt::format("a product has at most {} rows and columns, got {} x {} x {}", longest, g.m, g.k, g.n));
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
        std::fill_n(all.c, g.batch * g.m * g.n, T{});  // an empty sum; BLAS requires leading dimensions of at least 1
        return;
      }
      if (std::is_same_v<T, float> && bf16_ && bf16::multiply(*this, g)) return;
      const std::int64_t enough = (std::int64_t{1} << 17) / g.k;  // fewest elements of c that pay for a second thread
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
              for (std::int64_t i = first; i < last; ++i) {
                Product<T> p = one(i);
                const std::vector<T> turned = turn_b(p, *this);
                multiply(p);
              }
            },
            1);
        return;
      }
      const std::vector<T> turned = turn_b(all, *this);
      if (g.m >= g.n) {
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
