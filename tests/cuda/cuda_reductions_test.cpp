// Loop kernels that combine columns of a row: sums, norms, standardized rows, outer products, padding. Their text runs
// on the host, against the steps one by one, with first and second derivatives.
#include "tests/emulator/scan_derivatives.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t units = 24;

/// h' of [B, 24], with an input of the same shape and a weight [24, 24].
struct Rule {
  std::string name;
  Tensor (*next)(const Tensor& h, const Tensor& x, const Tensor& W);
};

Tensor normed(const Tensor& h, const Tensor& x, double p) {
  const Tensor v = reshape(h, {-1, 4, 6});
  return tanh(x + reshape(v / (1 + norm(v, p, {-1}, true)), {-1, units}));
}
const std::vector<Rule> rules{
    {"norm 2", [](const Tensor& h, const Tensor& x, const Tensor&) { return normed(h, x, 2); }},
    {"norm 2.5", [](const Tensor& h, const Tensor& x, const Tensor&) { return normed(h, x, 2.5); }},
    {"norm 5", [](const Tensor& h, const Tensor& x, const Tensor&) { return normed(h, x, 5); }},
    {"norm 8", [](const Tensor& h, const Tensor& x, const Tensor&) { return normed(h, x, 8); }},
    {"sum over the middle, padded",
     [](const Tensor& h, const Tensor& x, const Tensor&) {
       return tanh(x + pad(sum(reshape(h, {-1, 4, 6}), {1}), 1, 5, units - 11));
     }},
    {"sum over both ends",
     [](const Tensor& h, const Tensor& x, const Tensor&) {
       const Tensor s = sum(reshape(h, {-1, 2, 3, 4}), {1, 3}, true);  // [B, 1, 3, 1]
       return tanh(x + reshape(0.5 * s * reshape(h, {-1, 2, 3, 4}), {-1, units}));
     }},
    {"outer product",
     [](const Tensor& h, const Tensor& x, const Tensor&) {
       const Tensor left = reshape(slice(h, 1, 0, 8), {-1, 2, 4, 1}),
                    right = reshape(slice(h, 1, 7, 13), {-1, 2, 1, 3});
       return tanh(x + reshape(left * right, {-1, units}));
     }},
    {"standardized product", [](const Tensor& h, const Tensor& x,
                                const Tensor& W) { return tanh(layer_norm(matmul(h, W) + x, at(W, 0), at(W, 1))); }},
    {"norm of a product",
     [](const Tensor& h, const Tensor& x, const Tensor& W) {
       const Tensor a = matmul(h, W);
       return tanh(x + a / (0.1 + norm(a, 5, {-1}, true)));
     }},
};

LoopCase loop_case(const Rule& rule, std::int64_t batch, DType dtype) {
  const Tensor W = random({units, units}, 31, dtype, -0.3, 0.3), start = random({batch, units}, 32, dtype),
               xs = random({6, batch, units}, 30, dtype);
  const Step step = [&rule, W](const Tensors& s, const Tensors& x) {
    const Tensor h = rule.next(s[0], x[0], W);
    return Next{{h}, {h}};
  };
  return {fmt::format("{}, batch {}", rule.name, batch),
          dtype == DType::f32,
          {step, [start] { return Tensors{start}; }, {xs}, {xs, W, start}}};
}

/// A state that is a sum over time, which the loop adds to in place.
LoopCase with_sum(std::int64_t batch) {
  const Tensor start = random({batch, units}, 32), xs = random({6, batch, units}, 30);
  const Step step = [](const Tensors& s, const Tensors& x) {
    const Tensor h = tanh(0.5 * roll(s[0], 1, 1) + x[0]);
    return Next{{h, s[1] + h * x[0]}, {h}};
  };
  return {fmt::format("sum over time, batch {}", batch),
          false,
          {step,
           [start] {
             return Tensors{start, 0.5 * start};
           },
           {xs},
           {xs, start}}};
}

}  // namespace

TEST_CASE("columns of a row that are combined") {
  check_loops([] {
    std::vector<LoopCase> cases;
    for (const Rule& rule : rules) {
      cases.push_back(loop_case(rule, 1, DType::f64));
      for (const DType dtype : {DType::f64, DType::f32}) cases.push_back(loop_case(rule, 7, dtype));  // 3 rows a block
    }
    cases.push_back(with_sum(7));
    return cases;
  });
}

TEST_CASE("a norm of numbers whose powers are no floats or doubles") {
  if (!HostKernels::available()) return;
  LoopDevice& device = LoopDevice::use();
  const auto last = [&](double p, double size, DType dtype) {
    const Step step = [&](const Tensors& s, const Tensors& x) {
      return Next{{x[0] * norm(s[0], p, {-1}, true) * (1 / std::pow(4.0, 1 / p))}, {}};
    };
    return scan(step, {Tensor::full({3, 4}, size, dtype)}, {Tensor::full({5, 3, 4}, 1, dtype)}, {}).last[0];
  };
  struct Case {
    double p, size;
    DType dtype;
  };
  const std::vector<Case> cases{{5, 1e30, DType::f32},     {5, 1e-30, DType::f32},   {9, 1e37, DType::f32},
                                {5, 1e300, DType::f64},    {5, 1e-300, DType::f64},  {2.5, 0, DType::f64},
                                {5, INFINITY, DType::f32}, {7, INFINITY, DType::f64}};
  for (const Case& c : cases) last(c.p, c.size, c.dtype);
  const HostKernels kernels = compiled(device);
  device.kernels = &kernels;
  for (const Case& c : cases) {
    CAPTURE(c.p);
    CAPTURE(c.size);
    device.at_once = 0;
    const double got = at(at(last(c.p, c.size, c.dtype), 1), 2).item();
    CHECK(device.at_once == 1);
    if (std::isfinite(c.size))
      CHECK(got == doctest::Approx(c.size).epsilon(1e-5));
    else
      CHECK(got == c.size);
  }
  CHECK(std::isnan(at(at(last(5, NAN, DType::f32), 0), 0).item()));
  CHECK(std::isnan(at(at(last(7, NAN, DType::f64), 0), 0).item()));
  device.kernels = nullptr;
  set_default_backend("cpu");
}
