// Loop kernels that combine columns of a row: sums, norms, standardized rows, outer products, padding. Their text runs
// on the host, against the steps one by one, with first and second derivatives.
#include "backends/cuda/codegen/kernel_compiler.h"
#include "tests/emulator/loop_device.h"
#include "tests/support/check.h"

using namespace reel;
namespace gpu = reel::cuda;
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

Tensors derivatives(const Rule& rule, std::int64_t batch, DType dtype, bool unrolled) {
  const Tensor xs = random({6, batch, units}, 30, dtype), W = random({units, units}, 31, dtype, -0.3, 0.3),
               start = random({batch, units}, 32, dtype);
  Tape tape;
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor h = rule.next(s[0], x[0], W);
    return Next{{h}, {h}};
  };
  const ScanResult out = unrolled ? unroll(step, {start}, {xs}, {}) : scan(step, {start}, {xs}, {});
  const Tensors wrt{xs, W, start};
  Tensors all = grad({sum(out.ys[0] * random(out.ys[0].shape(), 5, dtype))}, wrt, {.create_graph = true});
  Tensor along = Tensor::zeros({}, dtype);
  for (std::size_t i = 0; i < wrt.size(); ++i) along = along + sum(all[i] * random(wrt[i].shape(), 40 + i, dtype));
  for (const Tensor& g : grad({along}, wrt)) all.push_back(g);
  all.push_back(out.ys[0]);
  return all;
}

}  // namespace

TEST_CASE("columns of a row that are combined") {
  if (!HostKernels::available()) return;
  LoopDevice& device = LoopDevice::use();
  device.limits = {.processors = 3};
  struct Case {
    std::int64_t batch;
    DType dtype;
  };
  const std::vector<Case> cases{{1, DType::f64}, {7, DType::f64}, {7, DType::f32}};  // three rows a block, but the last
  for (const Rule& rule : rules) {
    for (const Case& c : cases) derivatives(rule, c.batch, c.dtype, false);
  }
  std::vector<std::string> texts;
  for (const gpu::KernelSource& s : device.sources) texts.push_back(s.text);
  const HostKernels kernels(texts);
  for (const Rule& rule : rules) {
    for (const Case& c : cases) {
      CAPTURE(rule.name);
      CAPTURE(c.batch);
      device.kernels = nullptr;
      const Tensors wanted = derivatives(rule, c.batch, c.dtype, true);
      device.kernels = &kernels;
      device.at_once = 0;
      const Tensors got = derivatives(rule, c.batch, c.dtype, false);
      CHECK(device.at_once >= 2);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(i);
        const bool second = i >= 3 && i < 6;  // derivatives, which rounding changes more
        CHECK(difference(got[i], wanted[i]) < (c.dtype == DType::f64 ? 1e-11 : second ? 1e-4 : 1e-5));
      }
    }
  }
  device.kernels = nullptr;
  set_default_backend("cpu");
  gpu::KernelCompiler compiler(90, "");
  for (std::size_t i = 0; i < device.sources.size(); i += 3)  // others differ from these by batch and dtype
    CHECK(compiler.compile(device.sources[i]).substr(1, 3) == "ELF");
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
  std::vector<std::string> texts;
  for (const gpu::KernelSource& s : device.sources) texts.push_back(s.text);
  const HostKernels kernels(texts);
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
