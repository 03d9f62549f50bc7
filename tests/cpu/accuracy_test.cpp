// Vectorised functions against the same in higher precision, in units of the last place; and that an element's value
// does not depend on where in an array it stands.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The largest error in units of the last place, subnormal results included; what is not finite must be so exactly.
template <class T>
double worst_ulps(Tensor (*f)(Arg), long double (*exact)(long double), const std::vector<T>& x) {
  const auto y = f(Tensor::from(std::span<const T>(x), {static_cast<std::int64_t>(x.size())})).template values<T>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double right = exact(static_cast<long double>(x[i]));
    const T rounded = static_cast<T>(right), size = std::abs(rounded);
    if (!std::isfinite(rounded) || !std::isfinite(y[i])) {
      if (std::isnan(rounded) ? !std::isnan(y[i]) : rounded != y[i]) return INFINITY;
      continue;
    }
    const auto unit = static_cast<long double>(size) - static_cast<long double>(std::nextafter(size, T(0)));
    const auto least = static_cast<long double>(std::numeric_limits<T>::denorm_min());
    worst =
        std::max(worst, static_cast<double>(std::abs(static_cast<long double>(y[i]) - right) / std::max(unit, least)));
  }
  return worst;
}

/// Numbers of a type from its bits: every `step`-th pattern of f32, infinities and NaN among them, random ones of f64.
std::vector<float> sweep_single(std::uint32_t step) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffff; bits += step)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return x;
}
std::vector<double> sweep_double(std::size_t count) {
  std::vector<double> x{0.0, -0.0, INFINITY, -INFINITY, NAN};
  std::mt19937_64 generator(1);
  while (x.size() < count) x.push_back(std::bit_cast<double>(generator()));
  for (double range : {1.0, 40.0, 1500.0}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (std::size_t i = 0; i < count; ++i) x.push_back(uniform(generator));
  }
  return x;
}

long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double exact_exp(long double x) { return std::exp(x); }
long double exact_tanh(long double x) { return std::tanh(x); }
long double exact_erf(long double x) { return std::erf(x); }
long double exact_gelu(long double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0L)); }
long double exact_log(long double x) { return std::log(x); }
long double exact_sin(long double x) { return std::sin(x); }
long double exact_cos(long double x) { return std::cos(x); }
long double exact_tan(long double x) { return std::tan(x); }

}  // namespace

TEST_CASE("exp, log, tanh, sigmoid, sin and cos are within 2 units of the last place over their whole range") {
  const struct {
    const char* name;
    Tensor (*f)(Arg);
    long double (*exact)(long double);
  } cases[] = {{"exp", exp, exact_exp},    {"log", log, exact_log},
               {"tanh", tanh, exact_tanh}, {"sigmoid", sigmoid, exact_sigmoid},
               {"sin", sin, exact_sin},    {"cos", cos, exact_cos}};
  const auto single = sweep_single(4999);
  const auto wide = sweep_double(100000);
  for (const auto& c : cases) {
    const double f32 = worst_ulps(c.f, c.exact, single), f64 = worst_ulps(c.f, c.exact, wide);
    fmt::print("{:<8} worst error in units of the last place: f32 {:.2f}, f64 {:.2f}\n", c.name, f32, f64);
    CAPTURE(std::string(c.name));
    CHECK(f32 <= 2);
    CHECK(f64 <= 2);
  }
}

TEST_CASE("sin, cos and tan beside multiples of pi / 2, where they are small or large") {
  std::vector<double> x;
  for (int k = 0; k < 50000; ++k) {
    const double multiple = static_cast<double>(k * 1.57079632679489661923132169163975144L);
    for (double near : {multiple, std::nextafter(multiple, INFINITY), std::nextafter(multiple, 0.0)}) {
      x.push_back(near);
      x.push_back(-near);
    }
  }
  CHECK(worst_ulps(sin, exact_sin, x) <= 2);
  CHECK(worst_ulps(cos, exact_cos, x) <= 2);
  CHECK(worst_ulps(tan, exact_tan, x) <= 3);
}

