// row_function: softmax and its relatives, standardize, norms; one row at a time, with sums in double, or short rows by
// columns. cross_entropy.
#include <cmath>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/check_index.h"
#include "backends/cpu/kernels/reduce_ops.h"
#include "backends/cpu/simd/columns.h"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/threads/enough.h"
#include "backends/shared/lp_norm.h"

namespace reel::cpu {

namespace {

/// The sum of f(i) over i < n.
template <class F>
double sum_of(std::int64_t n, F&& f) {
  constexpr std::int64_t lanes = 32;  // as in reduce_run
  double lane[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t k = 0; k < lanes; ++k) lane[k] += f(i + k);
  }
  for (; i < n; ++i) lane[0] += f(i);
  return reduce_run<SumOp>(lane, lanes);
}

/// out = e^(x - top), where top is the largest x; returns the sum of out.
template <class T>
double exponentials(const T* x, std::int64_t n, T top, T* out) {
  const xsimd::batch<T> shift(top);
  map_simd(n, x, out, [&](const auto& v) { return math::exponential(v - shift); });
  return reduce_run<SumOp>(out, n);
}

template <class T>
void softmax(const T* x, std::int64_t n, T* out) {
  const T total = static_cast<T>(exponentials(x, n, reduce_run<MaxOp>(x, n), out));
  for (std::int64_t i = 0; i < n; ++i) out[i] /= total;
}

constexpr std::int64_t short_row = 128, short_softmax_row = 64;

/// Are rows of n numbers faster by columns?
template <class T>
bool is_short(RowFunction function, std::int64_t n) {
  switch (function) {
    case RowFunction::softmax:
    case RowFunction::log_softmax:
      return n > 0 && n <= short_softmax_row;
    case RowFunction::logsumexp:
      return n > 0 && n <= short_row;
    case RowFunction::standardize:
      return n > 0 && n * std::int64_t{sizeof(T)} <= 256;
    case RowFunction::norm:
      return false;
  }
  return false;
}

/// The largest of n columns. It may drop a NaN, which the sum of exponentials brings back.
template <class T>
xsimd::batch<T> largest_of(const T* columns, std::int64_t n) {
  constexpr std::size_t lanes = xsimd::batch<T>::size;
  auto top = xsimd::load_aligned(columns);
  for (std::int64_t j = 1; j < n; ++j) top = xsimd::max(top, xsimd::load_aligned(columns + j * lanes));
  return top;
}

/// The columns become e^(column - top) over the sum of these, which is returned.
template <class T>
xsimd::batch<T> softmax_of_columns(T* columns, std::int64_t n, const xsimd::batch<T>& top) {
  using Batch = xsimd::batch<T>;
  Batch total(T(0));
  T* const end = columns + n * Batch::size;
  for (T* c = columns; c < end; c += Batch::size) {
    const Batch e = math::exponential(Batch::load_aligned(c) - top);
    e.store_aligned(c);
    total += e;
  }
  for (T* c = columns; c < end; c += Batch::size) (Batch::load_aligned(c) / total).store_aligned(c);
  return total;
}

/// The sum of e^(column - shift).
template <class T>
xsimd::batch<T> sum_of_exponentials(const T* columns, std::int64_t n, const xsimd::batch<T>& shift) {
  using Batch = xsimd::batch<T>;
  Batch total(T(0));
  for (std::int64_t j = 0; j < n; ++j)
    total += math::exponential(Batch::load_aligned(columns + j * static_cast<std::int64_t>(Batch::size)) - shift);
  return total;
}

template <class T>
void short_softmax(const T* x, std::int64_t rows, std::int64_t n, T* out) {
  by_columns<short_row>(x, rows, n, out, [n](T* columns, std::int64_t, std::int64_t) {
    softmax_of_columns(columns, n, largest_of(columns, n));
  });
}

template <class T>
void short_log_softmax(const T* x, std::int64_t rows, std::int64_t n, T* out) {
  using Batch = xsimd::batch<T>;
  by_columns<short_row>(x, rows, n, out, [n](T* columns, std::int64_t, std::int64_t) {
    const Batch top = largest_of(columns, n), rest = math::logarithm(sum_of_exponentials(columns, n, top));
    T* const end = columns + n * Batch::size;
    for (T* c = columns; c < end; c += Batch::size) (Batch::load_aligned(c) - top - rest).store_aligned(c);
  });
}

template <class T>
void short_logsumexp(const T* x, std::int64_t rows, std::int64_t n, T* out) {
  using Batch = xsimd::batch<T>;
  each_columns<short_row>(x, rows, n, [n, out](T* columns, std::int64_t first, std::int64_t some) {
    const Batch top = largest_of(columns, n);
    const Batch shift = xsimd::select(xsimd::abs(top) < Batch(INFINITY), top, Batch(T(0)));  // inf - inf would be NaN
    (shift + math::logarithm(sum_of_exponentials(columns, n, shift))).store_aligned(columns);
    std::copy_n(columns, some, out + first);
  });
}

/// In double: a vector of columns is converted to as many vectors of doubles as it takes.
template <class T>
void short_standardize(const T* x, std::int64_t rows, std::int64_t n, double epsilon, T* out) {
  by_columns<short_row>(x, rows, n, out, [=](T* columns, std::int64_t, std::int64_t) {
    constexpr std::int64_t width = lanes<double>;
    for (std::int64_t first = 0; first < lanes<T>; first += width) {
      T *const from = columns + first, *const end = from + n * lanes<T>;
      Doubles mean{}, variance{};
      for (const T* c = from; c < end; c += lanes<T>) mean += load_doubles(c);
      mean /= static_cast<double>(n);
      for (const T* c = from; c < end; c += lanes<T>) {
        const Doubles d = load_doubles(c) - mean;
        variance += d * d;
      }
      alignas(64) double factor[width];
      store(factor, variance / static_cast<double>(n) + epsilon);
      (1.0 / xsimd::sqrt(xsimd::batch<double>::load_aligned(factor))).store_aligned(factor);
      for (T* c = from; c < end; c += lanes<T>)
        store(c, __builtin_convertvector((load_doubles(c) - mean) * load(factor), Vector<T, width>));
    }
  });
}

template <class T>
void short_cross_entropy(const T* x, const std::int32_t* target, std::int64_t rows, std::int64_t n, T* loss,
                         T* residual) {
  using Batch = xsimd::batch<T>;
  by_columns<short_row>(x, rows, n, residual, [=](T* columns, std::int64_t first, std::int64_t some) {
    alignas(64) T at_target[Batch::size] = {};
    for (std::int64_t k = 0; k < some; ++k) at_target[k] = x[(first + k) * n + target[first + k]];
    const Batch top = largest_of(columns, n), total = softmax_of_columns(columns, n, top);
    (math::logarithm(total) - (Batch::load_aligned(at_target) - top)).store_aligned(at_target);
    for (std::int64_t k = 0; k < some; ++k) {
      loss[first + k] = at_target[k];
      columns[target[first + k] * Batch::size + k] -= 1;
    }
  });
}

template <class T>
void log_softmax(const T* x, std::int64_t n, T* out) {
  const T top = reduce_run<MaxOp>(x, n), rest = static_cast<T>(std::log(exponentials(x, n, top, out)));
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] - top - rest;
}

