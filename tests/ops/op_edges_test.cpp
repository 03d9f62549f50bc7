// Elementwise functions at the edges: zeros of both signs, infinities, NaN, and numbers whose squares are none.
// Expected values are those of IEEE 754 and C, which NumPy and PyTorch give, too.
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/numbers.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi;
const DType real_types[] = {DType::f32, DType::f64};

double epsilon(DType d) { return d == DType::f32 ? 4e-7 : 1e-15; }

/// The gradients of sum(f(xs)).
Tensors gradients(const TensorFunction& f, const Tensors& xs) {
  Tape tape;
  return grad({sum(f(xs))}, xs);
}

/// d^n f / dx^n of each element.
Tensor derivative(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, int n) {
  Tape tape;
  Tensor y = f(x);
  for (int i = 0; i < n; ++i) y = grad({sum(y)}, {x}, {.create_graph = true})[0];
  return y;
}

}  // namespace

TEST_CASE("maximum and minimum are NaN if either operand is") {
  for (DType d : real_types) {
    for (std::int64_t times : {1, 19}) {
      const Tensor a = numbers({1, NAN, NAN, 2, -inf}, d, times), b = numbers({NAN, 1, NAN, 1, inf}, d, times);
      check(maximum(a, b), {NAN, NAN, NAN, 2, inf});
      check(minimum(a, b), {NAN, NAN, NAN, 1, -inf});
      check(maximum(a, Tensor::full({}, NAN, d)), {NAN});
      check(minimum(Tensor::full({}, 1, d), a), {1, NAN, NAN, 1, -inf});
    }
  }
  const Tensor i = Tensor::from<std::int32_t>({3, -2147483647, 5}, {3}),
               j = Tensor::from<std::int32_t>({-4, 2147483647, 5}, {3});
  CHECK(maximum(i, j).values<std::int32_t>() == std::vector<std::int32_t>{3, 2147483647, 5});
  CHECK(minimum(i, j).values<std::int32_t>() == std::vector<std::int32_t>{-4, -2147483647, 5});
}

TEST_CASE("maximum and minimum have no gradient at NaN, and half for each of equal ones") {
  for (DType d : real_types) {
    const Tensors in{numbers({1, NAN, 3, 2}, d), numbers({NAN, 1, 1, 2}, d)};
    const Tensors most = gradients([](const Tensors&x) { return maximum(x[0], x[1]); }, in),
                  least = gradients([](const Tensors&x) { return minimum(x[0], x[1]); }, in);
    check(most[0], {0, 0, 1, 0.5});
    check(most[1], {0, 0, 0, 0.5});
    check(least[0], {0, 0, 0, 0.5});
    check(least[1], {0, 0, 1, 0.5});
  }
}

TEST_CASE("atan2 at zeros and infinities of all signs") {
  for (DType d : real_types) {
    const double e = epsilon(d);
    check(atan2(numbers({0.0, 0.0, -0.0, -0.0}, d), numbers({0.0, -0.0, 0.0, -0.0}, d)), {0.0, pi, -0.0, -pi}, e);
    check(atan2(numbers({inf, inf, -inf, -inf}, d), numbers({inf, -inf, inf, -inf}, d)),
          {pi / 4, 3 * pi / 4, -pi / 4, -3 * pi / 4}, e);
    check(atan2(numbers({0.0, -0.0, 0.0, -0.0, 2, -2, 2, -2}, d), numbers({3, 3, -3, -3, 0.0, -0.0, -0.0, 0.0}, d)),
          {0.0, -0.0, pi, -pi, pi / 2, -pi / 2, pi / 2, -pi / 2}, e);
    check(atan2(numbers({inf, -inf, 1, -1, 1, -1}, d), numbers({1, -1, inf, inf, -inf, -inf}, d)),
          {pi / 2, -pi / 2, 0.0, -0.0, pi, -pi}, e);
    check(atan2(numbers({NAN, 0, NAN, inf}, d), numbers({0, NAN, NAN, NAN}, d)), {NAN});
    check(atan2(numbers({1e-38, 3e38, 2, -2}, d), numbers({1e-38, -3e38, 2, -2}, d)),
          {pi / 4, 3 * pi / 4, pi / 4, -3 * pi / 4}, e);
  }
}

TEST_CASE("the gradient of atan2: 0 at the origin, and no square over- or underflows") {
  for (DType d : real_types) {
    const double size = d == DType::f32 ? 1e-30 : 1e-200;
    const auto g = gradients([](const Tensors& x) { return atan2(x[0], x[1]); },
                             {numbers({0, 3 * size, 3 / size, 3}, d), numbers({0, 4 * size, 4 / size, 4}, d)});
    check(g[0], {0, 0.16 / size, 0.16 * size, 0.16}, 2 * epsilon(d));
    check(g[1], {-0.0, -0.12 / size, -0.12 * size, -0.12}, 2 * epsilon(d));
  }
}

