#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

/// Element (i, j) of each matrix of x as f says: f(i, j, x_ij).
ValueCheck by_place(const std::function<Complex(std::int64_t, std::int64_t, Complex)>& f) {
  return [f](const Tensors& in, const Tensor& out) {
    const auto x = elements(in[0]), y = elements(out);
    const std::int64_t m = in[0].dim(-2), n = in[0].dim(-1);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto place = static_cast<std::int64_t>(k) % (m * n);
      if (y[k] != f(place / n, place % n, x[k])) return 1.0;
    }
    return x.size() == y.size() ? 0.0 : 1.0;
  };
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4, 3}, Shape{3, 5}, Shape{1, 1}, Shape{0, 3}}) {
    const auto inputs = [=](DType d) { return Tensors{input(shape, 91, d)}; };
    cases.push_back({"diag", [](const Tensors& x) { return diag(x[0]); }, inputs, every,
                     listed([=](const std::vector<std::vector<Complex>>& in) {
                       std::vector<Complex> y;
                       const std::int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1];
                       for (std::size_t k = 0; k < in[0].size(); ++k) {
                         const auto place = static_cast<std::int64_t>(k) % (m * n);
                         if (place / n == place % n) y.push_back(in[0][k]);
                       }
                       return y;
                     })});
    for (std::int64_t k : {-1, 0, 2}) {
      cases.push_back({"tril", [=](const Tensors& x) { return tril(x[0], k); }, inputs, every,
                       by_place([=](auto i, auto j, Complex v) { return j <= i + k ? v : 0; })});
      cases.push_back({"triu", [=](const Tensors& x) { return triu(x[0], k); }, inputs, every,
                       by_place([=](auto i, auto j, Complex v) { return j >= i + k ? v : 0; })});
    }
  }
  for (const Shape& shape : {Shape{4}, Shape{2, 3}, Shape{0}, Shape{1}})
    cases.push_back({"diag_embed", [](const Tensors& x) { return diag_embed(x[0]); },
                     [=](DType d) { return Tensors{input(shape, 92, d)}; }, every,
                     listed([=](const std::vector<std::vector<Complex>>& in) {
                       const auto n = static_cast<std::size_t>(shape[shape.rank() - 1]);
                       std::vector<Complex> y(in[0].size() * n);
                       for (std::size_t k = 0; k < in[0].size(); ++k) y[k * n + k % n] = in[0][k];
                       return y;
                     })});
});

}  // namespace

}  // namespace reel::test