template <class T>
T cross_entropy(const T* x, std::int32_t target, std::int64_t n, T* residual) {
  const T top = reduce_run<MaxOp>(x, n);
  const double total = exponentials(x, n, top, residual);
  for (std::int64_t i = 0; i < n; ++i) residual[i] /= static_cast<T>(total);
  residual[target] -= 1;
  return static_cast<T>(std::log(total)) - (x[target] - top);
}

template <class T>
T logsumexp(const T* x, std::int64_t n) {
  const T top = reduce_run<MaxOp>(x, n);
  if (!std::isfinite(top)) return top;  // NaN, infinity, or an empty row
  constexpr std::int64_t block = 512;
  T buffer[block];
  double total = 0;
  for (std::int64_t i = 0; i < n; i += block) total += exponentials(x + i, std::min(block, n - i), top, buffer);
  return static_cast<T>(top + std::log(total));
}

template <class T>
void standardize(const T* x, std::int64_t n, double epsilon, T* out) {
  const double mean = reduce_run<SumOp>(x, n) / static_cast<double>(n);
  const double variance = sum_of(n,
                                 [&](std::int64_t i) {
                                   const double d = x[i] - mean;
                                   return d * d;
                                 }) /
                          static_cast<double>(n);
  const double factor = 1 / std::sqrt(variance + epsilon);
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((x[i] - mean) * factor);
}

