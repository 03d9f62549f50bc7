// Shared by the tests: comparing tensors, catching error texts.
#pragma once
#include <doctest/doctest.h>

#include <functional>

#include "ops/check_grads.h"
#include "ops/ops.h"

namespace reel::test {

/// Elements as complex doubles, whatever the dtype.
inline std::vector<std::complex<double>> elements(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<std::complex<double>> out;
    for (const T& v : x.values<T>()) {
      if constexpr (is_complex_type<T>)
        out.emplace_back(v.real(), v.imag());
      else
        out.emplace_back(static_cast<double>(v), 0.0);
    }
    return out;
  });
}

/// The largest difference, relative to the largest element (or absolute when that is below 1).
inline double difference(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return INFINITY;
  const auto x = elements(a), y = elements(b);
  double worst = 0, scale = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    scale = std::max({scale, std::abs(x[i]), std::abs(y[i])});
    const double d = std::abs(x[i] - y[i]);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst / scale;
}

/// The text of the Error that f throws; empty when it throws none.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Random elements in [low, high], complex ones in the square; the same for the same seed.
inline Tensor random(const Shape& shape, std::uint64_t seed, DType dtype = DType::f64, double low = -1,
                     double high = 1) {
  if (!is_complex(dtype)) return cast(uniform(shape, low, high, seed, 1, DType::f64), dtype);
  std::vector<std::complex<double>> v;
  const auto re = uniform(shape, low, high, seed, 1, DType::f64).values<double>();
  const auto im = uniform(shape, low, high, seed, 2, DType::f64).values<double>();
  for (std::size_t i = 0; i < re.size(); ++i) v.emplace_back(re[i], im[i]);
  return cast(Tensor::from<std::complex<double>>(v, shape), dtype);
}

/// Re sum conj(w) x, a real scalar.
inline Tensor inner(const Tensor& w, const Tensor& x) { return real(sum(conj(w) * x)); }

}  // namespace reel::test
