// Matrix products, row-major: by libxsmm (which generates code for each shape) where possible, by OpenBLAS otherwise.
// On the device "cpu,bf16" large ones of f32 are oneDNN's (bf16_weights.h).
// All run single-threaded here. A large product outside of a loop's shards is cut into parts by its sizes alone, so its
// bits depend neither on the number of threads nor on how a library divides work among cores.
#include <cblas.h>

#include <limits>
#include <memory>
#include <sstream>
#include <vector>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/bf16_weights.h"
#include "backends/cpu/kernels/openblas_kernels.h"
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
    if (!has_few_columns(p)) return false;
    few_columns(p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc);
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

template <class T>
bool by_chunks(Product<T> p);

template <class T>
void multiply(const Product<T>& p) {
  if (!by_chunks(p) && !by_loop(p) && !by_xsmm(p) && !by_small_parts(p)) by_blas(p);
}

/// A few long sums: in chunks, added up in double precision, or the error would grow with their length. False for all
/// others. The kernels for a transposed a have chunks of their own.
template <class T>
bool by_chunks(Product<T> p) {
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
    multiply(q);
    for (std::int64_t i = 0; i < p.m * p.n; ++i) total[i] += part[i];
  }
  for (std::int64_t i = 0; i < p.m * p.n; ++i) p.c[i / p.n * p.ldc + i % p.n] = static_cast<T>(total[i]);
  return true;
}

/// Transposes b, as libxsmm needs it, if there are enough rows to pay for that; the result owns the memory that p.b
/// then points to.
template <class T>
std::vector<T> turn_b(Product<T>& p, Backend& cpu) {
  constexpr std::int64_t many = 64;
  std::vector<T> turned;
  if (!with_libxsmm || is_complex_type<T> || has_few_columns(p)) return turned;
  if (p.form_b != CblasTrans || p.form_a != CblasNoTrans || p.m < many || exceeds_cache(p)) return turned;
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

constexpr std::int64_t worth_a_thread = std::int64_t{1} << 17;  // fewest multiplications that pay for a second thread

/// Along which axis a product is cut into parts, and how long a part is.
struct Cut {
  enum class Axis : std::uint8_t { rows, columns, sum } axis = Axis::rows;
  std::int64_t extent = 0, length = 0;
  int parts() const { return static_cast<int>((extent + length - 1) / length); }
};

/// Follows from sizes alone. Long sums with few results (the gradient of a weight) become partial sums, others parts of
/// the result.
template <class T>
Cut cut_of(const Product<T>& p) {
  constexpr std::int64_t most = 16, grain = 16, few_results = std::int64_t{1} << 16, long_sum = 1024;
  const auto cut = [&](Cut::Axis axis, std::int64_t extent, std::int64_t shortest, std::int64_t multiple) {
    const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const auto worth = static_cast<std::int64_t>(std::min<double>(most, work / worth_a_thread));
    const std::int64_t parts = std::max<std::int64_t>(1, std::min(worth, extent / shortest));
    return Cut{axis, extent, ((extent + parts - 1) / parts + multiple - 1) / multiple * multiple};
  };
  if (p.m * p.n <= few_results && p.k >= 2 * long_sum) return cut(Cut::Axis::sum, p.k, long_sum, 256);
  const std::int64_t shortest = exceeds_cache(p) ? 256 : 32;  // OpenBLAS packs the other operand for each part
  return p.m >= p.n ? cut(Cut::Axis::rows, p.m, shortest, grain) : cut(Cut::Axis::columns, p.n, shortest, grain);
}

/// Multiplies the parts of a product on all threads.
template <class T>
void multiply_in_parts(const Product<T>& p, ThreadPool& pool) {
  const Cut cut = cut_of(p);
  const int parts = cut.parts();
  if (parts == 1) return multiply(p);
  const std::int64_t results = p.m * p.n;
  const bool sum = cut.axis == Cut::Axis::sum;
  const auto partial =
      sum ? std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>((parts - 1) * results)) : nullptr;
  pool.run(parts, [&](int i) {
    const std::int64_t first = i * cut.length, last = std::min(cut.extent, first + cut.length);
    if (!sum) return multiply(cut.axis == Cut::Axis::rows ? p.part(first, last, 0, p.n) : p.part(0, p.m, first, last));
    Product<T> q = p.terms(first, last);
    if (i > 0) {
      q.c = partial.get() + (i - 1) * results;
      q.ldc = p.n;
    }
    multiply(q);
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
      const auto one = [&](std::int64_t i) {
        Product<T> p = all;
        p.a += i * g.stride_a;
        p.b += i * g.stride_b;
        p.c += i * g.m * g.n;
        return p;
      };
      if (g.batch > 1) {
        shared(
            g.batch, std::max<std::int64_t>(2, worth_a_thread / g.k / (g.m * g.n)),
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
      if (ThreadPool::inside()) return multiply(all);
      multiply_in_parts(all, pool_);
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
