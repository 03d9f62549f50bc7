#include "ops/rotation.h"

#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

/// y_j = C_j x_j + S_j x_partner(j) on each row.
std::vector<Complex> turned(const std::vector<Complex>& x, const std::vector<Complex>& C, const std::vector<Complex>& S,
                            RotationLayer layer) {
  std::vector<Complex> y;
  const std::size_t n = C.size();
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t j = k % n, row = k - j;
    const auto o = static_cast<std::size_t>(layer.offset), d = static_cast<std::size_t>(layer.distance);
    std::size_t partner = j;
    if (j >= o) {
      const std::size_t block = (j - o) / (2 * d) * (2 * d) + o, other = (j - block + d) % (2 * d) + block;
      if (block + 2 * d <= n) partner = other;
    }
    y.push_back(C[j] * x[k] + S[j] * x[row + partner]);
  }
  return y;
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  for (const RotationLayer layer : {RotationLayer{0, 1}, {1, 1}, {0, 2}, {0, 4}, {1, 3}, {0, 100}}) {
    for (const Shape& shape :
         {Shape{3, 8}, Shape{4, 4}, Shape{8}, Shape{2, 3, 7}, Shape{1}, Shape{0, 4}, Shape{2, 0}}) {
      const std::int64_t n = shape[shape.rank() - 1];
      if (layer.offset > n) continue;
      cases.push_back({"exchange", [=](const Tensors& x) { return exchange(x[0], layer); },
                       [=](DType d) { return Tensors{input(shape, 101, d)}; }, every, listed([=](const auto& in) {
                         const auto size = static_cast<std::size_t>(n);
                         std::vector<Complex> own(size), other(size, 1.0);
                         for (std::size_t j = 0; j < size; ++j) own[j] = 0;
                         return turned(in[0], own, other, layer);
                       })});
      cases.push_back({"rotate", [=](const Tensors& x) { return rotate(x[0], x[1], x[2], layer); },
                       [=](DType d) {
                         return Tensors{input(shape, 102, d), input({n}, 103, d), input({n}, 104, d)};
                       },
                       fields, listed([=](const auto& in) { return turned(in[0], in[1], in[2], layer); })});
    }
  }
});

}  // namespace

}  // namespace reel::test
