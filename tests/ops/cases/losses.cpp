// Losses against their formulas, place by place.
#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

using List = std::vector<Complex>;
using LossFunction = std::function<Tensor(Arg x, Arg target, const LossOptions& options)>;

enum class Weights { none, all, rows, mask };  // rows: one for each row, stretched

struct Row {
  Shape shape;  // of the places
  Weights weights;
  LossReduction reduction;
};

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const Weights w : {Weights::none, Weights::all, Weights::rows, Weights::mask}) {
    for (const LossReduction r : {LossReduction::mean, LossReduction::sum, LossReduction::none})
      out.push_back({{3, 4}, w, r});
  }
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 2}}) {
    for (const Weights w : {Weights::none, Weights::all}) out.push_back({shape, w, LossReduction::mean});
  }
  return out;
}

Tensor weights(const Row& row, DType dtype) {
  if (row.weights == Weights::mask) return input(row.shape, 143, DType::boolean);
  return input(row.weights == Weights::rows ? Shape{row.shape[0], 1} : row.shape, 143, real_of(dtype), 0.5, 2);
}

LossOptions options(const Row& row, const Tensors& in) {
  return {.weight = row.weights == Weights::none ? Tensor() : in[2], .reduction = row.reduction};
}

/// The loss of each place, weighted and reduced.
List reduced(const Row& row, const List& loss, const std::vector<List>& in) {
  List y;
  Complex sum = 0, total = 0;
  const auto columns = static_cast<std::size_t>(row.weights == Weights::rows ? row.shape[1] : 1);
  for (std::size_t i = 0; i < loss.size(); ++i) {
    const Complex w = row.weights == Weights::none ? 1 : in[2][i / columns];
    y.push_back(w * loss[i]);
    sum += y.back();
    total += w;
  }
  if (row.reduction == LossReduction::none) return y;
  if (row.reduction == LossReduction::sum) return {sum};
  return {total == 0.0 ? 0 : sum / total};
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto pairs = [&](const char* name, const LossFunction& f, const std::vector<DType>& dtypes, double low,
                         double high, const std::function<double(Complex x, Complex t)>& value) {
    for (const Row& row : rows())
      cases.push_back({name, [=](const Tensors& x) { return f(x[0], x[1], options(row, x)); },
                       [=](DType d) {
                         return Tensors{input(row.shape, 141, d), input(row.shape, 142, d, low, high), weights(row, d)};
                       },
                       dtypes, listed([=](const std::vector<List>& in) {
                         List loss;
                         for (std::size_t i = 0; i < in[0].size(); ++i) loss.emplace_back(value(in[0][i], in[1][i]));
                         return reduced(row, loss, in);
                       })});
  };
  pairs("mse", mse, fields, -2, 2, [](Complex x, Complex t) { return std::norm(x - t); });
  pairs("l1_loss", l1_loss, fields, 3, 4, [](Complex x, Complex t) { return std::abs(x - t); });
  const LossFunction huber = [](Arg x, Arg t, const LossOptions& o) { return huber_loss(x, t, 1.5, o); };
  const auto huber_value = [](Complex x, Complex t) {
    const double d = std::abs(x - t);
    return d <= 1.5 ? d * d / 2 : 1.5 * (d - 0.75);
  };
  pairs("huber_loss", huber, reals, -2, 2, huber_value);
  pairs("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits, reals, 0, 1, [](Complex x, Complex t) {
    const double p = 1 / (1 + std::exp(-x.real()));
    return -t.real() * std::log(p) - (1 - t.real()) * std::log(1 - p);
  });
  const auto cross_entropies = [&](const Row& row, std::int64_t n) {  // of n classes
    cases.push_back(
        {"cross_entropy", [=](const Tensors& x) { return cross_entropy(x[0], x[1], options(row, x)); },
         [=](DType d) {
           return Tensors{input(row.shape.insert(row.shape.rank(), n), 144, d), indices(row.shape, n), weights(row, d)};
         },
         reals, listed([=](const std::vector<List>& in) {
           List loss;
           const auto classes = static_cast<std::size_t>(n);
           for (std::size_t i = 0; i < in[1].size(); ++i) {
             Complex sum = 0;
             for (std::size_t k = 0; k < classes; ++k) sum += std::exp(in[0][i * classes + k]);
             loss.push_back(std::log(sum) - in[0][i * classes + static_cast<std::size_t>(in[1][i].real())]);
           }
           return reduced(row, loss, in);
         })});
  };
  for (const Row& row : rows()) cross_entropies(row, 5);
  for (const std::int64_t n : {1, 64, 65, 513}) cross_entropies({{3, 4}, Weights::none, LossReduction::mean}, n);
});

}  // namespace

}  // namespace reel::test
