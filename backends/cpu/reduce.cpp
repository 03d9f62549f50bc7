// reduce, argmax, sum of squares. Sums of f32 and c64 are kept in double, so that long ones lose nothing.
#include <algorithm>
#include <limits>

#include "backends/cpu/cpu.h"
#include "engine/error.h"

namespace reel::cpu {

namespace {

template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, float>, double,
                       std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>,
                                          std::conditional_t<std::is_same_v<T, std::int32_t>, std::int64_t, T>>>;

/// The sum of n elements: short runs in T on eight lanes, their totals in Wide.
template <class T>
Wide<T> sum_run(const T* x, std::int64_t n) {
  constexpr std::int64_t lanes = 16, run = 512;
  Wide<T> total{};
  std::int64_t i = 0;
  while (n - i >= lanes) {
    T lane[lanes] = {};
    const std::int64_t end = std::min(i + run, i + (n - i) / lanes * lanes);
    for (; i < end; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) lane[k] += x[i + k];
    }
    for (const T& l : lane) total += Wide<T>(l);
  }
  for (; i < n; ++i) total += Wide<T>(x[i]);
  return total;
}

/// Adds `count` rows of n elements, `stride` apart, into out.
template <class T>
void sum_rows(const T* x, std::int64_t count, std::int64_t stride, std::int64_t n, T* out) {
  constexpr std::int64_t block = 64;
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t width = std::min(block, n - first);
    Wide<T> total[block] = {};
    for (std::int64_t r = 0; r < count; ++r) {
      const T* row = x + r * stride + first;
      for (std::int64_t i = 0; i < width; ++i) total[i] += Wide<T>(row[i]);
    }
    for (std::int64_t i = 0; i < width; ++i) out[first + i] += static_cast<T>(total[i]);
  }
}

template <class T>
void sum(const ReduceArgs& a) {
  const T* const in0 = static_cast<const T*>(a.in);
  T* const out0 = static_cast<T*>(a.out);
  std::fill_n(out0, a.out_numel, T{});
  Loop<2> loop = a.loop;
  const std::int64_t n = loop.inner_dim();
  const auto stride = loop.inner_stride();
  const std::int64_t si = stride[0], so = stride[1];
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  if (loop.rank >= 2 && so == 1 && si == 1 && loop.strides[last - 1][1] == 0) {  // [.., R, K] -> [.., K]
    const std::int64_t count = loop.dims[last - 1], apart = loop.strides[last - 1][0];
    loop.rank -= 1;  // walk all but the two inner axes; the run function does those
    loop.dims[last - 1] = 1;
    if (count == 0) return;
    loop.for_each_run([&](const Loop<2>::Offsets& at) { sum_rows(in0 + at[0], count, apart, n, out0 + at[1]); });
    return;
  }
  loop.for_each_run([&](const Loop<2>::Offsets& at) {
    const T* in = in0 + at[0];
    T* out = out0 + at[1];
    if (so == 0 && si == 1)
      *out = static_cast<T>(Wide<T>(*out) + sum_run(in, n));
    else
      for (std::int64_t i = 0; i < n; ++i) out[i * so] += in[i * si];
  });
}

template <class T>
void largest(const ReduceArgs& a) {
  const T* const in0 = static_cast<const T*>(a.in);
  T* const out0 = static_cast<T*>(a.out);
  const T lowest =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  std::fill_n(out0, a.out_numel, lowest);
  const std::int64_t n = a.loop.inner_dim();
  const auto stride = a.loop.inner_stride();
  const std::int64_t si = stride[0], so = stride[1];
  a.loop.for_each_run([&](const Loop<2>::Offsets& at) {
    const T* in = in0 + at[0];
    T* out = out0 + at[1];
    for (std::int64_t i = 0; i < n; ++i) {
      const T x = in[i * si];
      if (out[i * so] < x || x != x) out[i * so] = x;  // NaN wins
    }
  });
}

}  // namespace

void Cpu::reduce(const ReduceArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("reduce of bool");
    else if (a.kind == Reduction::sum)
      sum<T>(a);
    else if constexpr (is_complex_type<T>)
      unsupported("max of complex numbers");
    else
      largest<T>(a);
  });
}

void Cpu::argmax(const ArgmaxArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argmax of complex numbers or bool");
    else {
      const T* in = static_cast<const T*>(a.in);
      for (std::int64_t r = 0; r < a.rows; ++r, in += a.n)
        a.out[r] = static_cast<std::int32_t>(std::max_element(in, in + a.n) - in);
    }
  });
}

double Cpu::sum_of_squares(DType dtype, std::int64_t n, const void* x) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> double {
    if constexpr (std::is_same_v<T, bool>)
      unsupported("sum_of_squares of bool");
    else {
      constexpr std::int64_t lanes = 8;
      double lane[lanes] = {};
      const T* p = static_cast<const T*>(x);
      const auto square = [](const T& v) {
        if constexpr (is_complex_type<T>)
          return static_cast<double>(std::norm(v));
        else
          return static_cast<double>(v) * static_cast<double>(v);
      };
      std::int64_t i = 0;
      for (; i + lanes <= n; i += lanes) {
        for (std::int64_t k = 0; k < lanes; ++k) lane[k] += square(p[i + k]);
      }
      for (; i < n; ++i) lane[0] += square(p[i]);
      double total = 0;
      for (double l : lane) total += l;
      return total;
    }
  });
}

}  // namespace reel::cpu
