// Laws that parameters start by, for the test of initialisation: moments within 5 sigma of their sampling error,
// bounds, structure.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tests/support/check.h"

namespace reel::test {

inline constexpr double pi = 3.14159265358979323846;

std::vector<double> elements_of(const Tensor& x) { return cast(x, DType::f64).values<double>(); }

double epsilon(const Tensor& x) { return real_of(x.dtype()) == DType::f32 ? 1e-5 : 1e-12; }

/// What a parameter is at the start.
struct Law {
  std::function<void(const Tensor&)> check;
  bool random = true;
  bool dense = true;  // its elements are those of a random generator one by one
};

/// Mean, variance, fourth moment and correlation of neighbours of a law with these moments of (x - mean) / deviation.
inline void check_moments(const std::vector<double>& x, double mean, double deviation, double fourth, double eighth) {
  const auto count = static_cast<double>(x.size());
  double sums[4] = {}, before = 0;
  for (const double v : x) {
    const double z = (v - mean) / deviation;
    sums[0] += z / count;
    sums[1] += z * z / count;
    sums[2] += z * z * z * z / count;
    sums[3] += z * std::exchange(before, z) / count;
  }
  CAPTURE(x.size());
  CHECK(std::abs(sums[0]) * std::sqrt(count) < 5);
  CHECK(std::abs(sums[1] - 1) * std::sqrt(count) < 5 * std::sqrt(fourth - 1));
  CHECK(std::abs(sums[2] - fourth) * std::sqrt(count) < 5 * std::sqrt(eighth - fourth * fourth));
  CHECK(std::abs(sums[3]) * std::sqrt(count) < 5);
}

inline void check_uniform(const std::vector<double>& x, double low, double high) {
  const double slack = 1e-6 * std::max(std::abs(low), std::abs(high));
  CHECK(std::all_of(x.begin(), x.end(), [&](double v) { return v >= low - slack && v <= high + slack; }));
  check_moments(x, (low + high) / 2, (high - low) / std::sqrt(12), 9.0 / 5, 9);
}
inline void check_normal(const std::vector<double>& x, double deviation) { check_moments(x, 0, deviation, 3, 105); }

inline Law uniform(double low, double high) {
  return {[=](const Tensor& x) { check_uniform(elements_of(x), low, high); }};
}
inline Law uniform(double bound) { return uniform(-bound, bound); }
inline Law normal(double deviation) {
  return {[=](const Tensor& x) { check_normal(elements_of(x), deviation); }};
}
inline Law constant(double c) {
  return {[=](const Tensor& x) { CHECK(difference(x, full_like(x, c)) == 0); }, false, false};
}
/// Real and imaginary part by one law.
inline Law both(const Law& law) {
  return {[=](const Tensor& x) {
    REQUIRE(is_complex(x.dtype()));
    law.check(real(x));
    law.check(imag(x));
    CHECK(difference(real(x), imag(x)) > 0);
  }};
}
/// The logarithm, times a sign, of what follows a law.
inline Law log_of(const Law& law, double sign = 1) {
  return {[=](const Tensor& x) { law.check(exp(sign * cast(x, DType::f64))); }, true, sign > 0};
}
/// Integers low..high, each as likely as the others.
inline Law whole(std::int64_t low, std::int64_t high) {
  return {[=](const Tensor& x) {
    auto v = elements_of(x);
    for (double& e : v) {
      CHECK(e == doctest::Approx(std::round(e)).epsilon(1e-6));
      e = std::round(e);
      CHECK((e >= static_cast<double>(low) && e <= static_cast<double>(high)));
    }
    const auto m = static_cast<double>(high - low + 1);  // the moments are those of a uniform number but for 1 / m^2
    check_moments(v, static_cast<double>(low + high) / 2, std::sqrt((m * m - 1) / 12), 9.0 / 5, 9);
  }};
}
/// Haar: as normal numbers of variance 1/n, and the trace has variance 1, which a QR with signs of its own misses.
inline Law orthogonal() {
  return {[](const Tensor& Q) {
    const std::int64_t m = Q.dim(0);
    CHECK(difference(matmul(Q, Q, {.transpose_a = true}), eye(m, Q.dtype())) < epsilon(Q));
    CHECK(std::abs(matrix_trace(Q).item()) < 5);
    check_normal(elements_of(Q), 1 / std::sqrt(static_cast<double>(m)));
  }};
}
inline Law unitary() {
  return {[](const Tensor& W) {
            const Tensor one = matmul(W, W, {.transpose_a = true, .conj_a = true});
            CHECK(difference(one, eye(W.dim(0), W.dtype())) < epsilon(W));
          },
          true, false};
}
inline Law identity() {
  return {[](const Tensor& W) { CHECK(difference(W, eye(W.dim(0), W.dtype())) == 0); }, false, false};
}
inline Law permutation() {
  return {[](const Tensor& p) {
            auto v = p.values<std::int32_t>();
            std::sort(v.begin(), v.end());
            for (std::size_t j = 0; j < v.size(); ++j) CHECK(v[j] == static_cast<std::int32_t>(j));
          },
          true, false};
}
/// Zeros beside the 2 x 2 blocks on the diagonal; the blocks [[a, b], [c, d]] of them all.
inline std::vector<std::array<double, 4>> blocks(const Tensor& A) {
  const std::int64_t m = A.dim(0);
  const auto x = elements_of(A);
  const auto at = [&](std::int64_t r, std::int64_t c) { return x[static_cast<std::size_t>(r * m + c)]; };
  std::vector<std::array<double, 4>> out;
  for (std::int64_t j = 0; j + 1 < m; j += 2) out.push_back({at(j, j), at(j, j + 1), at(j + 1, j), at(j + 1, j + 1)});
  bool zeros = true;
  for (std::int64_t r = 0; r < m; ++r) {
    for (std::int64_t c = 0; c < m; ++c) {
      if (r / 2 != c / 2 || (r == m - 1 && m % 2 != 0)) zeros = zeros && at(r, c) == 0;
    }
  }
  CHECK(zeros);
  return out;
}
/// Blocks [[0, s], [-s, 0]], u(s) uniform.
inline Law skew(double low, double high, double (*u)(double)) {
  return {[=](const Tensor& A) {
            std::vector<double> us;
            for (const auto& [a, b, c, d] : blocks(A)) {
              CHECK((a == 0 && d == 0 && c == -b));
              us.push_back(u(b));
            }
            check_uniform(us, low, high);
          },
          true, false};
}
inline double from_minus_tan(double s) { return -2 * std::atan(s); }
inline double from_tan(double s) { return 2 * std::atan(s); }
inline double itself(double s) { return s; }
/// gamma [[cos t, -sin t], [sin t, cos t]], gamma uniform in +-1 and t in 0..pi/2.
inline Law scaled_rotations() {
  return {[](const Tensor& T) {
            std::vector<double> gammas, ts;
            for (const auto& [a, b, c, d] : blocks(T)) {
              CHECK((a == d && b == -c && a * c >= 0));
              gammas.push_back(std::copysign(std::hypot(a, c), a));
              ts.push_back(std::atan2(std::abs(c), std::abs(a)));
            }
            check_uniform(gammas, -1, 1);
            check_uniform(ts, 0, pi / 2);
          },
          true, false};
}
/// exp of skew blocks of angle f(u), u uniform: rotations.
inline Law rotations(double low, double high, double (*u)(double)) {
  return {[=](const Tensor& B) {
            std::vector<double> us;
            for (const auto& [a, b, c, d] : blocks(B)) {
              CHECK(std::hypot(a, b) == doctest::Approx(1).epsilon(1e-6));
              CHECK((std::abs(a - d) < 1e-6 && std::abs(b + c) < 1e-6));
              us.push_back(u(std::atan2(b, a)));
            }
            check_uniform(us, low, high);
          },
          true, false};
}
/// Rows of length 1 without their first 0, 1, 2, ... elements; `check` is given the others times the root of their
/// number, for those of many.
inline void check_directions(const Tensor& rows, const std::function<void(const std::vector<double>&)>& check) {
  const auto x = elements_of(rows);
  const auto width = static_cast<std::size_t>(rows.dim(1));
  std::vector<double> scaled;
  for (std::size_t r = 0; r < x.size() / width; ++r) {
    double squares = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const double v = x[r * width + c];
      if (c < r) CHECK(v == 0);
      squares += v * v;
      if (c >= r && width - r >= 64) scaled.push_back(v * std::sqrt(static_cast<double>(width - r)));
    }
    CHECK(squares == doctest::Approx(1).epsilon(1e-5));
  }
  check(scaled);
}
inline Law unit_columns_of_normal() {
  return {
      [](const Tensor& U) { check_directions(transpose(U), [](const std::vector<double>& z) { check_normal(z, 1); }); },
      true, false};
}

inline double root(double x) { return std::sqrt(x); }
/// PyTorch Linear: uniform in +-1/sqrt(inputs).
inline Law linear_of(double inputs) { return uniform(1 / root(inputs)); }
inline Law glorot_uniform(double out, double in, double gain = 1) { return uniform(gain * root(6 / (out + in))); }
inline Law glorot_normal(double out, double in, double gain = 1) { return normal(gain * root(2 / (out + in))); }

}  // namespace reel::test
