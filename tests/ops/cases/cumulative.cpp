#include <algorithm>

#include "ops/recurrence.h"
#include "tests/ops/cases/places.h"

namespace reel::test {

namespace {

/// Values that are f of the elements of input 0 up to each one, or with `reverse` from it on, along an axis.
ValueCheck so_far(std::int64_t axis, bool reverse, Complex (*f)(const Fibre&)) {
  return by_places([=](const Hosts& in, const Place& at) {
    Fibre v = along(in[0], at, axis);
    const auto here = v.begin() + at[static_cast<std::size_t>(axis < 0 ? axis + in[0].shape.rank() : axis)];
    return f(reverse ? Fibre(here, v.end()) : Fibre(v.begin(), here + 1));
  });
}

Complex total(const Fibre& v) {
  Complex sum = 0;
  for (const Complex& x : v) sum += x;
  return sum;
}
Complex product(const Fibre& v) {
  Complex p = 1;
  for (const Complex& x : v) p *= x;
  return p;
}
/// Inputs whose products do not overflow i32.
Tensor factors(const Shape& shape, std::uint64_t seed, DType d) {
  return d == DType::i32 ? cast(random(shape, seed, DType::f64, -3, 3), d) : input(shape, seed, d);
}
bool less(const Complex& a, const Complex& b) { return a.real() < b.real(); }
Complex largest(const Fibre& v) { return *std::max_element(v.begin(), v.end(), less); }
Complex smallest(const Fibre& v) { return *std::min_element(v.begin(), v.end(), less); }
/// The last index of x in v.
Complex last_place(const Fibre& v, const Complex& x) {
  return static_cast<double>(std::find(v.rbegin(), v.rend(), x).base() - v.begin() - 1);
}
Complex place_of_largest(const Fibre& v) { return last_place(v, largest(v)); }
Complex place_of_smallest(const Fibre& v) { return last_place(v, smallest(v)); }
Complex log_sum_exp(const Fibre& v) {
  double sum = 0;
  for (const Complex& x : v) sum += std::exp(x.real());
  return std::log(sum);
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  const auto add = [&](const char* op, const TensorFunction& f, const Shape& shape, const std::vector<DType>& dtypes,
                       const ValueCheck& value) {
    cases.push_back({op, f, [=](DType d) { return Tensors{input(shape, 45, d)}; }, dtypes, value});
  };
  const auto functions = [&](const Shape& shape, std::int64_t axis) {
    for (const bool reverse : {false, true})
      add(
          "cumsum", [=](const Tensors& x) { return cumsum(x[0], axis, reverse); }, shape, all_numbers,
          so_far(axis, reverse, total));
    const auto call = [=](Tensor (*f)(Arg, std::int64_t)) { return [=](const Tensors& x) { return f(x[0], axis); }; };
    const auto extremes = [&](const char* op, const TensorFunction& f, Complex (*value)(const Fibre&)) {
      const auto inputs = [=](DType d) { return Tensors{far_apart(shape, d)}; };
      cases.push_back({op, f, inputs, ordered, so_far(axis, false, value)});
    };
    extremes("argcummax", call(argcummax), place_of_largest);
    extremes("argcummin", call(argcummin), place_of_smallest);
    extremes("cummax", call(cummax), largest);
    extremes("cummin", call(cummin), smallest);
    add("logcumsumexp", call(logcumsumexp), shape, reals, so_far(axis, false, log_sum_exp));
    cases.push_back({"cumprod", call(cumprod), [=](DType d) { return Tensors{factors(shape, 46, d)}; }, all_numbers,
                     so_far(axis, false, product)});
  };
  for (std::int64_t axis : {0, 1, -1}) functions({2, 3, 4}, axis);
  functions({5}, 0);
  functions({1, 1}, 1);
  functions({0, 2}, 0);
  functions({3, 0}, 0);
  functions({2, 2100}, 0);
  functions({2, 75}, 1);
  functions({70, 3}, 0);

  const auto recurrences = [&](const Shape& shape, int axis, bool reverse) {
    const auto value = [=](const Hosts& in, const Place& at) {
      const Fibre f = along(in[0], at, axis), t = along(in[1], at, axis);
      const std::int64_t last = at[static_cast<std::size_t>(axis)], n = shape[axis];
      Complex y = 0;
      for (std::int64_t j = reverse ? n - 1 : 0; reverse ? j >= last : j <= last; j += reverse ? -1 : 1)
        y = f[static_cast<std::size_t>(j)] * y + t[static_cast<std::size_t>(j)];
      return y;
    };
    cases.push_back({"recurrence", [=](const Tensors& x) { return recurrence(x[0], x[1], axis, reverse); },
                     [=](DType d) {
                       return Tensors{factors(shape, 46, d), input(shape, 47, d)};
                     },
                     all_numbers, by_places(value)});
  };
  for (const bool reverse : {false, true}) {
    for (int axis : {0, 1, 2}) recurrences({2, 3, 4}, axis, reverse);
    recurrences({1}, 0, reverse);
    recurrences({0, 2}, 0, reverse);
    recurrences({3, 0}, 1, reverse);
    recurrences({2, 2100}, 0, reverse);
    recurrences({2, 75}, 1, reverse);
  }
});

}  // namespace

}  // namespace reel::test