TEST_CASE("hypot neither over- nor underflows on the way, and infinity wins over NaN") {
  for (DType d : real_types) {
    const std::vector<double> sizes =
        d == DType::f32 ? std::vector<double>{1, 1e17, 1e18, 1e20, 6e37, 1e-14, 1e-15, 1e-16, 1e-20, 1e-30}
                        : std::vector<double>{1, 1e150, 1e151, 1e200, 3e307, 1e-150, 1e-151, 1e-152, 1e-200, 1e-300};
    for (double size : sizes) {
      CAPTURE(size);
      const Tensor a = numbers({3 * size, -4 * size, 0}, d), b = numbers({4 * size, 3 * size, -5 * size}, d);
      check(hypot(a, b), {5 * size}, 2 * epsilon(d));
      const Tensors g = gradients([](const Tensors& x) { return hypot(x[0], x[1]); }, {a, b});
      check(g[0], {0.6, -0.8, 0}, 2 * epsilon(d));
      check(g[1], {0.8, 0.6, -1}, 2 * epsilon(d));
    }
    const double most = d == DType::f32 ? 3e38 : 1.7e308;
    check(
        hypot(numbers({inf, -inf, NAN, 1, NAN, NAN, -0.0, most}, d), numbers({1, NAN, -inf, NAN, NAN, 0, 0, most}, d)),
        {inf, inf, inf, NAN, NAN, NAN, 0, inf});
    const Tensors g = gradients([](const Tensors& x) { return hypot(x[0], x[1]); }, {numbers({0}, d), numbers({0}, d)});
    check(g[0], {0});
    check(g[1], {0});
  }
  const double least = std::numeric_limits<double>::denorm_min();
  check(hypot(numbers({3 * least, 0}, DType::f64), numbers({4 * least, least}, DType::f64)), {5 * least, least});
}

TEST_CASE("second derivatives of hypot and atan2 are 0 at the origin, as those of abs are") {
  for (const auto& f : {TensorFunction([](const Tensors& x) { return hypot(x[0], x[1]); }),
                        TensorFunction([](const Tensors& x) { return atan2(x[0], x[1]); })})
    for (DType d : real_types) {
      Tape tape;
      const Tensors at{numbers({0}, d), numbers({0}, d)};
      const Tensors first = grad({sum(f(at))}, at, {.create_graph = true});
      for (const Tensor& g : first)
        for (const Tensor& second : grad({sum(g)}, at)) check(second, {0});
    }
}

TEST_CASE("erf and gelu far out") {
  for (DType d : real_types) {
    const double far = d == DType::f32 ? 1e38 : 1e308;
    check(erf(numbers({far, -far, far * 1e-20, 1e4, 30, -7, inf, -inf, NAN, 0.0}, d)),
          {1, -1, 1, 1, 1, -1, 1, -1, NAN, 0.0}, epsilon(d));
    check(gelu(numbers({far, -far, 1e19, -1e19, 30, -40, inf, NAN}, d)), {far, -0.0, 1e19, -0.0, 30, -0.0, inf, NAN},
          epsilon(d));
    const auto g = gradients([](const Tensors& x) { return gelu(x[0]); }, {numbers({far, -far, 1e19, -1e19}, d)});
    check(g[0], {1, 0, 1, 0});
  }
  check(erf(numbers({0.5, 2, 3.5, -5, 5.8}, DType::f64)),  // of Python's math.erf
        {0.5204998778130465, 0.9953222650189527, 0.9999992569016276, -0.9999999999984626, 0.9999999999999998}, 4e-15);
}

TEST_CASE("sin, cos and tan of an element do not depend on those beside it") {
  for (DType d : real_types) {
    const Tensor x = uniform({256}, -150, 150, 1, 2, d) * concat({full({128}, 0.1, d), full({128}, 1, d)}, 0);
    const Tensor mixed = reshape(permute(reshape(x, {2, 128}), {1, 0}), {256});
    for (const auto f : std::initializer_list<Tensor (*)(Arg)>{sin, cos, tan}) {
      Tensors alone;
      for (std::int64_t i = 0; i < 256; ++i) alone.push_back(f(slice(mixed, 0, i, i + 1)));
      CHECK(elements(f(mixed)) == elements(concat(alone, 0)));
    }
  }
}

