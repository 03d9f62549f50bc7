#include <utility>

#include "engine/autodiff/primitives.h"
#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

Place operator+(Place a, const Place& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Place part(const Place& at, int first, int last) { return {at.begin() + first, at.begin() + last}; }
Shape shape_of(const Place& dims) { return Shape(std::span<const std::int64_t>(dims)); }
Place dims_of(const Shape& s) { return {s.begin(), s.end()}; }

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto select = [&](const char* op, const TensorFunction& f, const Shape& x, int axis, const Shape& index) {
    const Place dims = dims_of(x), result = part(dims, 0, axis) + dims_of(index) + part(dims, axis + 1, x.rank());
    cases.push_back({op, f,
                     [=](DType d) {
                       return Tensors{input(x, 71, d), indices(index, x[axis])};
                     },
                     every,
                     by_places([=](const Hosts&) { return shape_of(result); },
                               [=](const Hosts& in, const Place& at) {
                                 const int after = axis + index.rank();
                                 const Place row{in[1].whole(part(at, axis, after))};
                                 return in[0](part(at, 0, axis) + row + part(at, after, static_cast<int>(at.size())));
                               })});
  };
  // Into extent `count`: each place of the result is the sum of what is sent there.
  const auto add = [&](const char* op, const TensorFunction& f, const Shape& values, int axis, const Shape& index,
                       std::int64_t count) {
    const int after = axis + index.rank();
    const Place dims = dims_of(values), tail = part(dims, after, values.rank());
    const Shape result = shape_of(part(dims, 0, axis) + Place{count} + tail);
    cases.push_back({op, f,
                     [=](DType d) {
                       return Tensors{input(values, 72, d), indices(index, count)};
                     },
                     all_numbers,
                     by_places([=](const Hosts&) { return result; },
                               [=](const Hosts& in, const Place& at) {
                                 const Place rest = part(at, axis + 1, static_cast<int>(at.size()));
                                 const std::int64_t row = at[static_cast<std::size_t>(axis)];
                                 Complex sum = 0;
                                 each_place(index, [&](const Place& i) {
                                   if (in[1].whole(i) == row) sum += in[0](part(at, 0, axis) + i + rest);
                                 });
                                 return sum;
                               })});
  };
  for (const Shape& index : {Shape{4, 3}, Shape{2}, Shape{}, Shape{0}}) {
    cases.push_back({"named_rows", [](const Tensors& x) { return primitive::named_rows(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{input({6, 2}, 73, d), indices(index, 6)};
                     },
                     every,
                     by_places(
                         [](const Hosts&) {
                           return Shape{6, 2};
                         },
                         [=](const Hosts& in, const Place& at) {
                           bool named = false;
                           each_place(index, [&](const Place& i) { named = named || in[1].whole(i) == at[0]; });
                           return named ? in[0](at) : Complex(0);
                         })});
  }
  for (const Shape& index : {Shape{4, 3}, Shape{5}, Shape{}, Shape{0}}) {
    for (int axis : {0, 1, 2})
      select(
          "index_select", [=](const Tensors& x) { return index_select(x[0], axis, x[1]); }, {3, 2, 4}, axis, index);
    select(
        "index_select", [](const Tensors& x) { return index_select(x[0], -1, x[1]); }, {6}, 0, index);
    select(
        "embedding", [](const Tensors& x) { return embedding(x[1], x[0]); }, {6, 2}, 0, index);
    for (int axis : {0, 1}) {
      const Shape values = shape_of((axis == 0 ? Place{} : Place{3}) + dims_of(index) + Place{2});
      add(
          "index_add", [=](const Tensors& x) { return index_add(x[0], axis, x[1], 4); }, values, axis, index, 4);
    }
    add(
        "index_add", [](const Tensors& x) { return index_add(x[0], -1, x[1], 4); }, shape_of(Place{3} + dims_of(index)),
        1, index, 4);
    add(
        "segment_sum", [](const Tensors& x) { return segment_sum(x[1], x[0], 6); }, shape_of(dims_of(index) + Place{2}),
        0, index, 6);
  }
  // as many rows in the table as in the result: which of them a thread has a share of must not be mixed up
  select("index_select", [](const Tensors& x) { return index_select(x[0], 0, x[1]); }, {4, 2}, 0, {4});
  // as many indices as rows, of another axis: a share of the rows has use for all of them
  add(
      "index_add", [](const Tensors& x) { return index_add(x[0], 1, x[1], 4); }, {5, 5}, 1, {5}, 4);

  const auto with = [](Shape s, int axis, std::int64_t n) {
    s.set(axis, n);
    return s;
  };
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int>>{
           {{3, 5}, 1}, {{3, 5}, 0}, {{2, 3, 4}, 1}, {{6}, 0}, {{1, 1}, 0}, {{0, 2}, 1}}) {
    for (std::int64_t m : {0, 1, 7}) {
      const Shape x = shape, index = with(shape, axis, m);
      const int a = axis;
      cases.push_back({"take_along", [=](const Tensors& in) { return take_along(in[0], in[1], a); },
                       [=](DType d) {
                         return Tensors{input(x, 73, d), indices(index, x[a])};
                       },
                       every,
                       by_places([](const Hosts& in) { return in[1].shape; },
                                 [=](const Hosts& in, Place at) {
                                   at[static_cast<std::size_t>(a)] = in[1].whole(at);
                                   return in[0](at);
                                 })});
      cases.push_back({"scatter_add", [=](const Tensors& in) { return scatter_add(in[0], in[1], a, 3); },
                       [=](DType d) {
                         return Tensors{input(index, 74, d), indices(index, 3)};
                       },
                       all_numbers,
                       by_places([=](const Hosts&) { return with(index, a, 3); },
                                 [=](const Hosts& in, Place at) {
                                   const std::int64_t j = std::exchange(at[static_cast<std::size_t>(a)], 0);
                                   Complex sum = 0;
                                   for (std::int64_t k = 0; k < m; ++k) {
                                     at[static_cast<std::size_t>(a)] = k;
                                     if (in[1].whole(at) == j) sum += in[0](at);
                                   }
                                   return sum;
                                 })});
    }
  }

  for (const Shape& shape : {Shape{4, 3}, Shape{5}, Shape{}, Shape{0}}) {
    const Shape wide = shape.insert(shape.rank(), 5);
    const auto last = [](const Place& at) { return part(at, 0, static_cast<int>(at.size()) - 1); };
    cases.push_back({"pick", [](const Tensors& x) { return pick(x[0], x[1]); },
                     [=](DType d) {
                       return Tensors{input(wide, 75, d), indices(shape, 5)};
                     },
                     every,
                     by_places([=](const Hosts&) { return shape; },
                               [](const Hosts& in, const Place& at) { return in[0](at + Place{in[1].whole(at)}); })});
    cases.push_back({"place", [](const Tensors& x) { return place(x[0], x[1], 5); },
                     [=](DType d) {
                       return Tensors{input(shape, 76, d), indices(shape, 5)};
                     },
                     all_numbers,
                     by_places([=](const Hosts&) { return wide; },
                               [=](const Hosts& in, const Place& at) {
                                 return in[1].whole(last(at)) == at.back() ? in[0](last(at)) : 0;
                               })});
    for (DType to : all_dtypes)
      cases.push_back({"one_hot",
                       [=](const Tensors& x) { return one_hot(x[0], 5, to); },
                       [=](DType) { return Tensors{indices(shape, 5)}; },
                       {DType::i32},
                       by_places([=](const Hosts&) { return wide; },
                                 [=](const Hosts& in, const Place& at) {
                                   return in[0].whole(last(at)) == at.back() ? Complex(1) : Complex(0);
                                 })});
  }

  cases.push_back({"masked_fill", [](const Tensors& x) { return masked_fill(x[0], x[1], 3); },
                   [](DType d) {
                     return Tensors{input({2, 3}, 77, d), input({3}, 78, DType::boolean)};
                   },
                   all_numbers, by_places([](const Hosts& in, const Place& at) {
                     return in[1]({at[1]}) == 1.0 ? Complex(3) : in[0](at);
                   })});
  cases.push_back(
      {"masked_fill", [](const Tensors& x) { return masked_fill(x[0], x[1], x[2]); },
       [](DType d) {
         return Tensors{input({2, 3}, 77, d), input({2, 3}, 78, DType::boolean), input({}, 79, d)};
       },
       every, by_places([](const Hosts& in, const Place& at) { return in[1](at) == 1.0 ? in[2]({}) : in[0](at); })});
});

}  // namespace

}  // namespace reel::test
