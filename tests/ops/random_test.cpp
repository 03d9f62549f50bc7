// Random tensors: moments and bounds, independence of shape and dtype, orders that published experiments used.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t many = 200000;

/// Mean and central moments 2..4 of a tensor's elements.
std::array<double, 4> moments(const Tensor& x) {
  const auto v = elements(x);
  std::array<double, 4> m{};
  const auto n = static_cast<double>(v.size());
  for (const auto& e : v) m[0] += e.real() / n;
  for (const auto& e : v) {
    for (int k = 1; k < 4; ++k) m[static_cast<std::size_t>(k)] += std::pow(e.real() - m[0], k + 1) / n;
  }
  return m;
}

struct Range {
  double low, high;
};
Range range(const Tensor& x) {
  Range r{INFINITY, -INFINITY};
  for (const auto& e : elements(x)) r = {std::min(r.low, e.real()), std::max(r.high, e.real())};
  return r;
}

std::vector<std::int32_t> first(const Tensor& x, std::int64_t n) { return slice(x, 0, 0, n).values<std::int32_t>(); }

}  // namespace

TEST_CASE("moments and bounds of the distributions") {
  // Bounds are five standard errors: of the mean sqrt(variance / n), of moment k sqrt((m_2k - m_k^2) / n) or more.
  const double root = std::sqrt(static_cast<double>(many));
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor u = uniform({many}, -1, 3, 11, 1, dtype);
    const auto mu = moments(u);
    CHECK(std::abs(mu[0] - 1) < 5 * std::sqrt(4.0 / 3) / root);
    CHECK(std::abs(mu[1] - 4.0 / 3) < 5 * 1.2 / root);
    CHECK(std::abs(mu[3] - 16.0 / 5) < 5 * 4.5 / root);
    const Range r = range(u);
    CHECK(r.low >= -1);
    CHECK(r.low < -0.999);
    CHECK(r.high > 2.999);
    CHECK(r.high < 3);
    const auto mn = moments(normal({many}, 2, 0.5, 11, 2, dtype));
    CHECK(std::abs(mn[0] - 2) < 5 * 0.5 / root);
    CHECK(std::abs(mn[1] - 0.25) < 5 * 0.36 / root);
    CHECK(std::abs(mn[2]) < 5 * 0.5 / root);
    CHECK(std::abs(mn[3] - 3.0 / 16) < 5 * 0.7 / root);
  }
  const auto mb = moments(bernoulli({many}, 0.3, 11, 3));
  CHECK(std::abs(mb[0] - 0.3) < 5 * std::sqrt(0.21) / root);
  CHECK(range(bernoulli({1000}, 0, 11, 3)).high == 0);
  CHECK(range(bernoulli({1000}, 1, 11, 3)).low == 1);
  const Tensor whole = integers({many}, -3, 4, 11, 4);
  std::array<int, 7> counts{};
  for (const std::int32_t v : whole.values<std::int32_t>()) ++counts.at(static_cast<std::size_t>(v + 3));
  for (const int c : counts) CHECK(std::abs(c - many / 7.0) < 5 * std::sqrt(many * 6.0 / 49));
  const Range wide = range(integers({many}, std::numeric_limits<std::int32_t>::min(), std::int64_t{1} << 31, 11, 5));
  CHECK(wide.low < -2.1474e9);
  CHECK(wide.high > 2.1474e9);
  CHECK(range(integers({100}, 7, 8, 11, 6)).high == 7);
}

TEST_CASE("single precision: rounding takes no number to the upper bound") {
  const float high = 1.000001F;  // eight steps above 1, so that a sixteenth of all numbers would be rounded up to it
  int nearest = 0;
  for (const float x : uniform({20000}, 1, static_cast<double>(high), 1, 1, DType::f32).values<float>()) {
    CHECK(x >= 1);
    CHECK(x < high);
    nearest += x == std::nextafter(high, 1.0F) ? 1 : 0;
  }
  CHECK(nearest > 2000);
}