TEST_CASE("expm1 is finite as long as its value is") {
  check(expm1(numbers({709.5, 709.0, 709.7, 710, inf, -inf, NAN, 1, -1e-300}, DType::f64)),  // of numpy.expm1
        {1.3549863193146328e308, 8.218407461554972e307, 1.6549840276802644e308, inf, inf, -1, NAN, 1.718281828459045,
         -1e-300},
        2e-15);
  check(expm1(numbers({88.5, 88, 88.7, 89, inf, -inf, NAN, 1}, DType::f32)),
        {2.7230878e38, 1.6516363e38, 3.3259768e38, inf, inf, -1, NAN, 1.7182818}, 2e-6);
}

TEST_CASE("the gradient of silu is 1 for all large numbers, 0 for all very small ones") {
  for (DType d : real_types) {
    const auto g = gradients([](const Tensors& x) { return silu(x[0]); },
                             {numbers({1e4, 2e7, 1e17, 1e38, -1e4, -2e7, -1e17, 0}, d)});
    check(abs(g[0]), {1, 1, 1, 1, 0, 0, 0, 0.5});
  }
}

TEST_CASE("powers of tensors at base 0: all derivatives are those of the power") {
  const DType d = DType::f64;
  const Tensors at_zero{numbers({0, 0, 0, 0, 0}, d), numbers({0, 1, 2, 3, 0.5}, d)};
  const auto [to_a, to_b] = std::pair(0, 1);
  const Tensors g = gradients([](const Tensors& x) { return pow(x[0], x[1]); }, at_zero);
  check(g[to_a], {0, 1, 0, 0, inf});
  check(g[to_b], {0});
  const std::vector<double> orders[] = {{0, 0, 2, 0}, {0, 0, 0, 6}, {0, 0, 0, 0}};  // of a^0, a, a^2, a^3
  const Tensor a = numbers({0, 0, 0, 0}, d), b = numbers({0, 1, 2, 3}, d);
  for (int n = 2; n <= 4; ++n) {
    CAPTURE(n);
    check(abs(derivative([&](const Tensor& x) { return pow(x, b); }, a, n)), orders[n - 2]);
  }
  // d/db d/da a^b = a^(b - 1) (1 + b log a), also where b = 0.
  Tape tape;
  const Tensor base = numbers({2, 2, 4}, d), exponent = numbers({0, 1, 0}, d);
  const Tensor first = grad({sum(pow(base, exponent))}, {base}, {.create_graph = true})[0];
  check(grad({sum(first)}, {exponent})[0], {0.5, 1 + std::numbers::ln2, 0.25}, 1e-15);
}

TEST_CASE("the imaginary part and the angle of real numbers") {
  for (DType d : real_types) {
    const Tensor x = numbers({inf, -inf, NAN, -2, 3}, d);
    check(imag(x), {0});
    check(angle(x), {0, pi, NAN, pi, 0}, epsilon(d));
    const auto zero = [](const Tensor& g) { check(g, {0}); };
    zero(gradients([](const Tensors& v) { return imag(v[0]) + v[0] * 0.0; }, {numbers({1, 2}, d)})[0]);
  }
  CHECK(imag(Tensor::from<std::int32_t>({3, -1}, {2})).values<std::int32_t>() == std::vector<std::int32_t>{0, 0});
  check(angle(Tensor::from<std::int32_t>({3, -5}, {2})), {0, pi}, 4e-7);
}

TEST_CASE("the gradient of the angle of a complex number is 0 at 0") {
  using Z = std::complex<double>;
  for (DType d : {DType::c64, DType::c128}) {
    const Tensor z = cast(Tensor::from<Z>({0, {0, 2}, {-4, 0}, {0x1p-100, 0}}, {4}), d);
    const auto g = elements(gradients([](const Tensors& x) { return angle(x[0]); }, {z})[0]);
    const Z expected[] = {0, {-0.5, 0}, {0, -0.25}, {0, 0x1p100}};  // i / conj(z)
    for (std::size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      CHECK(std::abs(g[i] - expected[i]) <= 4 * epsilon(d) * std::abs(expected[i]));
    }
  }
}

TEST_CASE("log1p of large complex numbers") {
  using Z = std::complex<double>;
  const auto logs = [](const std::vector<Z>& z, DType d) {
    return elements(log1p(cast(Tensor::from(std::span<const Z>(z), {std::ssize(z)}), d)));
  };
  const auto wide = logs({{0, 1e160}, {1e200, 0}, {-1e200, 1e200}, {1.7e308, 1.7e308}, {3e15, 4e15}}, DType::c128);
  const Z expected[] = {{368.4136148790473, pi / 2},  // log |z|, with log 10 = 2.302585092994046
                        {460.51701859880916, 0},
                        {460.8635921890891, 3 * pi / 4},
                        {710.0734104835082, pi / 4},
                        {36.14821430734479, std::atan2(4, 3)}};
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(std::abs(wide[i] - expected[i]) < 1e-9);
  }
  const auto narrow = logs({{0, 1e30}, {-3e38, 0}}, DType::c64);
  CHECK(std::abs(narrow[0] - Z(69.07755279, pi / 2)) < 1e-5);
  CHECK(std::abs(narrow[1] - Z(88.59684582, pi)) < 1e-5);
}

