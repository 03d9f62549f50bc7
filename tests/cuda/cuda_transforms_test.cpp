// Loop kernels with Fourier transforms, lookups of columns and products by one vector, of real and complex numbers.
// Their text runs on the host, against the steps one by one, with first and second derivatives.
#include "tests/emulator/scan_derivatives.h"

using namespace reel;
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

LoopCase loop_case(const Rule& rule, std::int64_t batch, bool single) {
  const DType dtype = rule.is_complex ? (single ? DType::c64 : DType::c128) : single ? DType::f32 : DType::f64;
  const Tensor v = random({rule.n}, 31, dtype), start = random({batch, rule.n}, 32, dtype),
               xs = random({6, batch, rule.n}, 30, dtype);
  const Step step = [&rule, v](const Tensors& s, const Tensors& x) {
    const Tensor h = rule.next(s[0], x[0], v);
    return Next{{h}, {h}};
  };
  return {fmt::format("{}, batch {}", rule.name, batch),
          single,
          {step, [start] { return Tensors{start}; }, {xs}, {xs, v, start}}};
}

}  // namespace

TEST_CASE("transforms, lookups and products by one vector") {
  check_loops([] {
    std::vector<LoopCase> cases;
    for (const Rule& rule : rules) {
      cases.push_back(loop_case(rule, 1, false));
      for (const bool single : {false, true}) cases.push_back(loop_case(rule, 4, single));
    }
    return cases;
  });
}