/// The largest |x|.
template <class T>
T largest_size(const T* x, std::int64_t n) {
  constexpr std::int64_t lanes = 32;
  T lane[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t k = 0; k < lanes; ++k) lane[k] = MaxOp<T>::combine(lane[k], std::abs(x[i + k]));
  }
  for (std::int64_t k = 0; i < n; ++i, ++k) lane[k] = MaxOp<T>::combine(lane[k], std::abs(x[i]));
  return reduce_run<MaxOp>(lane, lanes);
}

/// (sum |x|^p)^(1/p) of elements of `parts` components each.
template <std::int64_t parts, class T>
T norm(const T* x, std::int64_t n, double p) {
  const T top = largest_size(x, parts * n);
  if (top == 0 || !std::isfinite(top)) return top;
  const LpScale scale = lp_scale(top);
  const auto scaled = [&](std::int64_t i) { return x[i] * scale.two * scale.one; };
  const auto square = [&](std::int64_t i) { return scaled(i) * scaled(i); };
  if (p == 2) return static_cast<T>(top * std::sqrt(sum_of(parts * n, square)));
  const auto size = [&](std::int64_t i) {
    if constexpr (parts == 1)
      return std::abs(scaled(i));
    else
      return std::sqrt(square(2 * i) + square(2 * i + 1));
  };
  const auto total = [&](auto power) { return sum_of(n, [&](std::int64_t i) { return power(size(i)); }); };
  const int whole = whole_exponent(p);
  const double sum = p == 5      ? total([](double v) { return math::whole_power(v, 5); })  // this vectorizes
                     : whole > 0 ? total([&](double v) { return math::whole_power(v, whole); })
                                 : total([&](double v) { return std::pow(v, p); });
  return static_cast<T>(top * std::pow(sum, 1 / p));
}

/// Sums of x^p or |x|^p for rows [rows, n].
template <int p>
void sums_of_powers(const float* x, std::int64_t rows, std::int64_t n, double* sums) {
  const auto power = [](Doubles v) {
    const Doubles square = v * v;
    if constexpr (p == 2) return square;
    if constexpr (p == 4) return square * square;
    const Doubles size = v < 0 ? -v : v;
    if constexpr (p == 3) return square * size;
    return square * square * size;
  };
  for (std::int64_t r = 0; r < rows; ++r) sum_of_doubles(x + r * n, n, power, sums + r);
}

/// The norms that cells use, for f32 rows: in double no power over- or underflows, and the roots of several rows are
/// taken at once. False for other norms.
bool plain_norms(const float* x, std::int64_t rows, std::int64_t n, double p, float* out) {
  const auto powers = p == 2   ? sums_of_powers<2>
                      : p == 3 ? sums_of_powers<3>
                      : p == 4 ? sums_of_powers<4>
                      : p == 5 ? sums_of_powers<5>
                               : nullptr;
  if (!powers) return false;
  constexpr std::int64_t block = 64;
  alignas(64) double sums[block];
  const xsimd::batch<double> one_by_p(1 / p);
  for (std::int64_t r = 0; r < rows; r += block) {
    const std::int64_t some = std::min(block, rows - r);
    powers(x + r * n, some, n, sums);
    map_simd(some, sums, sums,
             [&](const auto& v) { return p == 2 ? xsimd::sqrt(v) : math::exponential(math::logarithm(v) * one_by_p); });
    for (std::int64_t k = 0; k < some; ++k) out[r + k] = static_cast<float>(sums[k]);
  }
  return true;
}

