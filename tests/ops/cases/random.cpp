// Random tensors against their numbers one at a time: element i from seed, stream and i alone.
#include <random>

#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

/// f of the place of each element of a result of n.
ValueCheck by_index(std::int64_t n, const std::function<double(std::uint64_t)>& f) {
  return listed([=](const std::vector<std::vector<Complex>>&) {
    std::vector<Complex> y;
    for (std::int64_t i = 0; i < n; ++i) y.emplace_back(f(static_cast<std::uint64_t>(i)));
    return y;
  });
}

/// 0..n-1 shuffled from the end, below(i) saying which of the first i comes to place i - 1.
std::vector<Complex> shuffled(std::int64_t n, const std::function<std::int64_t(std::int64_t)>& below) {
  std::vector<Complex> y;
  for (std::int64_t i = 0; i < n; ++i) y.emplace_back(static_cast<double>(i));
  for (std::int64_t i = n; i > 1; --i)
    std::swap(y[static_cast<std::size_t>(i - 1)], y[static_cast<std::size_t>(below(i))]);
  return y;
}

constexpr std::uint64_t seed = 7, stream = 3;

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto of_dtype = [](DType d) { return Tensors{Tensor::zeros({}, d)}; };
  const auto nothing = [](DType) { return Tensors{}; };
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{1}, Shape{0, 2}}) {
    const std::int64_t n = shape.numel();
    cases.push_back({"full", [=](const Tensors& x) { return full(shape, 1, x[0].dtype()); }, of_dtype, every,
                     by_index(n, [](std::uint64_t) { return 1.0; })});
    cases.push_back({"uniform", [=](const Tensors& x) { return uniform(shape, -1, 3, seed, stream, x[0].dtype()); },
                     of_dtype, reals,
                     by_index(n, [](std::uint64_t i) { return 4 * uniform_at(seed, stream, i) - 1; })});
    cases.push_back({"normal", [=](const Tensors& x) { return normal(shape, 2, 0.5, seed, stream, x[0].dtype()); },
                     of_dtype, reals,
                     by_index(n, [](std::uint64_t i) { return 2 + 0.5 * normal_at(seed, stream, i); })});
    cases.push_back({"bernoulli",
                     [=](const Tensors&) { return bernoulli(shape, 0.3, seed, stream); },
                     nothing,
                     {DType::boolean},
                     by_index(n, [](std::uint64_t i) { return uniform_at(seed, stream, i) < 0.3 ? 1 : 0; })});
    cases.push_back({"integers",
                     [=](const Tensors&) { return integers(shape, -4, 9, seed, stream); },
                     nothing,
                     {DType::i32},
                     by_index(n, [](std::uint64_t i) { return std::floor(13 * uniform_at(seed, stream, i)) - 4; })});
    for (const double p : {0.0, 0.4})
      cases.push_back({"dropout", [=](const Tensors& x) { return dropout(x[0], p, seed, stream); },
                       [=](DType d) { return Tensors{input(shape, 131, d)}; }, fields,
                       listed([=](const std::vector<std::vector<Complex>>& in) {
                         std::vector<Complex> y = in[0];
                         for (std::size_t i = 0; i < y.size(); ++i)
                           y[i] = uniform_at(seed, stream, i) < 1 - p ? y[i] / (1 - p) : 0;
                         return y;
                       })});
  }
  for (const std::int64_t n : {0, 1, 2, 10, 100}) {
    cases.push_back({"permutation",
                     [=](const Tensors&) { return permutation(n, seed, stream); },
                     nothing,
                     {DType::i32},
                     listed([=](const std::vector<std::vector<Complex>>&) {
                       Stream numbers(seed, stream);
                       return shuffled(n, [&](std::int64_t i) { return numbers.below(i); });
                     })});
    cases.push_back({"numpy_permutation",
                     [=](const Tensors&) {
                       std::mt19937 generator(seed);
                       return numpy_permutation(n, generator);
                     },
                     nothing,
                     {DType::i32},
                     listed([=](const std::vector<std::vector<Complex>>&) {
                       std::mt19937 generator(seed);
                       return shuffled(n, [&](std::int64_t i) {
                         std::int64_t mask = 1, x = i;
                         while (mask < i - 1) mask = 2 * mask + 1;
                         while (x >= i) x = static_cast<std::int64_t>(generator()) & mask;
                         return x;
                       });
                     })});
  }
});

}  // namespace

}  // namespace reel::test
