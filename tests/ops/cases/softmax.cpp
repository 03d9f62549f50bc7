#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

double sum_exp(const Fibre& v) {
  double sum = 0;
  for (const Complex& x : v) sum += std::exp(x.real());
  return sum;
}

double normalized(const Fibre& row, const Complex& x, double epsilon) {
  double mean = 0, variance = 0;
  for (const Complex& v : row) mean += v.real() / static_cast<double>(row.size());
  for (const Complex& v : row) variance += std::norm(v - mean) / static_cast<double>(row.size());
  return (x.real() - mean) / std::sqrt(variance + epsilon);
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, std::int64_t>>{{{3, 4}, -1},
                                                                               {{5}, 0},
                                                                               {{2, 3, 4}, 1},
                                                                               {{2, 3, 4}, 0},
                                                                               {{3, 1}, 1},
                                                                               {{0, 3}, -1},
                                                                               {{2, 0}, 1},
                                                                               {{2, 75}, 1}}) {
    const auto inputs = [shape = shape](DType d) { return Tensors{input(shape, 51, d, -4, 4)}; };
    cases.push_back({"softmax", [axis = axis](const Tensors& x) { return softmax(x[0], axis); }, inputs, reals,
                     by_places([axis = axis](const Hosts& in, const Place& at) {
                       return std::exp(in[0](at)) / sum_exp(along(in[0], at, axis));
                     })});
    cases.push_back({"log_softmax", [axis = axis](const Tensors& x) { return log_softmax(x[0], axis); }, inputs, reals,
                     by_places([axis = axis](const Hosts& in, const Place& at) {
                       return in[0](at) - std::log(sum_exp(along(in[0], at, axis)));
                     })});
  }
  for (const auto& [shape, axes] : std::vector<std::pair<Shape, Axes>>{{{3, 4}, {-1}},
                                                                       {{5}, {}},
                                                                       {{2, 3, 4}, {1}},
                                                                       {{2, 3, 4}, {2, 0}},
                                                                       {{3, 1}, {1}},
                                                                       {{0, 3}, {1}},
                                                                       {{2, 600}, {1}}}) {
    for (bool keep : {false, true})
      cases.push_back({"logsumexp", [axes = axes, keep](const Tensors& x) { return logsumexp(x[0], axes, keep); },
                       [shape = shape](DType d) { return Tensors{input(shape, 52, d, -4, 4)}; }, reals,
                       folded(axes, keep, [](const Fibre& v) { return std::log(sum_exp(v)); })});
  }
  for (const Shape& shape : {Shape{3, 4}, Shape{7}, Shape{2, 3, 5}, Shape{0, 3}, Shape{3, 1}, Shape{2, 75}}) {
    for (double epsilon : {1e-5, 0.5}) {
      cases.push_back({"standardize", [=](const Tensors& x) { return standardize(x[0], epsilon); },
                       [=](DType d) { return Tensors{input(shape, 53, d)}; }, reals,
                       by_places([=](const Hosts& in, const Place& at) {
                         return normalized(along(in[0], at, -1), in[0](at), epsilon);
                       })});
      const std::int64_t n = shape[shape.rank() - 1];
      cases.push_back({"layer_norm", [=](const Tensors& x) { return layer_norm(x[0], x[1], x[2], epsilon); },
                       [=](DType d) {
                         return Tensors{input(shape, 54, d), input({n}, 55, d), input({n}, 56, d)};
                       },
                       reals, by_places([=](const Hosts& in, const Place& at) {
                         return normalized(along(in[0], at, -1), in[0](at), epsilon) * in[1]({at.back()}) +
                                in[2]({at.back()});
                       })});
    }
  }
});

}  // namespace

}  // namespace reel::test