TEST_CASE("powers with integer exponents lose no digits, and reach as far as their values do") {
  const auto worst = []<class T>(double n, const std::vector<T>& x) {
    const auto y = power(Tensor::from(std::span<const T>(x), {std::ssize(x)}), n).template values<T>();
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double right = std::pow(static_cast<long double>(x[i]), static_cast<long double>(n));
      const T rounded = static_cast<T>(right), size = std::abs(rounded);
      if (!std::isfinite(rounded) || std::isnan(y[i]) || rounded == 0) {
        const bool same =
            std::isnan(rounded) ? std::isnan(y[i]) : rounded == y[i] && std::signbit(rounded) == std::signbit(y[i]);
        if (!same) return std::numeric_limits<double>::infinity();
        continue;
      }
      const T unit = std::max(size - std::nextafter(size, T(0)), std::numeric_limits<T>::denorm_min());
      most = std::max(most, static_cast<double>(std::abs(static_cast<long double>(y[i]) - right) / unit));
    }
    return most;
  };
  std::vector<float> single = sweep_single(400009);
  std::vector<double> wide;
  for (int i = 0; i <= 2000; ++i) wide.push_back(std::exp((i - 1000) * 0.002) * (i % 3 == 0 ? -1 : 1));
  for (double x : wide) single.push_back(static_cast<float>(x));
  for (float x : {0.0F, -0.0F, INFINITY, -INFINITY, 4.0F, 1e13F}) single.push_back(x);
  for (const double n : {-64, -33, -10, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 31, 64}) {
    CAPTURE(n);
    const double limit = n >= 0 && n <= 5 ? 3 : 1.5;  // above 1 only beside subnormal results
    CHECK(worst(n, single) <= limit);
    CHECK(worst(n, wide) <= limit);
  }
}

TEST_CASE("erf, and gelu also where it is small, have all digits but the last few") {
  auto single = sweep_single(4999);
  auto wide = sweep_double(100000);
  const double erf32 = worst_ulps(erf, exact_erf, single), erf64 = worst_ulps(erf, exact_erf, wide);
  std::erase_if(single, [](float x) { return x < -12; });  // beyond 1e-31 and 1e-297 it nears subnormal numbers
  std::erase_if(wide, [](double x) { return x < -37; });
  const double gelu32 = worst_ulps(gelu, exact_gelu, single), gelu64 = worst_ulps(gelu, exact_gelu, wide);
  fmt::print("erf, gelu: worst error in units of the last place: f32 {:.2f}, {:.2f}, f64 {:.2f}, {:.2f}\n", erf32,
             gelu32, erf64, gelu64);
  CHECK(erf32 <= 4);
  CHECK(erf64 <= 2);
  CHECK(gelu32 <= 6);
  CHECK(gelu64 <= 5);
}

TEST_CASE("what comes out at the ends: infinities, zeros, NaN") {
  const Tensor x = Tensor::from<float>({-INFINITY, -1e4F, 0, 1e4F, INFINITY, NAN}, {6});
  const auto is = [](const Tensor& y, const std::vector<float>& expected) {
    const auto v = y.values<float>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK((std::isnan(expected[i]) ? std::isnan(v[i]) : v[i] == expected[i]));
    }
  };
  is(tanh(x), {-1, -1, 0, 1, 1, NAN});
  is(sigmoid(x), {0, 0, 0.5F, 1, 1, NAN});
  is(exp(x), {0, 0, 1, INFINITY, INFINITY, NAN});
  is(relu(x), {0, 0, 0, 1e4F, INFINITY, NAN});
  is(softplus(x), {0, 0, std::log(2.0F), 1e4F, INFINITY, NAN});
  is(silu(x), {0, 0, 0, 1e4F, INFINITY, NAN});
  const Tensor rows =
      Tensor::from<float>({-INFINITY, -INFINITY, INFINITY, 0, INFINITY, -INFINITY, NAN, INFINITY}, {4, 2});
  is(logsumexp(rows, {1}), {-INFINITY, INFINITY, INFINITY, NAN});
}

TEST_CASE("an element's value does not depend on its place") {
  const Tensor x = random({67}, 1, DType::f32, -3, 3), b = random({67}, 2, DType::f32);
  for (Tensor (*f)(Arg) :
       {+[](Arg v) { return tanh(v); }, +[](Arg v) { return sigmoid(v); }, +[](Arg v) { return exp(v); }}) {
    const Tensor all = f(x);
    for (std::int64_t i = 0; i < 67; ++i) CHECK(f(slice(x, 0, i, i + 1)).item() == all.at(i).item());
  }
  const Tensor quotient = x / b;
  for (std::int64_t i = 0; i < 67; ++i)
    CHECK((slice(x, 0, i, i + 1) / slice(b, 0, i, i + 1)).item() == quotient.at(i).item());
}