TEST_CASE("no gradient flows back through stop_gradient and rounding, in loops as well, whatever comes from behind") {
  const Tensor x = Tensor::from<double>({-1.5, 0.25, 3}, {3});
  Tape tape;
  const auto [straight] = grad(sum(x * x + stop_gradient(round(x) - x * x)), {x});  // rounds with the gradient of x^2
  CHECK(difference(straight, 2 * x) == 0);
  CHECK(difference(stop_gradient(x), x) == 0);
  for (const auto& f : {stop_gradient, floor, ceil, round, trunc}) {
    const auto [none] = grad(sum(x + f(x) * inf), {x});
    CHECK(difference(none, ones_like(x)) == 0);
  }
  const Tensor z = complex(x, x);
  const auto [half] = grad(sum(real(z * conj(stop_gradient(z)))), {z});
  CHECK(difference(half, z) == 0);
  const Tensor whole = Tensor::from<std::int32_t>({1, 2}, {2});
  CHECK(stop_gradient(whole).values<std::int32_t>() == std::vector<std::int32_t>{1, 2});

  const Step step = [](const Tensors& s, const Tensors&) { return Next{{s[0] * 0.5 + stop_gradient(s[0])}, {}}; };
  const auto [through] = grad(sum(scan(step, {x}, {}, {.reverse = false, .length = 4, .passes = {}}).last[0]), {x});
  CHECK(difference(through, full_like(x, 0.0625)) == 0);
}

TEST_CASE("numbers beside i32, in full and in where are refused where they do not fit") {
  const Tensor i = Tensor::from<std::int32_t>({1, 2, 3}, {3}), x = Tensor::from<double>({1, 2, 3}, {3});
  for (const auto& [rule, f] : std::vector<std::pair<std::string, std::function<Tensor()>>>{
           {"2.9 is not an integer", [&] { return where(i > 1, i, 2.9); }},
           {"2.9 is not an integer", [&] { return masked_fill(i, i > 1, 2.9); }},
           {"2.9 is not an integer", [] { return full({2}, 2.9, DType::i32); }},
           {"1.9 is not an integer", [&] { return affine(i, 1.9, 0); }},
           {"3000000000 does not fit i32", [&] { return affine(i, 1, 3e9); }},
           {"0 + 1i is complex",
            [] {
              return full({2}, {0, 1}, DType::f32);
            }},
           {"4294967295 does not fit i32", [] { return arange(std::int64_t{1} << 32, DType::i32); }}}) {
    CHECK_MESSAGE(contains(error_of([&, &g = f] { g(); }), rule), rule);
  }
  const std::complex<double> turn(0, 1);
  const Tensor z = complex(x, x);
  CHECK(difference(z * turn, complex(-x, x)) == 0);
  CHECK(difference(turn * x, complex(zeros_like(x), x)) == 0);
  CHECK(difference(where(x > 1, z, turn), complex(where(x > 1, x, 0), where(x > 1, x, 1))) == 0);
  CHECK((cast(x, DType::f32) + turn).dtype() == DType::c64);
}

TEST_CASE("sequences too long for the memory are refused before they are filled") {
  constexpr std::int64_t many = std::int64_t{1} << 55;
  for (const auto& f : {+[] { return arange(many, DType::f64); }, +[] { return linspace(0, 1, many); },
                        +[] { return hann_window(many); }}) {
    const std::string error = error_of([f] { f(); });
    CHECK_MESSAGE(contains(error, "[memory]"), error);
  }
}

TEST_CASE("log1p near -1, 0^0, and what else complex numbers have at the edges") {
  const auto z = [](double re, double im, DType d) { return cast(full({}, {re, im}, DType::c128), d); };
  const auto value = [](const Tensor& x) { return elements(x)[0]; };
  CHECK(std::abs(value(log1p(z(-1, 1e-8, DType::c128))) - std::complex<double>(-18.420680743952367, pi / 2)) < 1e-14);
  CHECK(std::abs(value(log1p(z(-1, 1e-20, DType::c128))).real() + 46.051701859880914) < 1e-13);
  CHECK(std::abs(value(log1p(z(-1.5, 0.25, DType::c128))) - std::log(std::complex<double>(-0.5, 0.25))) < 1e-15);
  CHECK(std::abs(value(log1p(z(-1, 1e-3, DType::c64))).real() + 6.907755278982137) < 1e-6);
  for (const DType d : {DType::c64, DType::c128}) {
    CHECK(value(pow(z(0, 0, d), z(0, 0, d))) == std::complex<double>(1));
    CHECK(value(pow(z(2, -1, d), z(0, 0, d))) == std::complex<double>(1));
  }
}

