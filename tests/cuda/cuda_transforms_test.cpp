// Loop kernels with Fourier transforms, lookups of columns and products by one vector, of real and complex numbers.
// Their text runs on the host, against the steps one by one, with first and second derivatives.
#include "backends/cuda/codegen/kernel_compiler.h"
#include "tests/emulator/loop_device.h"
#include "tests/support/check.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

/// h' of [B, n], with an input of the same shape and a vector v [n].
struct Rule {
  std::string name;
  std::int64_t n;
  bool is_complex;
  Tensor (*next)(const Tensor& h, const Tensor& x, const Tensor& v);
};

Tensor limited(const Tensor& z) { return z / (1 + abs(z)); }
Tensor by_vector(const Tensor& z, const Tensor& v) { return matmul(z, reshape(v, {-1, 1})); }
/// Columns n - 1, 0, 1, 1, 3, 4, ...: out of order, one twice, one never.
Tensor columns(std::int64_t n) {
  std::vector<std::int32_t> out{static_cast<std::int32_t>(n - 1), 0, 1, 1};
  while (std::ssize(out) < n) out.push_back(static_cast<std::int32_t>(out.size() - 1));
  return Tensor::from<std::int32_t>(out, {n});
}
const std::vector<Rule> rules{
    {"transform of 2", 2, true, [](const Tensor& h, const Tensor& x, const Tensor&) { return limited(x + fft(h)); }},
    {"transform of 16", 16, true,
     [](const Tensor& h, const Tensor& x, const Tensor& v) { return limited(x + v * fft(h)); }},
    {"transforms of 64, there and back", 64, true,
     [](const Tensor& h, const Tensor& x, const Tensor& v) {
       return limited(x + ifft(v * fft(h, {.norm = FftNorm::ortho}), {.norm = FftNorm::ortho}));
     }},
    {"two transforms of one row", 16, true,
     [](const Tensor& h, const Tensor& x, const Tensor& v) { return limited(x + v * fft(h) * ifft(h)); }},
    {"lookup", 12, false,
     [](const Tensor& h, const Tensor& x, const Tensor&) { return tanh(x + index_select(h, -1, columns(12))); }},
    {"lookup of complex numbers", 12, true,
     [](const Tensor& h, const Tensor& x, const Tensor& v) {
       return limited(x + v * index_select(h, -1, columns(12)));
     }},
    {"product by one vector", 40, true,
     [](const Tensor& h, const Tensor& x, const Tensor& v) {
       return limited(x + matmul(by_vector(h, v), reshape(v, {1, -1})));
     }},
    {"reflection", 40, true,
     [](const Tensor& h, const Tensor& x, const Tensor& v) {
       return limited(x + h - by_vector(h, conj(v)) * (2 / sum(square(abs(v))) * v));
     }},
};

Tensors derivatives(const Rule& rule, std::int64_t batch, bool single, bool unrolled) {
  const DType dtype = rule.is_complex ? (single ? DType::c64 : DType::c128) : single ? DType::f32 : DType::f64;
  const Tensor xs = random({6, batch, rule.n}, 30, dtype), v = random({rule.n}, 31, dtype),
               start = random({batch, rule.n}, 32, dtype);
  const auto inner = [](const Tensor& a, std::uint64_t seed) {
    const Tensor out = sum(a * random(a.shape(), seed, a.dtype()));
    return is_complex(a.dtype()) ? real(out) : out;
  };
  Tape tape;
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor h = rule.next(s[0], x[0], v);
    return Next{{h}, {h}};
  };
  const ScanResult out = unrolled ? unroll(step, {start}, {xs}, {}) : scan(step, {start}, {xs}, {});
  const Tensors wrt{xs, v, start};
  Tensors all = grad({inner(out.ys[0], 5)}, wrt, {.create_graph = true});
  Tensor along = inner(all[0], 40);
  for (std::size_t i = 1; i < wrt.size(); ++i) along = along + inner(all[i], 40 + i);
  for (const Tensor& g : grad({along}, wrt)) all.push_back(g);
  all.push_back(out.ys[0]);
  return all;
}

}  // namespace

TEST_CASE("transforms, lookups and products by one vector") {
  if (!HostKernels::available()) return;
  LoopDevice& device = LoopDevice::use();
  device.limits = {.processors = 3};
  struct Case {
    std::int64_t batch;
    bool single;
  };
  const std::vector<Case> cases{{1, false}, {4, false}, {4, true}};
  for (const Rule& rule : rules) {
    for (const Case& c : cases) derivatives(rule, c.batch, c.single, false);
  }
  std::vector<std::string> texts;
  for (const gpu::KernelSource& s : device.sources) texts.push_back(s.text);
  const HostKernels kernels(texts);
  for (const Rule& rule : rules) {
    for (const Case& c : cases) {
      CAPTURE(rule.name);
      CAPTURE(c.batch);
      CAPTURE(c.single);
      device.kernels = nullptr;
      const Tensors wanted = derivatives(rule, c.batch, c.single, true);
      device.kernels = &kernels;
      device.at_once = 0;
      const Tensors got = derivatives(rule, c.batch, c.single, false);
      CHECK(device.at_once >= 2);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(i);
        const bool second = i >= 3 && i < 6;  // derivatives, which rounding changes more
        CHECK(difference(got[i], wanted[i]) < (!c.single ? 1e-11 : second ? 1e-4 : 1e-5));
      }
    }
  }
  device.kernels = nullptr;
  set_default_backend("cpu");
  gpu::KernelCompiler compiler(90, "");
  for (std::size_t i = 0; i < device.sources.size(); i += 3)  // others differ from these by batch and dtype
    CHECK(compiler.compile(device.sources[i]).substr(1, 3) == "ELF");
}