TEST_CASE("long sums keep their precision, and largest elements let NaN through") {
  const Tensor x = Tensor::full({3000000}, 0.1);
  CHECK(sum(x).item() == doctest::Approx(3000000 * static_cast<double>(0.1F)).epsilon(1e-6));
  const Tensor any = random({1000, 3, 1000}, 1, DType::f32, 0, 1);  // axes that do not lie side by side
  CHECK(sum(any, {0, 2}).at(1).item() ==
        doctest::Approx(sum(cast(any, DType::f64), {0, 2}).at(1).item()).epsilon(6e-8));
  CHECK(sum(reshape(x, {1000000, 3}), {0}).at(1).item() ==
        doctest::Approx(1000000 * static_cast<double>(0.1F)).epsilon(1e-6));
  for (const std::int64_t n : {3, 40}) {  // alone, and in a vector with others
    for (std::int64_t at = 0; at < n; ++at) {
      CAPTURE(at);
      std::vector<float> values(static_cast<std::size_t>(n), 1);
      values[static_cast<std::size_t>(at)] = NAN;
      const Tensor row = Tensor::from<float>(values, {n});
      CHECK(std::isnan(max(row).item()));
      CHECK(std::isnan(min(row).item()));
      CHECK(std::isnan(max(reshape(row, {n, 1}), {0}).item()));
      CHECK(std::isnan(min(reshape(row, {n, 1}), {0}).item()));
    }
  }
}

namespace {
/// Complex numbers of all sizes, zero among them; as many as do not fit vectors evenly.
template <class R>
std::vector<std::complex<R>> all_sizes(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> angle(-3.2, 3.2);
  constexpr int top = std::numeric_limits<R>::max_exponent - 2, bottom = std::numeric_limits<R>::min_exponent + 1;
  std::vector<std::complex<R>> z{0};
  for (int i = 0; i < 1001; ++i) {
    const int exponent = i < 500 ? i % 7 - 3 : i % 3 == 0 ? top - i % 20 : bottom + i % (top - bottom);
    z.push_back(std::complex<R>(std::polar(std::ldexp(1.3, exponent), angle(generator))));
  }
  return z;
}

template <class R>
void check_complex(double tolerance) {
  using Long = std::complex<long double>;
  const auto z = all_sizes<R>(1), w = all_sizes<R>(2);
  const auto tensor = [](const std::vector<std::complex<R>>& x) {
    return Tensor::from(std::span<const std::complex<R>>(x), {static_cast<std::int64_t>(x.size())});
  };
  const auto size = abs(tensor(z)).template values<R>();
  const auto unit = sign(tensor(z)).template values<std::complex<R>>();
  const auto quotient = (tensor(z) / tensor(w)).template values<std::complex<R>>();
  for (std::size_t i = 0; i < z.size(); ++i) {
    CAPTURE(i);
    const long double right = std::abs(Long(z[i]));
    CHECK(std::abs(size[i] - right) <= tolerance * right);
    CHECK(std::abs(Long(unit[i]) - (right == 0 ? Long(0) : Long(z[i]) / right)) <= tolerance);
    if (w[i] == std::complex<R>(0)) continue;
    const Long exact = Long(z[i]) / Long(w[i]);
    if (std::abs(exact) < std::numeric_limits<R>::max() / 4)
      CHECK(std::abs(Long(quotient[i]) - exact) <=
            tolerance * std::abs(exact) + 4 * std::numeric_limits<R>::denorm_min());
  }
}
}  // namespace

TEST_CASE("complex abs, sign and quotients neither over- nor underflow on the way") {
  check_complex<float>(4e-7);
  check_complex<double>(8e-16);
}

TEST_CASE("signs of the largest and the smallest complex numbers") {
  using Z = std::complex<double>;
  const double half = std::sqrt(0.5);
  for (const std::int64_t n : {1, 37}) {  // alone, and beside others
    for (const auto& [z, unit] : {std::pair(Z(3e38, 3e38), Z(half, half)),
                                  {Z(-7e-45, -7e-45), Z(-half, -half)},
                                  {Z(3e-39, -4e-39), Z(0.6, -0.8)}}) {
      for (const Z& y : elements(sign(Tensor::full({n}, z, DType::c64)))) CHECK(std::abs(y - unit) < 2e-7);
      for (const Z& y : elements(modrelu(Tensor::full({n}, z / 4.0, DType::c64), Tensor::full({n}, 0))))
        CHECK(std::abs(y - z / 4.0) <= 4e-7 * std::abs(z) + 4e-45);
    }
    for (const Z& y : elements(sign(Tensor::full({n}, Z(1.7e308, -1.7e308), DType::c128))))
      CHECK(std::abs(y - Z(half, -half)) < 1e-15);
    for (const Z& y : elements(sign(Tensor::full({n}, Z(1e-323, 1e-323), DType::c128))))
      CHECK(std::abs(y - Z(half, half)) < 1e-15);
  }
}

