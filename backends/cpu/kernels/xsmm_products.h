// Real products by libxsmm, which generates code for each shape. It is for x86-64 only; a build without it
// (REEL_LIBXSMM not defined) leaves all to OpenBLAS.
#pragma once
#ifdef REEL_LIBXSMM
#include <libxsmm.h>
#endif

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/product.h"
#include "backends/cpu/simd/vectors.h"

namespace reel::cpu {

#ifdef REEL_LIBXSMM
/// False if libxsmm could not allocate its kernel registry, which dispatch would look up regardless.
inline bool xsmm_is_ready() {
  static const bool ready = [] {
    libxsmm_registry_info info{};
    return libxsmm_get_registry_info(&info) == 0;
  }();
  return ready;
}

/// libxsmm's kernel for c (+)= a b or a' b. libxsmm is column-major, so m and n are swapped, and so are a and b.
/// Kernels are never freed, so each thread remembers them: libxsmm takes longer to find one than a small product takes.
template <class T>
auto xsmm_kernel(const Product<T>& p, std::int64_t k, bool add) {
  const auto dispatch = [&] {
    const auto whole = [](std::int64_t i) { return static_cast<libxsmm_blasint>(i); };
    const libxsmm_blasint lda = whole(p.ldb), ldb = whole(p.lda), ldc = whole(p.ldc);
    const T one(1), sum(add ? 1 : 0);
    const int flags = p.form_a == CblasTrans ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    if constexpr (std::is_same_v<T, float>)
      return libxsmm_smmdispatch(whole(p.n), whole(p.m), whole(k), &lda, &ldb, &ldc, &one, &sum, &flags, nullptr);
    else
      return libxsmm_dmmdispatch(whole(p.n), whole(p.m), whole(k), &lda, &ldb, &ldc, &one, &sum, &flags, nullptr);
  };
  using Key = std::array<std::int64_t, 7>;
  constexpr std::size_t slots = 64;
  thread_local std::array<std::pair<Key, decltype(dispatch())>, slots> known{};
  const Key key{p.m, p.n, k, p.lda, p.ldb, p.ldc, (p.form_a == CblasTrans ? 2 : 0) + (add ? 1 : 0)};
  std::uint64_t hash = 0;
  for (const std::int64_t i : key) hash = (hash ^ static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15;
  auto& [held, kernel] = known[hash >> 58];
  if (held != key || !kernel) {
    kernel = dispatch();
    held = key;
  }
  return kernel;
}

/// Rows of a matrix, `most` at a time: where they lie, or copied side by side if they are a multiple of 2 KB apart,
/// since then they share few sets of the L1 cache. That pays for 32 rows, of which each number is read at least 32
/// times.
template <class T>
class RowBlocks {
 public:
  RowBlocks(const T* first, std::int64_t stride, std::int64_t width, std::int64_t most, std::int64_t reads)
      : first_(first), stride_(stride), width_(width) {
    constexpr std::int64_t alias = 2048 / sizeof(T), line = 64 / sizeof(T), many = 32;
    if (stride % alias != 0 || most < many || reads < many) return;
    apart_ = width + line;
    copy_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(most * apart_));
  }
  std::int64_t stride() const { return copy_ ? apart_ : stride_; }
  const T* at(std::int64_t row, std::int64_t count) {
    const T* from = first_ + row * stride_;
    if (!copy_) return from;
    for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * stride_, width_, copy_.get() + i * apart_);
    return copy_.get();
  }

 private:
  const T* first_;
  std::int64_t stride_, width_, apart_ = 0;
  std::unique_ptr<T[]> copy_;
};

/// False if libxsmm has no code for the product.
template <class T>
bool by_xsmm(const Product<T>& p) {
  if constexpr (is_complex_type<T>) {
    return false;
  } else {
    if (p.form_b != CblasNoTrans || !xsmm_is_ready()) return false;
    if (p.form_a == CblasNoTrans) {
      if (exceeds_cache(p)) return false;
      const auto kernel = xsmm_kernel(p, p.k, false);
      if (kernel) kernel(p.b, p.a, p.c);
      return kernel != nullptr;
    }
    // a' b with long columns is the gradient of a weight: a few rows at a time, which stay in the L1 cache. That does
    // not change the order of the sums.
    constexpr std::int64_t some = 32, lanes = 16, most_results = 1 << 20;
    if (p.m * p.n > most_results) return false;
    if (p.n < lanes && p.m > p.n) {  // libxsmm vectorizes along n, too short here: compute (b' a)' instead
      std::vector<T> turned(static_cast<std::size_t>(p.m * p.n));
      const Product<T> q{CblasTrans, CblasNoTrans, p.n, p.m, p.k, p.b, p.ldb, p.a, p.lda, turned.data(), p.m};
      if (!by_xsmm(q)) return false;
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) p.c[i * p.ldc + j] = turned[static_cast<std::size_t>(j * p.m + i)];
      }
      return true;
    }
    const std::int64_t most = std::min(some, p.k);
    RowBlocks<T> a(p.a, p.lda, p.m, most, p.n), b(p.b, p.ldb, p.n, most, p.m);
    Product<T> q = p;
    q.lda = a.stride(), q.ldb = b.stride();
    const std::int64_t rest = p.k % some;
    const auto first = xsmm_kernel(q, most, false), next = p.k > some ? xsmm_kernel(q, some, true) : first,
               last = rest > 0 && p.k > some ? xsmm_kernel(q, rest, true) : next;
    if (!first || !next || !last) return false;
    for (std::int64_t k = 0; k < p.k; k += some) {
      const std::int64_t rows = std::min(some, p.k - k);
      (k == 0 ? first : rows < some ? last : next)(b.at(k, rows), a.at(k, rows), p.c);
    }
    return true;
  }
}

#else
inline bool xsmm_is_ready() { return false; }

template <class T>
void (*xsmm_kernel(const Product<T>&, std::int64_t, bool))(const T*, const T*, T*) {
  return nullptr;
}

template <class T>
bool by_xsmm(const Product<T>&) {
  return false;
}
#endif

}  // namespace reel::cpu