template <class T>
void short_rows(const RowFunctionArgs& a, const T* x, std::int64_t rows, T* out, std::int64_t first) {
  if (a.function == RowFunction::softmax)
    short_softmax(x, rows, a.n, out + first * a.n);
  else if (a.function == RowFunction::log_softmax)
    short_log_softmax(x, rows, a.n, out + first * a.n);
  else if (a.function == RowFunction::logsumexp)
    short_logsumexp(x, rows, a.n, out + first);
  else
    short_standardize(x, rows, a.n, a.parameter, out + first * a.n);
}

template <class T>
void each_row(const RowFunctionArgs& a, std::int64_t first, std::int64_t last) {
  const T* x = static_cast<const T*>(a.in) + first * a.n;
  T* out = static_cast<T*>(a.out);
  if constexpr (std::is_same_v<T, float>) {
    if (a.function == RowFunction::norm && plain_norms(x, last - first, a.n, a.parameter, out + first)) return;
  }
  if (is_short<T>(a.function, a.n)) return short_rows(a, x, last - first, out, first);
  for (std::int64_t r = first; r < last; ++r, x += a.n) {
    switch (a.function) {
      case RowFunction::softmax:
        softmax(x, a.n, out + r * a.n);
        break;
      case RowFunction::log_softmax:
        log_softmax(x, a.n, out + r * a.n);
        break;
      case RowFunction::logsumexp:
        out[r] = logsumexp(x, a.n);
        break;
      case RowFunction::standardize:
        standardize(x, a.n, a.parameter, out + r * a.n);
        break;
      case RowFunction::norm:
        out[r] = norm<1>(x, a.n, a.parameter);
    }
  }
}

constexpr std::int64_t enough = 1 << 14;  // fewest elements that pay for a second thread

}  // namespace

void Cpu::row_function(const RowFunctionArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      shared(
          a.rows, enough_rows(a.n, enough), [&](std::int64_t first, std::int64_t last) { each_row<T>(a, first, last); },
          1);
    } else if constexpr (is_complex_type<T>) {
      using Real = typename T::value_type;
      if (a.function != RowFunction::norm) unsupported("row_function of complex numbers, but for norm");
      for (std::int64_t r = 0; r < a.rows; ++r)
        static_cast<Real*>(a.out)[r] = norm<2>(static_cast<const Real*>(a.in) + 2 * r * a.n, a.n, a.parameter);
    } else {
      unsupported("row_function of integers or bool");
    }
  });
}

void Cpu::cross_entropy(const CrossEntropyArgs& a) {
  check_index(a.target, a.rows, a.n);
  dispatch_floating(a.dtype, [&]<class T>(std::type_identity<T>) {
    const auto* const logits = static_cast<const T*>(a.logits);
    auto *const loss = static_cast<T*>(a.loss), *const residual = static_cast<T*>(a.residual);
    const auto part = [&](std::int64_t first, std::int64_t last) {
      if (is_short<T>(RowFunction::softmax, a.n))
        return short_cross_entropy(logits + first * a.n, a.target + first, last - first, a.n, loss + first,
                                   residual + first * a.n);
      for (std::int64_t r = first; r < last; ++r)
        loss[r] = cpu::cross_entropy(logits + r * a.n, a.target[r], a.n, residual + r * a.n);
    };
    shared(a.rows, enough_rows(a.n, enough), part, 1);
  });
}

}  // namespace reel::cpu