TEST_CASE("derivatives at the edges: elu far below 0, rows without elements") {
  const Tensor x = Tensor::from<double>({-40, -10, 2}, {3}), none = Tensor::zeros({3, 0}, DType::f64);
  Tape tape;
  const auto [slope] = grad(sum(elu(x, 2)), {x});
  check(slope, {2 * std::exp(-40.0), 2 * std::exp(-10.0), 1}, 1e-15);
  const auto [empty] = grad(sum(standardize(none)), {none});
  CHECK(empty.shape() == none.shape());
}

TEST_CASE("functions of rows: NaN, infinities and masks in rows of all lengths, each row by itself") {
  const auto same = [](double got, double wanted, double tolerance) {
    if (std::isnan(wanted)) return std::isnan(got);
    return got == wanted || std::abs(got - wanted) <= tolerance * (1 + std::abs(wanted));
  };
  constexpr std::int64_t rows = 37;
  for (const std::int64_t n : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 130}) {
    std::vector<double> x;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        const bool here = j == r * 5 % n, masked = j % 3 != r % 3;
        const double plain = std::round(100 * std::sin(static_cast<double>(7 * r + j * j + 1))) / 32;
        const double special[] = {plain,
                                  here ? NAN : plain,
                                  here ? inf : plain,
                                  masked ? -inf : plain,
                                  -inf,
                                  here ? NAN : -inf,
                                  here        ? inf
                                  : j + 1 < n ? plain
                                              : NAN,
                                  -120 + plain};
        x.push_back(special[r % 8]);
      }
    }
    for (const DType d : real_types) {
      CAPTURE(n);
      const double tolerance = d == DType::f32 ? 2e-6 : 1e-14;
      const Tensor all = cast(Tensor::from(std::span<const double>(x), {rows, n}), d);
      const auto results = [](const Tensor& t) {
        std::vector<std::vector<double>> found;
        for (const Tensor& y :
             {softmax(t), log_softmax(t), logsumexp(t, {1}), max(t, {1}), min(t, {1}), standardize(t, 1e-5)})
          found.push_back(cast(y, DType::f64).values<double>());
        return found;
      };
      const auto got = results(all);
      for (std::int64_t r = 0; r < rows; ++r) {
        CAPTURE(r);
        const auto row = [&](std::size_t k, std::int64_t j) { return got[k][static_cast<std::size_t>(r * n + j)]; };
        const auto one = [&](std::size_t k) { return got[k][static_cast<std::size_t>(r)]; };
        const double* const v = &x[static_cast<std::size_t>(r * n)];
        double top = -inf, least = inf, total = 0, mean = 0, variance = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          top = top < v[j] || std::isnan(v[j]) ? v[j] : top;
          least = v[j] < least || std::isnan(v[j]) ? v[j] : least;
          mean += v[j] / static_cast<double>(n);
        }
        for (std::int64_t j = 0; j < n; ++j) {
          total += std::exp(v[j] - top);
          variance += (v[j] - mean) * (v[j] - mean) / static_cast<double>(n);
        }
        bool good = same(one(2), std::isfinite(top) ? top + std::log(total) : top, tolerance) && same(one(3), top, 0) &&
                    same(one(4), least, 0);
        for (std::int64_t j = 0; j < n; ++j)
          good = good && same(row(0, j), std::exp(v[j] - top) / total, tolerance) &&
                 same(row(1, j), v[j] - top - std::log(total), tolerance) &&
                 same(row(5, j), (v[j] - mean) / std::sqrt(variance + 1e-5), 20 * tolerance);
        CHECK(good);
        const auto alone = results(slice(all, 0, r, r + 1));
        for (std::size_t k = 0; k < alone.size(); ++k) {
          const auto size = static_cast<std::int64_t>(alone[k].size());
          bool equal = true;
          for (std::int64_t j = 0; j < size; ++j)
            equal =
                equal && same(got[k][static_cast<std::size_t>(r * size + j)], alone[k][static_cast<std::size_t>(j)], 0);
          CHECK(equal);
        }
      }
    }
  }
}
