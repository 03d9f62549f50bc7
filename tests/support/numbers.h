// Elementwise functions at chosen numbers, at all places of a vector.
#pragma once
#include <cmath>

#include "tests/support/check.h"

namespace reel::test {

/// The numbers `times` times, so that they come at all places of a vector.
inline Tensor numbers(const std::vector<double>& x, DType d, std::int64_t times = 19) {
  const auto n = static_cast<std::int64_t>(x.size());
  return cast(reshape(expand(Tensor::from(std::span<const double>(x), {n}), {times, n}), {times * n}), d);
}

/// Are the elements the expected numbers, over and over, up to `tolerance` times their size? Zeros have signs.
inline void check(const Tensor& got, const std::vector<double>& expected, double tolerance = 0) {
  const auto y = cast(got, DType::f64).values<double>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double wanted = expected[i % expected.size()];
    CAPTURE(i % expected.size());
    CAPTURE(i);
    CAPTURE(y[i]);
    CAPTURE(wanted);
    if (std::isnan(wanted))
      CHECK(std::isnan(y[i]));
    else if (std::isinf(wanted) || wanted == 0)
      CHECK((y[i] == wanted && std::signbit(y[i]) == std::signbit(wanted)));
    else
      CHECK(std::abs(y[i] / wanted - 1) <= tolerance);
  }
}

}  // namespace reel::test