TEST_CASE("norms of rows from the smallest to the largest numbers, zeros and NaN") {
  for (double p : {2.0, 3.0, 4.0, 5.0, 3.5}) {
    for (float scale : {1.0F, 1e-44F, 1e37F}) {
      CAPTURE(p);
      CAPTURE(scale);
      const Tensor x = random({70, 37}, 1, DType::f32) * Tensor::full({}, scale);
      const auto y = norm(x, p, {-1}).values<float>();
      const auto v = x.values<float>();
      for (std::size_t r = 0; r < 70; ++r) {
        long double sum = 0;
        for (std::size_t k = 0; k < 37; ++k) sum += std::pow(std::abs(static_cast<long double>(v[37 * r + k])), p);
        const long double right = std::pow(sum, 1 / static_cast<long double>(p));
        CHECK(std::abs(y[r] - right) <= 2e-7 * right + static_cast<long double>(1e-45F));
      }
    }
    const auto ends = norm(Tensor::from<float>({0, 0, 1, -INFINITY, 1, NAN}, {3, 2}), p, {-1}).values<float>();
    CHECK(ends[0] == 0);
    CHECK(ends[1] == INFINITY);
    CHECK(std::isnan(ends[2]));
  }
}

TEST_CASE("products of complex matrices with one row or column are those with more") {
  for (DType dtype : {DType::c64, DType::c128}) {
    for (std::int64_t k : {1, 3, 50, 700}) {
      for (int flags = 0; flags < 16; ++flags) {
        const MatmulFlags f{(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};
        const Tensor a = random(f.transpose_a ? Shape{k, 20} : Shape{20, k}, 1, dtype),
                     b = random(f.transpose_b ? Shape{3, k} : Shape{k, 3}, 2, dtype),
                     column = f.transpose_b ? slice(b, 0, 0, 1) : slice(b, 1, 0, 1);
        CAPTURE(k);
        CAPTURE(flags);
        const auto op = [](const Tensor& x, bool turn, bool conjugate) {
          const Tensor y = turn ? transpose(x) : x;
          return conjugate ? conj(y) : y;
        };
        const auto plain = [&](const Tensor& c) {  // [20, k, 1] [1, k, n] -> [20, n]
          return sum(unsqueeze(op(a, f.transpose_a, f.conj_a), 2) * unsqueeze(op(c, f.transpose_b, f.conj_b), 0), {1});
        };
        const double tolerance = dtype == DType::c64 ? 1e-5 : 1e-13;
        CHECK(difference(matmul(a, column, f), plain(column)) < tolerance);
        CHECK(difference(matmul(a, b, f), plain(b)) < tolerance);
      }
    }
  }
}

TEST_CASE("short sums, along rows and columns, of real and complex numbers") {
  for (DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    for (std::int64_t n : {1, 3, 8, 16, 31, 64, 300}) {
      for (std::int64_t m : {1, 4, 17}) {
        const Tensor x = random({5, m, n}, 1, dtype);
        const auto v = elements(x), rows = elements(sum(x, {2})), columns = elements(sum(x, {1}));
        std::vector<std::complex<double>> by_row(at(5 * m)), by_column(at(5 * n));
        for (std::int64_t i = 0; i < 5 * m * n; ++i) {
          by_row[at(i / n)] += v[at(i)];
          by_column[at(i / (m * n) * n + i % n)] += v[at(i)];
        }
        const double tolerance = size_of(real_of(dtype)) == 4 ? 1e-5 : 1e-13;
        for (std::size_t i = 0; i < rows.size(); ++i) CHECK(std::abs(rows[i] - by_row[i]) < tolerance);
        for (std::size_t i = 0; i < columns.size(); ++i) CHECK(std::abs(columns[i] - by_column[i]) < tolerance);
      }
    }
  }
}

TEST_CASE("the sum of a row does not depend on how many rows there are") {  // so shards may have any number of rows
  for (DType dtype : {DType::f32, DType::f64}) {
    for (std::int64_t n : {1, 7, 8, 16, 40, 64, 512, 600}) {
      CAPTURE(n);
      const Tensor x = random({29, n}, 1, dtype);
      const auto all = elements(sum(x, {1}));
      for (std::int64_t i = 0; i < 29; ++i) CHECK(all[at(i)] == elements(sum(slice(x, 0, i, i + 1), {1}))[0]);
    }
  }
}
