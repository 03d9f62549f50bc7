// Matrix products, row-major: by libxsmm (which generates code for each shape) where possible, by OpenBLAS otherwise.
// On the device "cpu,bf16" large ones of f32 are oneDNN's (bf16_weights.h).
// All run single-threaded here. A large product outside of a loop's shards is cut into parts by its sizes alone, so its
// bits depend neither on the number of threads nor on how a library divides work among cores.
#include <cblas.h>

#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/bf16_weights.h"
#include "backends/cpu/kernels/loop_weights.h"
#include "backends/cpu/kernels/openblas_kernels.h"
#include "backends/cpu/kernels/panels.h"
#include "backends/cpu/kernels/thin_products.h"
#include "backends/cpu/kernels/xsmm_products.h"
#include "backends/cpu/product_libraries.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

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

/// Real, with so few columns that vectorizing along the sums fills vectors better.
template <class T>
bool has_few_columns(const Product<T>& p) {
  return !is_complex_type<T> && p.form_a == CblasNoTrans && p.form_b == CblasTrans && is_narrow_product(p.n, p.k);
}

/// Handles products with few columns or rows; false for all others.
template <class T>
bool by_loop(const Product<T>& p) {
  if constexpr (!is_complex_type<T>) {
    constexpr std::int64_t few_rows = 2, some_terms = 16, large = std::int64_t{1} << 16;
    if (p.form_a != CblasNoTrans) return false;
    if (p.n == 1 && p.ldc == 1 && p.k >= some_terms && p.ldb == 1) {  // a is the longer side
      few_columns(1, p.m, p.k, p.b, p.k, p.a, p.lda, p.c, p.m);
    } else if (p.transpose_b() && ((p.m <= few_rows && p.k >= some_terms / 2) || has_few_columns(p))) {
      few_columns(p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc);
    } else if (!p.transpose_b() && p.m == 1 && p.n * p.k >= large) {
      row_times(p.n, p.k, p.a, p.b, p.ldb, p.c);
    } else {
      return false;
    }
    return true;
  } else {
    constexpr std::int64_t longest = 512;
    const bool ta = p.transpose_a(), tb = p.transpose_b();
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

/// Multiplies few rows by a weight's transpose, in parts so small that OpenBLAS takes its kernels for small products:
/// they do not copy the weight. False for all others.
template <class T>
bool by_small_parts(const Product<T>& p) {
  constexpr std::int64_t small = 1 << 16, few = 128 / sizeof(T), grain = 16;
  if (is_complex_type<T> || p.form_a != CblasNoTrans || p.form_b != CblasTrans || p.m > few) return false;
  const std::int64_t width = std::max(grain, small / (p.m * p.k) / grain * grain);
  for (std::int64_t j = 0; j < p.n; j += width) by_blas(p.part(0, p.m, j, std::min(p.n, j + width)));
  return true;
}

/// Could the right side be in panels? Not where other code is faster: for few columns, and OpenBLAS blocks the largest.
template <class T>
bool suits_panels(const Product<T>& p) {
  constexpr std::int64_t largest = 10 << 20;  // bytes
  return p.form_a == CblasNoTrans && p.n > 1 && !has_few_columns(p) && bytes_of_b(p) <= largest && Panels<T>::exist();
}

/// Does a copy of b in panels pay for this product alone? libxsmm needs one if b is transposed.
template <class T>
bool pays_for_panels(const Product<T>& p) {
  constexpr std::int64_t many = 64, some_terms = 16;
  if (p.m < many || !suits_panels(p) || exceeds_cache(p)) return false;
  if (p.transpose_b()) return true;
  return p.k >= some_terms && (Panels<T>::pads(p.n) || bytes_of_b(p) >= LoopWeights::smallest);
}

/// Those of a loop's weight, made at its first product; null if it is none, or too few rows are multiplied by it.
template <class T>
const Panels<T>* panels_of_loop(const Product<T>& p, const GemmArgs& g, Backend& cpu) {
  constexpr std::int64_t many = 32;
  LoopWeights* const loop = LoopWeights::current();
  if (!loop || !suits_panels(p)) return nullptr;
  LoopWeights::Weight* const weight = loop->find(g);
  if (!weight || weight->rows < many) return nullptr;
  return &weight->as<Panels<T>>([&] { return Panels<T>(cpu, p); });
}

template <class T>
bool by_panels(const Product<T>& p, Backend& cpu) {
  return pays_for_panels(p) && Panels<T>(cpu, p).multiply(p);
}

template <class T>
bool by_chunks(Product<T> p, Backend& cpu);

template <class T>
void multiply(const Product<T>& p, Backend& cpu) {
  if (!by_chunks(p, cpu) && !by_loop(p) && !by_panels(p, cpu) && !by_xsmm(p) && !by_small_parts(p)) by_blas(p);
}

/// A few long sums: in chunks, added up in double precision, or the error would grow with their length. False for all
/// others. The kernels for a transposed a have chunks of their own.
template <class T>
bool by_chunks(Product<T> p, Backend& cpu) {
  constexpr std::int64_t few = 64, some = 1024, long_sum = 4096;
  if (p.m * p.n > few || p.k < long_sum) return false;
  if constexpr (!is_complex_type<T>) {  // a vector is its own transpose: as rows, both are read along the sum
    if (p.m == 1 && p.form_a == CblasTrans && p.lda == 1) p.form_a = CblasNoTrans, p.lda = p.k;
    if (p.n == 1 && p.form_b == CblasNoTrans && p.ldb == 1) p.form_b = CblasTrans, p.ldb = p.k;
  }
  if (p.transpose_a()) return false;
  std::conditional_t<is_complex_type<T>, std::complex<double>, double> total[few] = {};
  T part[few];
  for (std::int64_t k = 0; k < p.k; k += some) {
    Product<T> q = p.terms(k, std::min(p.k, k + some));
    q.c = part, q.ldc = p.n;
    multiply(q, cpu);
    for (std::int64_t i = 0; i < p.m * p.n; ++i) total[i] += part[i];
  }
  for (std::int64_t i = 0; i < p.m * p.n; ++i) p.c[i / p.n * p.ldc + i % p.n] = static_cast<T>(total[i]);
  return true;
}

constexpr std::int64_t worth_a_thread = std::int64_t{1} << 17;  // fewest multiplications that pay for a second thread
constexpr std::int64_t shortest_sum = 1024;                     // terms of a part of a long sum

/// Along which axis a product is cut into parts, and how long a part is.
struct Cut {
  enum class Axis : std::uint8_t { rows, columns, sum } axis = Axis::rows;
  std::int64_t extent = 0, length = 0;
  int parts() const { return static_cast<int>((extent + length - 1) / length); }
};

/// Follows from sizes alone. Long sums with few results (the gradient of a weight) become partial sums, others parts of
/// the result; of a right side in panels, whole panels.
template <class T>
Cut cut_of(const Product<T>& p, bool long_sum, bool in_panels) {
  constexpr std::int64_t most = 16, grain = 16;
  const auto cut = [&](Cut::Axis axis, std::int64_t extent, std::int64_t shortest, std::int64_t multiple) {
    const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const auto worth = static_cast<std::int64_t>(std::min<double>(most, work / worth_a_thread));
    const std::int64_t parts = std::max<std::int64_t>(1, std::min(worth, extent / shortest));
    return Cut{axis, extent, ((extent + parts - 1) / parts + multiple - 1) / multiple * multiple};
  };
  if (long_sum) return cut(Cut::Axis::sum, p.k, shortest_sum, 256);
  const std::int64_t shortest = !in_panels && exceeds_cache(p) ? 256 : 32;  // OpenBLAS packs an operand for each part
  return p.m >= p.n ? cut(Cut::Axis::rows, p.m, shortest, grain)
                    : cut(Cut::Axis::columns, p.n, shortest, in_panels ? Panels<T>::width : grain);
}

/// Multiplies the parts of a product on all threads. `panels`: of a loop's weight; null: it is none.
template <class T>
void multiply_in_parts(const Product<T>& p, const Panels<T>* panels, Backend& cpu) {
  constexpr std::int64_t few_results = std::int64_t{1} << 16;
  const bool sum = !panels && p.m * p.n <= few_results && p.k >= 2 * shortest_sum;
  std::optional<Panels<T>> own;
  if (!panels && !sum && pays_for_panels(p)) panels = &own.emplace(cpu, p);
  const Cut cut = cut_of(p, sum, panels != nullptr);
  const int parts = cut.parts();
  const auto one = [&](const Product<T>& q, std::int64_t first_column) {
    if (!panels || !panels->multiply(q, first_column)) multiply(q, cpu);
  };
  if (parts == 1) return one(p, 0);
  const std::int64_t results = p.m * p.n;
  const auto partial =
      sum ? std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>((parts - 1) * results)) : nullptr;
  cpu.parallel(parts, [&](int i) {
    const std::int64_t first = i * cut.length, last = std::min(cut.extent, first + cut.length);
    if (cut.axis == Cut::Axis::rows) return one(p.part(first, last, 0, p.n), 0);
    if (cut.axis == Cut::Axis::columns) return one(p.part(0, p.m, first, last), first);
    Product<T> q = p.terms(first, last);
    if (i > 0) {
      q.c = partial.get() + (i - 1) * results;
      q.ldc = p.n;
    }
    multiply(q, cpu);
  });
  for (int i = 1; sum && i < parts; ++i) {
    const T* more = partial.get() + (i - 1) * results;
    for (std::int64_t r = 0; r < p.m; ++r, more += p.n) {
      for (std::int64_t j = 0; j < p.n; ++j) p.c[r * p.ldc + j] += more[j];
    }
  }
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
      if (all.n == 1 && all.form_b == CblasTrans) all.form_b = CblasNoTrans, all.ldb = 1;
      const auto one = [&](std::int64_t i) {
        Product<T> p = all;
        p.a += i * g.stride_a;
        p.b += i * g.stride_b;
        p.c += i * g.m * g.n;
        return p;
      };
      const Panels<T>* const panels = panels_of_loop(all, g, *this);
      const auto on_this_thread = [&](const Product<T>& p) {
        if (!panels || !panels->multiply(p)) multiply(p, *this);
      };
      if (g.batch > 1) {
        shared(
            g.batch, std::max<std::int64_t>(2, worth_a_thread / g.k / (g.m * g.n)),
            [&](std::int64_t first, std::int64_t last) {
              for (std::int64_t i = first; i < last; ++i) on_this_thread(one(i));
            },
            1);
        return;
      }
      if (ThreadPool::inside()) return on_this_thread(all);
      multiply_in_parts(all, panels, *this);
    } else {
      unsupported("gemm of integers or bool");
    }
  });
}

std::string product_libraries() {
  replace_fallback_kernels();
  std::istringstream config(openblas_get_config());  // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Cooperlake ..."
  std::string name, number;
  config >> name >> number;
  std::string out = fmt::format("{} {} {}", name, number, openblas_get_corename());
#ifdef REEL_LIBXSMM
  out += fmt::format("; libxsmm {} {}", LIBXSMM_VERSION, libxsmm_get_target_arch());
#endif
  return out;
}

}  // namespace reel::cpu
