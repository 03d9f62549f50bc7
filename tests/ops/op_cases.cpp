#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {
std::vector<void (*)(Cases&)>& families() {
  static std::vector<void (*)(Cases&)> list;
  return list;
}

/// The largest difference, relative to the largest element (or absolute when that is below 1).
double worst(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  if (a.size() != b.size()) return INFINITY;
  double error = 0, scale = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    error = std::isnan(d) ? INFINITY : std::max(error, d);
    scale = std::max({scale, std::abs(a[i]), std::abs(b[i])});
  }
  return error / scale;
}
}  // namespace

bool add_cases(void (*fill)(Cases&)) {
  families().push_back(fill);
  return true;
}

const Cases& op_cases() {
  static const Cases cases = [] {
    Cases all;
    for (const auto fill : families()) fill(all);
    return all;
  }();
  return cases;
}

Tensor input(const Shape& shape, std::uint64_t seed, DType dtype, double low, double high) {
  if (dtype == DType::i32) return cast(random(shape, seed, DType::f64, -8, 8), dtype);
  if (dtype == DType::boolean) return random(shape, seed) > 0;
  return random(shape, seed, dtype, low, high);
}

Tensor indices(const Shape& shape, std::int64_t n) {
  std::vector<std::int32_t> v;
  Stream s(5, 5);
  for (std::int64_t i = 0; i < shape.numel(); ++i) v.push_back(static_cast<std::int32_t>(s.below(n)));
  return Tensor::from<std::int32_t>(v, shape);
}

ValueCheck pointwise(const std::function<Complex(Complex)>& f) {
  return [f](const Tensors& in, const Tensor& out) {
    std::vector<Complex> y;
    for (const Complex& x : elements(in[0])) y.push_back(f(x));
    return worst(elements(out), y);
  };
}

ValueCheck pointwise(const std::function<Complex(Complex, Complex)>& f) {
  return [f](const Tensors& in, const Tensor& out) {
    const auto a = elements(expand(in[0], out.shape())), b = elements(expand(in[1], out.shape()));
    std::vector<Complex> y;
    for (std::size_t i = 0; i < a.size(); ++i) y.push_back(f(a[i], b[i]));
    return worst(elements(out), y);
  };
}

ValueCheck listed(const std::function<std::vector<Complex>(const std::vector<std::vector<Complex>>& in)>& f) {
  return [f](const Tensors& in, const Tensor& out) {
    std::vector<std::vector<Complex>> lists;
    for (const Tensor& x : in) lists.push_back(elements(x));
    return worst(elements(out), f(lists));
  };
}

}  // namespace reel::test
