#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

using Dims = std::vector<std::int64_t>;

/// Layout ops are said by where each element of the result comes from.
using Source = std::function<Place(const Shape& x, const Place& at)>;

std::size_t from_end(std::int64_t axis, const Place& at) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(at.size()) : axis);
}

/// Moves along one axis: element j of the axis comes from f(j, extent of x).
Source moved(std::int64_t axis, const std::function<std::int64_t(std::int64_t, std::int64_t)>& f) {
  return [=](const Shape& x, Place at) {
    const std::size_t a = from_end(axis, at);
    at[a] = f(at[a], x[static_cast<int>(a)]);
    return at;
  };
}

Shape with(Shape shape, std::int64_t axis, std::int64_t n) {
  shape.set(static_cast<int>(axis < 0 ? axis + shape.rank() : axis), n);
  return shape;
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto row = [&](const char* op, const TensorFunction& f, const Shape& shape, const Shape& result,
                       const Source& source) {
    cases.push_back({op, f, [=](DType d) { return Tensors{input(shape, 51, d)}; }, every,
                     by_places([=](const Hosts&) { return result; },
                               [=](const Hosts& in, const Place& at) {
                                 const Place from = source(shape, at);
                                 for (std::int64_t i : from) {
                                   if (i < 0) return Complex(0);  // what is not from x is 0
                                 }
                                 return in[0](from);
                               })});
  };

  // The same elements in the same order.
  const auto same = [&](const char* op, const TensorFunction& f, const Shape& shape, const Shape& result) {
    cases.push_back({op, f, [=](DType d) { return Tensors{input(shape, 52, d)}; }, every,
                     [=](const Tensors& in, const Tensor& out) {
                       return out.shape() == result && elements(in[0]) == elements(out) ? 0.0 : 1.0;
                     }});
  };
  const auto reshaped = [&](const Shape& shape, const Dims& dims, const Shape& result) {
    same(
        "reshape", [=](const Tensors& x) { return reshape(x[0], dims); }, shape, result);
  };
  reshaped({4, 3}, {2, -1}, {2, 6});
  reshaped({2}, {2, -1}, {2, 1});
  reshaped({2, 0, 1, 3}, {2, -1}, {2, 0});
  reshaped({2, 1}, {-1}, {2});
  reshaped({1}, {}, {});
  const auto squeezed = [&](const Shape& shape, const Axes& axes, const Shape& result) {
    same(
        "squeeze", [=](const Tensors& x) { return squeeze(x[0], axes); }, shape, result);
  };
  squeezed({1, 3, 1}, {}, {3});
  squeezed({1, 3, 1}, {-1}, {1, 3});
  squeezed({1, 1}, {0, 1}, {});
  squeezed({2, 0, 1}, {}, {2, 0});
  for (const auto& [axis, result] :
       std::vector<std::pair<std::int64_t, Shape>>{{0, {1, 2, 3}}, {1, {2, 1, 3}}, {-1, {2, 3, 1}}})
    same(
        "unsqueeze", [axis = axis](const Tensors& x) { return unsqueeze(x[0], axis); }, {2, 3}, result);
  same("unsqueeze", [](const Tensors& x) { return unsqueeze(x[0], 0); }, {}, {1});
  for (std::int64_t t : {0, 2})
    row(
        "at", [=](const Tensors& x) { return at(x[0], t); }, {3, 2}, {2},
        [=](const Shape&, const Place& at) {
          return Place{t, at[0]};
        });

  const auto permuted = [&](const char* op, const TensorFunction& f, const Shape& shape, const Axes& order) {
    std::vector<std::int64_t> dims;
    for (std::int64_t a : order) dims.push_back(shape[static_cast<int>(a)]);
    row(op, f, shape, Shape(std::span<const std::int64_t>(dims)), [=](const Shape&, const Place& at) {
      Place from(at.size());
      for (std::size_t i = 0; i < at.size(); ++i) from[static_cast<std::size_t>(order[i])] = at[i];
      return from;
    });
  };
  const auto permute_to = [&](const Shape& shape, const Axes& order) {
    permuted(
        "permute", [=](const Tensors& x) { return permute(x[0], order); }, shape, order);
  };
  permute_to({2, 3, 4}, {2, 0, 1});
  permute_to({1, 1, 1}, {2, 0, 1});
  permute_to({0, 2, 3}, {2, 0, 1});
  permute_to({2, 3, 2, 3}, {3, 1, 0, 2});
  permute_to({37, 41}, {1, 0});  // squares and what is left of them
  permute_to({2, 19, 2, 35}, {0, 3, 2, 1});
  permute_to({2, 3}, {0, 1});
  const auto swap = [](const Tensors& x) { return transpose(x[0]); };
  permuted("transpose", swap, {3, 4}, {1, 0});
  permuted("transpose", swap, {1, 5}, {1, 0});
  permuted("transpose", swap, {2, 3, 4}, {0, 2, 1});
  permuted("movedim", [](const Tensors& x) { return movedim(x[0], 0, -1); }, {2, 3, 4}, {1, 2, 0});
  permuted("movedim", [](const Tensors& x) { return movedim(x[0], -1, 1); }, {2, 3, 4}, {0, 2, 1});
  permuted("movedim", [](const Tensors& x) { return movedim(x[0], 1, 1); }, {2, 3, 4}, {0, 1, 2});

  for (const Shape& shape : {Shape{4}, Shape{3, 1}, Shape{}, Shape{2, 1, 4}, Shape{1, 1}})
    row(
        "expand",
        [](const Tensors& x) {
          return expand(x[0], {2, 3, 4});
        },
        shape, {2, 3, 4},
        [](const Shape& x, const Place& at) {
          Place from(at.end() - x.rank(), at.end());
          for (int i = 0; i < x.rank(); ++i) from[static_cast<std::size_t>(i)] %= x[i];
          return from;
        });
  row(
      "expand",
      [](const Tensors& x) {
        return expand(x[0], {0, 3});
      },
      {1, 3}, {0, 3}, [](const Shape&, const Place& at) { return at; });

  const auto sliced = [&](const char* op, const Shape& shape, std::int64_t axis, std::int64_t first,
                          std::int64_t last) {
    row(
        op, [=](const Tensors& x) { return slice(x[0], axis, first, last); }, shape, with(shape, axis, last - first),
        moved(axis, [=](std::int64_t j, std::int64_t) { return j + first; }));
  };
  for (const Shape& shape : {Shape{3, 4}, Shape{2}, Shape{2, 0}}) sliced("slice_leading", shape, 0, 1, 2);
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 3, 5}, Shape{0, 3}}) sliced("slice", shape, -1, 1, 3);
  sliced("slice", {3, 4}, 1, 2, 2);

  const auto padded = [&](const Shape& shape, std::int64_t axis, std::int64_t before, std::int64_t after) {
    const std::int64_t n = shape[static_cast<int>(axis)];
    row(
        "pad", [=](const Tensors& x) { return pad(x[0], axis, before, after); }, shape,
        with(shape, axis, n + before + after),
        moved(axis, [=](std::int64_t j, std::int64_t) { return j < before || j >= before + n ? -1 : j - before; }));
  };
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 3, 5}, Shape{0, 3}, Shape{2, 0}}) padded(shape, 1, 2, 1);
  padded({3, 4}, 0, 0, 3);
  padded({2}, 0, 0, 3);
  padded({2}, 0, 0, 0);

  const auto rolled = [&](const Shape& shape, std::int64_t shift, std::int64_t axis) {
    row(
        "roll", [=](const Tensors& x) { return roll(x[0], shift, axis); }, shape, shape,
        moved(axis, [=](std::int64_t j, std::int64_t n) { return ((j - shift) % n + n) % n; }));
  };
  for (const Shape& shape : {Shape{3, 4}, Shape{5}, Shape{2, 1}, Shape{2, 0}}) rolled(shape, 1, -1);
  for (const Shape& shape : {Shape{3, 4}, Shape{5}, Shape{1, 2}}) rolled(shape, -7, 0);
  for (std::int64_t axis : {0, 1, -1}) {
    for (const Shape& shape : {Shape{3, 4, 5}, Shape{1, 1, 1}, Shape{2, 0, 3}})
      row(
          "flip", [=](const Tensors& x) { return flip(x[0], axis); }, shape, shape,
          moved(axis, [](std::int64_t j, std::int64_t n) { return n - 1 - j; }));
  }
  row(
      "flip", [](const Tensors& x) { return flip(x[0]); }, {9}, {9},
      moved(-1, [](std::int64_t j, std::int64_t n) { return n - 1 - j; }));

  const auto tiled = [&](const Shape& shape, const Dims& counts, const Shape& result) {
    row(
        "tile", [=](const Tensors& x) { return tile(x[0], counts); }, shape, result,
        [](const Shape& x, const Place& at) {
          Place from(at.end() - x.rank(), at.end());
          for (int i = 0; i < x.rank(); ++i) from[static_cast<std::size_t>(i)] %= x[i];
          return from;
        });
  };
  tiled({2, 3}, {2, 1}, {4, 3});
  tiled({2, 3}, {2}, {2, 6});
  tiled({3}, {2, 2}, {2, 6});
  tiled({2, 2}, {3, 0}, {6, 0});
  tiled({1, 2, 1, 2, 1, 2, 1, 2}, {2, 2, 2, 2, 1, 1, 1, 1}, {2, 4, 2, 4, 1, 2, 1, 2});
  for (const auto& [shape, count, axis] : std::vector<std::tuple<Shape, std::int64_t, std::int64_t>>{
           {{2, 3}, 2, -1}, {{2, 3}, 3, 0}, {{2}, 0, 0}, {{2}, 1, 0}})
    row(
        "repeat", [count = count, axis = axis](const Tensors& x) { return repeat(x[0], count, axis); }, shape,
        with(shape, axis, shape[static_cast<int>(axis < 0 ? axis + shape.rank() : axis)] * count),
        moved(axis, [count = count](std::int64_t j, std::int64_t) { return j / count; }));

  // Pieces, joined again in another order, and single ones.
  const auto piece = [&](const char* op, const std::function<Tensors(const Tensor&)>& f, std::size_t k,
                         const Shape& shape, std::int64_t axis, std::int64_t first, const Shape& result) {
    row(
        op, [=](const Tensors& x) { return f(x[0]).at(k); }, shape, result,
        [=](const Shape& x, Place at) {
          if (static_cast<int>(at.size()) < x.rank()) at.insert(at.begin() + axis, 0);
          at[static_cast<std::size_t>(axis)] += first;
          return at;
        });
  };
  piece("split", [](const Tensor& x) { return split(x, 3); }, 1, {2, 6}, 1, 2, {2, 2});
  piece("split", [](const Tensor& x) { return split(x, 2, 0); }, 1, {2, 6}, 0, 1, {1, 6});
  piece("split_with_sizes", [](const Tensor& x) { return split_with_sizes(x, {1, 3, 0, 2}); }, 3, {2, 6}, 1, 4, {2, 2});
  piece("split_with_sizes", [](const Tensor& x) { return split_with_sizes(x, {2, 1}, 0); }, 0, {3, 2}, 0, 0, {2, 2});
  piece("unstack", [](const Tensor& x) { return unstack(x); }, 1, {2, 6}, 0, 1, {6});
  piece("unstack", [](const Tensor& x) { return unstack(x, 1); }, 4, {2, 6, 3}, 1, 4, {2, 3});

  const auto joined = [&](const char* op, const TensorFunction& f, const std::vector<Shape>& shapes, std::int64_t axis,
                          const Shape& result, bool new_axis) {
    cases.push_back({op, f,
                     [=](DType d) {
                       Tensors parts;
                       for (const Shape& s : shapes) parts.push_back(input(s, 61 + parts.size(), d));
                       return parts;
                     },
                     every,
                     by_places([=](const Hosts&) { return result; },
                               [=](const Hosts& in, Place at) {
                                 const auto a = static_cast<std::size_t>(axis);
                                 if (new_axis) {
                                   const Host& part = in[static_cast<std::size_t>(at[a])];
                                   at.erase(at.begin() + axis);
                                   return part(at);
                                 }
                                 std::size_t k = 0;
                                 while (at[a] >= in[k].shape[static_cast<int>(axis)])
                                   at[a] -= in[k++].shape[static_cast<int>(axis)];
                                 return in[k](at);
                               })});
  };
  const std::vector<Shape> three(3, {2, 3, 4});
  joined(
      "concat", [](const Tensors& x) { return concat(x, 0); }, three, 0, {6, 3, 4}, false);
  joined(
      "concat", [](const Tensors& x) { return concat(x, 1); }, three, 1, {2, 9, 4}, false);
  joined(
      "concat", [](const Tensors& x) { return concat(x, -1); }, three, 2, {2, 3, 12}, false);
  joined(
      "concat", [](const Tensors& x) { return concat(x, 1); }, {{2, 3}, {2, 0}, {2, 1}}, 1, {2, 4}, false);
  joined(
      "stack", [](const Tensors& x) { return stack(x); }, three, 0, {3, 2, 3, 4}, true);
  joined(
      "stack", [](const Tensors& x) { return stack(x); }, {{}, {}}, 0, {2}, true);
});

}  // namespace

}  // namespace reel::test