TEST_CASE("element i depends on seed, stream and i alone") {
  const auto same_for_shapes =
      [](const std::function<Tensor(const Shape&, std::uint64_t seed, std::uint64_t stream)>& f) {
        const Tensor flat = f({24}, 1, 2);
        CHECK(difference(reshape(f({2, 3, 4}, 1, 2), {24}), flat) == 0);
        CHECK(difference(slice(f({1000}, 1, 2), 0, 0, 24), flat) == 0);
        CHECK(difference(f({24}, 1, 2), flat) == 0);
        CHECK(difference(f({24}, 2, 2), flat) != 0);
        CHECK(difference(f({24}, 1, 3), flat) != 0);
      };
  using U = std::uint64_t;
  same_for_shapes([](const Shape& s, U seed, U stream) { return uniform(s, 0, 1, seed, stream); });
  same_for_shapes([](const Shape& s, U seed, U stream) { return normal(s, 0, 1, seed, stream); });
  same_for_shapes([](const Shape& s, U seed, U stream) { return bernoulli(s, 0.5, seed, stream); });
  same_for_shapes([](const Shape& s, U seed, U stream) { return integers(s, 0, 1000, seed, stream); });
  same_for_shapes([](const Shape& s, U seed, U stream) { return dropout(Tensor::full(s, 1), 0.5, seed, stream); });
  CHECK(difference(cast(uniform({100}, 0, 1, 1, 2, DType::f32), DType::f64), uniform({100}, 0, 1, 1, 2, DType::f64)) <
        1e-7);
}

TEST_CASE("vectors of numbers are those that the generator makes one by one") {
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{0x123456789abcdef0}, ~std::uint64_t{0} - 3}) {
    for (const std::uint64_t stream : {std::uint64_t{2}, std::uint64_t{0xfedcba9876543210}}) {
      for (const std::int64_t n : {1, 2, 15, 16, 17, 256, 333}) {
        const auto u = uniform({n}, 0, 1, seed, stream, DType::f64).values<double>();
        const auto z = normal({n}, 0, 1, seed, stream, DType::f64).values<double>();
        for (std::size_t i = 0; i < u.size(); ++i) {
          CHECK(u[i] == uniform_at(seed, stream, i));
          CHECK(std::abs(z[i] - normal_at(seed, stream, i)) < 1e-14);
        }
      }
    }
  }
}

TEST_CASE("numbers between bounds are rounded once, on every processor") {
  const auto u = uniform({333}, 0, 1, 3, 4, DType::f64).values<double>(),
             x = uniform({333}, -0.1, 0.3, 3, 4, DType::f64).values<double>();
  int rounded_twice = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    CHECK(x[i] == std::fma(0.3 + 0.1, u[i], -0.1));
    const volatile double product = (0.3 + 0.1) * u[i];
    rounded_twice += x[i] != product - 0.1;
  }
  CHECK(rounded_twice > 20);
}

TEST_CASE("permutations hold each number once, and each order is as likely") {
  const auto order = permutation(1000, 3, 4).values<std::int32_t>();
  CHECK(std::set<std::int32_t>(order.begin(), order.end()).size() == 1000);
  CHECK(*std::max_element(order.begin(), order.end()) == 999);
  CHECK(*std::min_element(order.begin(), order.end()) == 0);
  std::map<std::vector<std::int32_t>, int> counts;
  constexpr int draws = 6000;
  for (std::uint64_t i = 0; i < draws; ++i) ++counts[permutation(3, 5, i).values<std::int32_t>()];
  CHECK(counts.size() == 6);
  for (const auto& [o, count] : counts) CHECK(std::abs(count - draws / 6) < 5 * std::sqrt(draws * 5.0 / 36));
}

