#include "ops/sum_rows.h"

#include <algorithm>

#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

using Reduction = Tensor (*)(Arg, const Axes&, bool);

Complex total(const Fibre& v) {
  Complex sum = 0;
  for (const Complex& x : v) sum += x;
  return sum;
}
Complex average(const Fibre& v) { return total(v) / static_cast<double>(v.size()); }
Complex product(const Fibre& v) {
  Complex p = 1;
  for (const Complex& x : v) p *= x;
  return p;
}
bool less(const Complex& a, const Complex& b) { return a.real() < b.real(); }
Complex largest(const Fibre& v) { return *std::max_element(v.begin(), v.end(), less); }
Complex smallest(const Fibre& v) { return *std::min_element(v.begin(), v.end(), less); }
Complex some(const Fibre& v) { return std::count(v.begin(), v.end(), Complex(1)) > 0; }
Complex every_one(const Fibre& v) { return std::count(v.begin(), v.end(), Complex(0)) == 0; }
Complex variance(const Fibre& v, double correction) {
  const Complex mean = average(v);
  double sum = 0;
  for (const Complex& x : v) sum += std::norm(x - mean);
  return sum / (static_cast<double>(v.size()) - correction);
}
Complex p_norm(const Fibre& v, double p) {
  double sum = 0;
  for (const Complex& x : v) sum = std::isinf(p) ? std::max(sum, std::abs(x)) : sum + std::pow(std::abs(x), p);
  return std::isinf(p) ? sum : std::pow(sum, 1 / p);
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto reduce = [&](const char* op, Reduction f, Complex (*value)(const Fibre&), const Shape& shape,
                          const Axes& axes, bool keep_dims, const std::vector<DType>& dtypes) {
    cases.push_back({op, [=](const Tensors& x) { return f(x[0], axes, keep_dims); },
                     [=](DType d) { return Tensors{input(shape, 41, d)}; }, dtypes, folded(axes, keep_dims, value)});
  };
  const std::vector<DType> booleans{DType::boolean};
  bool keep_dims = false;
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{-1}, Axes{0, 2}, Axes{1, 2}, Axes{1, 0}}) {
    for (const Shape& shape : {Shape{3, 4, 5}, Shape{1, 1, 1}, Shape{2, 70, 40}}) {
      keep_dims = !keep_dims;
      reduce("sum", sum, total, shape, axes, keep_dims, all_numbers);
      reduce("mean", mean, average, shape, axes, keep_dims, fields);
      reduce("any", any, some, shape, axes, keep_dims, booleans);
      reduce("all", all, every_one, shape, axes, keep_dims, booleans);
      if (shape.numel() > 1000) continue;  // finite differences must not move the largest past the next
      reduce("max", max, largest, shape, axes, keep_dims, ordered);
      reduce("min", min, smallest, shape, axes, keep_dims, ordered);
    }
  }
  for (const Shape& shape :
       {Shape{3, 5}, Shape{7}, Shape{1, 4}, Shape{0, 3}, Shape{4, 0}, Shape{5, 2, 9}, Shape{9, 130}}) {
    cases.push_back({"sum_rows", [](const Tensors& x) { return sum_rows(x[0]); },
                     [=](DType d) { return Tensors{input(shape, 41, d)}; }, all_numbers, folded({0}, true, total)});
    cases.push_back({"sum_products", [](const Tensors& x) { return sum_products(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{input(shape, 41, d), input(shape, 42, d)};
                     },
                     all_numbers,
                     by_places(
                         [](const Hosts& in) {
                           Shape row = in[0].shape;
                           row.set(0, 1);
                           return row;
                         },
                         [](const Hosts& in, Place at) {
                           Complex sum = 0;
                           for (; at[0] < in[0].shape[0]; ++at[0]) sum += in[0](at) * in[1](at);
                           return sum;
                         })});
  }
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{0, 2}})
    reduce("prod", prod, product, {3, 2, 3}, axes, keep_dims = !keep_dims, all_numbers);
  reduce("prod", prod, product, {5, 1}, {0}, false, all_numbers);
  reduce("prod", prod, product, {7}, {}, false, all_numbers);
  reduce("prod", prod, product, {3, 0}, {1}, true, all_numbers);
  // Many numbers to one, many rows to one, and both with leftovers.
  for (const auto& [shape, axes] : std::vector<std::pair<Shape, Axes>>{
           {{3, 2500}, {1}}, {{300, 7}, {0}}, {{19, 2100}, {0}}, {{2, 1100, 3}, {1}}, {{6, 5, 7, 3}, {1, 3}}}) {
    reduce("sum", sum, total, shape, axes, false, all_numbers);
    reduce("any", any, some, shape, axes, false, booleans);
    cases.push_back({"max", [axes = axes](const Tensors& x) { return max(x[0], axes); },
                     [shape = shape](DType d) { return Tensors{far_apart(shape, d)}; }, ordered,
                     folded(axes, false, largest)});
  }
  // Nothing to reduce, and nothing left.
  reduce("sum", sum, total, {0, 3}, {0}, false, all_numbers);
  reduce("sum", sum, total, {0, 3}, {1}, false, all_numbers);
  reduce("sum", sum, total, {}, {}, true, all_numbers);
  reduce("max", max, largest, {0, 3}, {1}, false, ordered);
  reduce("min", min, smallest, {0, 3}, {1}, true, ordered);
  reduce("any", any, some, {0, 3}, {0}, false, booleans);
  reduce("all", all, every_one, {0, 3}, {0}, false, booleans);

  // Of equal elements the first counts; integers have some.
  const auto place = [&](const char* op, Tensor (*f)(Arg, std::int64_t), Complex (*best)(const Fibre&),
                         const Shape& shape, std::int64_t axis) {
    cases.push_back({op, [=](const Tensors& x) { return f(x[0], axis); },
                     [=](DType d) { return Tensors{input(shape, 44, d)}; }, ordered,
                     folded({axis}, false, [best](const Fibre& v) {
                       return static_cast<double>(std::find(v.begin(), v.end(), best(v)) - v.begin());
                     })});
  };
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, std::int64_t>>{
           {{3, 5}, -1}, {{4}, 0}, {{0, 2}, 1}, {{1, 1}, 0}, {{2, 500}, 1}, {{500, 3}, 0}, {{2, 9, 7}, 1}}) {
    place("argmax", argmax, largest, shape, axis);
    place("argmin", argmin, smallest, shape, axis);
  }

  const auto statistics = [&](const Shape& shape, const Axes& axes, double correction, bool keep) {
    const auto inputs = [=](DType d) { return Tensors{input(shape, 46, d)}; };
    cases.push_back({"var", [=](const Tensors& x) { return var(x[0], axes, keep, correction); }, inputs, fields,
                     folded(axes, keep, [=](const Fibre& v) { return variance(v, correction); })});
    cases.push_back({"std_dev", [=](const Tensors& x) { return std_dev(x[0], axes, keep, correction); }, inputs, fields,
                     folded(axes, keep, [=](const Fibre& v) { return std::sqrt(variance(v, correction)); })});
  };
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{-1}, Axes{0, 2}}) {
    statistics({3, 4, 5}, axes, 0, true);
    statistics({3, 4, 5}, axes, 1, false);
  }
  statistics({0, 3}, {1}, 0, false);

  const auto norms = [&](const Shape& shape, const Axes& axes, double p, bool keep) {
    cases.push_back({"norm", [=](const Tensors& x) { return norm(x[0], p, axes, keep); },
                     [=](DType d) { return Tensors{input(shape, 47, d)}; }, fields,
                     folded(axes, keep, [=](const Fibre& v) { return p_norm(v, p); })});
  };
  for (double p : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.5, static_cast<double>(INFINITY)}) {
    norms({3, 4}, {-1}, p, false);
    norms({2, 3, 4}, {0, 2}, p, true);
    norms({5}, {}, p, false);
    norms({3, 0}, {1}, p, false);
  }
  norms({2, 200}, {1}, 2, false);
  norms({40, 5}, {0}, 5, false);
});

}  // namespace

}  // namespace reel::test
