#include <algorithm>
#include <numeric>

#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

/// The indices that sort v.
std::vector<std::size_t> order_of(const Fibre& v, bool descending) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return descending ? v[j].real() < v[i].real() : v[i].real() < v[j].real();
  });
  return order;
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto add = [&](const Shape& shape, int axis, bool descending, std::int64_t k) {
    const auto here = static_cast<std::size_t>(axis);
    const auto found = [=](const Hosts& in, const Place& at) {
      return order_of(along(in[0], at, axis), descending)[static_cast<std::size_t>(at[here])];
    };
    const auto index = [=](const Hosts& in, const Place& at) { return Complex(static_cast<double>(found(in, at))); };
    const auto element = [=](const Hosts& in, Place at) {
      at[here] = static_cast<std::int64_t>(found(in, at));
      return in[0](at);
    };
    const auto inputs = [=](DType d) { return Tensors{far_apart(shape, d)}; };
    const auto sorted = [=](const Hosts&) { return shape; };
    cases.push_back({"argsort", [=](const Tensors& x) { return argsort(x[0], axis, descending); }, inputs, ordered,
                     by_places(sorted, index)});
    cases.push_back({"sort", [=](const Tensors& x) { return sort(x[0], axis, descending); }, inputs, ordered,
                     by_places(sorted, element)});
    if (!descending) return;
    const auto some = [=](const Hosts&) {
      Shape s = shape;
      s.set(axis, k);
      return s;
    };
    cases.push_back({"top_k", [=](const Tensors& x) { return top_k(x[0], k, axis).values; }, inputs, ordered,
                     by_places(some, element)});
    cases.push_back({"top_k", [=](const Tensors& x) { return top_k(x[0], k, axis).indices; }, inputs, ordered,
                     by_places(some, index)});
  };
  for (const bool descending : {false, true}) {
    for (int axis : {0, 1, 2}) add({2, 3, 5}, axis, descending, 2);
    add({5}, 0, descending, 5);
    add({1, 1}, 1, descending, 1);
    add({0, 2}, 0, descending, 0);
    add({3, 0}, 0, descending, 1);
    add({4, 3}, 1, descending, 0);
    for (std::int64_t n : {7, 8, 33, 100}) add({2, n}, 1, descending, 3);
    add({70, 3}, 0, descending, 64);
  }
});

}  // namespace

}  // namespace reel::test