TEST_CASE("pixel orders of published experiments, as NumPy's legacy generator drew them") {
  using List = std::vector<std::int32_t>;
  std::mt19937 srnn(1234), big(1234), nru(50), urnn(92916);
  CHECK(first(numpy_permutation(784, srnn), 8) == List{529, 511, 328, 133, 532, 378, 156, 305});
  CHECK(first(numpy_permutation(3136, big), 8) == List{2624, 2222, 2991, 1935, 1616, 691, 1164, 593});
  numpy_permutation(60000, nru);  // training and validation images are told apart first
  CHECK(first(numpy_permutation(784, nru), 8) == List{46, 466, 537, 44, 515, 589, 362, 765});
  CHECK(first(numpy_permutation(784, urnn), 8) == List{319, 576, 323, 107, 355, 716, 197, 20});
}

TEST_CASE("dropout keeps the mean, and its gradient drops the same elements") {
  const Tensor x = Tensor::full({many}, 1, DType::f64);
  CHECK(std::abs(mean(dropout(x, 0.25, 1, 2)).item() - 1) < 5 * std::sqrt(1.0 / 3 / many));
  CHECK(difference(dropout(x, 0, 1, 2), x) == 0);
  Tape tape;
  const Tensor y = dropout(x, 0.25, 1, 2);
  const auto [dx] = grad(sum(y), {x});
  CHECK(difference(dx, y) == 0);
}

TEST_CASE("errors of random tensors name the function, the rule and the line") {
  const auto says = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = error_of(f);
    CHECK_MESSAGE(contains(text, part), text);
    CHECK_MESSAGE(contains(text, "(tests/ops/random_test.cpp:"), text);
  };
  says([] { uniform({2}, 1, 0, 1, 1); }, "[uniform] low must not be above high, got 1 and 0");
  says([] { uniform({2}, NAN, 0, 1, 1); }, "[uniform] low must not be above high, got nan and 0");
  says([] { uniform({2}, -INFINITY, 0, 1, 1); }, "[uniform] the bounds must be finite");
  says([] { uniform({2}, 0, 1e39, 1, 1); },
       "[uniform] the bounds must be finite in f32, and high - low, too, got 0 and");
  says([] { uniform({2}, -3e38, 3e38, 1, 1); }, "[uniform] the bounds must be finite in f32");
  says([] { normal({2}, 1e39, 0, 1, 1); }, "[normal] mean and deviation must be finite in f32, got 1e+39 and 0");
  says([] { uniform({2}, 0, 1, 1, 1, DType::i32); }, "[uniform] f32 or f64 expected, got i32");
  says([] { normal({2}, 0, -1, 1, 1); }, "[normal] the deviation is 0 or more, got -1");
  says([] { normal({2}, NAN, 1, 1, 1); }, "[normal] mean and deviation must be finite");
  says([] { normal({2}, 0, 1, 1, 1, DType::c64); }, "[normal] f32 or f64 expected, got c64");
  says([] { bernoulli({2}, 1.5, 1, 1); }, "[bernoulli] a probability is in 0..1, got 1.5");
  says([] { bernoulli({2}, NAN, 1, 1); }, "[bernoulli] a probability is in 0..1, got nan");
  says([] { integers({2}, 3, 3, 1, 1); }, "[integers] low must be below high, got 3 and 3");
  says([] { integers({2}, 0, std::int64_t{1} << 32, 1, 1); },
       "[integers] i32 holds -2147483648..2147483647, got 0..4294967295");
  says([] { permutation(-1, 1, 1); }, "[permutation] 0 to 2147483647 numbers can be put in order, got -1");
  says(
      [] {
        std::mt19937 g(1);
        numpy_permutation(-1, g);
      },
      "[numpy_permutation] 0 to 2147483647 numbers can be put in order, got -1");
  const Tensor x = Tensor::zeros({2});
  says([&] { dropout(x, 1, 1, 1); }, "[dropout] the probability is 0 or more and below 1, got 1");
  says([&] { dropout(cast(x, DType::i32), 0.5, 1, 1); },
       "[dropout] i32 elements are not supported. Hint: cast to f32; got i32 (2,)");
  says([&] { dropout(x, 0.5, 1, 1, Tensor::zeros({2})); },
       "[dropout] the offset of the stream is f64 () on the device of x, got f32 (2,) on " + x.backend().name());
}
