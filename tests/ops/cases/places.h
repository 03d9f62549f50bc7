// Independent definitions of ops that move or combine elements: what stands at each place of a result, by plain loops.
#pragma once
#include <algorithm>

#include "tests/ops/op_cases.h"

namespace reel::test {

using Place = std::vector<std::int64_t>;

/// Calls f with every place of a shape, in row-major order.
template <class F>
void each_place(const Shape& shape, F&& f) {
  Place at(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t left = shape.numel(); left > 0; --left) {
    f(static_cast<const Place&>(at));
    for (std::size_t k = at.size(); k-- > 0;) {
      if (++at[k] < shape[static_cast<int>(k)]) break;
      at[k] = 0;
    }
  }
}

/// A tensor's elements by place.
struct Host {
  Shape shape;
  std::vector<Complex> v;

  explicit Host(const Tensor& x) : shape(x.shape()), v(elements(x)) {}
  Complex operator()(const Place& at) const {
    std::int64_t k = 0;
    for (std::size_t i = 0; i < at.size(); ++i) k = k * shape[static_cast<int>(i)] + at[i];
    return v.at(static_cast<std::size_t>(k));
  }
  /// The element as an index.
  std::int64_t whole(const Place& at) const { return static_cast<std::int64_t>((*this)(at).real()); }
};
using Hosts = std::vector<Host>;

/// Values given by place: f(in, at) stands at place `at` of the result, whose shape is shape(in).
inline ValueCheck by_places(const std::function<Shape(const Hosts&)>& shape,
                            const std::function<Complex(const Hosts&, const Place&)>& f) {
  return [=](const Tensors& in, const Tensor& out) {
    Hosts hosts(in.begin(), in.end());
    if (!(out.shape() == shape(hosts))) return HUGE_VAL;
    const Host y(out);
    double error = 0, scale = 1;
    each_place(out.shape(), [&](const Place& at) {
      const Complex want = f(hosts, at), got = y(at);
      const double d = want == got ? 0 : std::abs(want - got);  // also where both are infinite
      error = std::isnan(d) ? HUGE_VAL : std::max(error, d);
      scale = std::max(scale, std::isfinite(std::abs(want)) ? std::abs(want) : 0);
    });
    return error / scale;
  };
}

/// Values by place of a result of the shape of input 0.
inline ValueCheck by_places(const std::function<Complex(const Hosts&, const Place&)>& f) {
  return by_places([](const Hosts& in) { return in[0].shape; }, f);
}

using Fibre = std::vector<Complex>;
/// The elements of x at all places that differ from `at` along `axis` alone, in order.
inline Fibre along(const Host& x, Place at, std::int64_t axis) {
  const auto a = static_cast<std::size_t>(axis < 0 ? axis + x.shape.rank() : axis);
  Fibre v;
  for (at[a] = 0; at[a] < x.shape[static_cast<int>(a)]; ++at[a]) v.push_back(x(at));
  return v;
}

/// Numbers so far apart that finite differences do not change their order; integers, of which some are equal.
inline Tensor far_apart(const Shape& shape, DType d) {
  if (d == DType::i32) return input(shape, 48, d);
  const Tensor place = arange(shape.numel(), DType::f64);
  return cast(reshape(remainder(place * 61803.0, 100003.0) * 0.01, {shape.begin(), shape.end()}), d);
}

/// Values that are f of all elements of input 0 that differ in the given axes alone (none given: all), in order.
inline ValueCheck folded(const Axes& axes, bool keep_dims, const std::function<Complex(const Fibre&)>& f) {
  const auto gone = [axes](int axis, int rank) {
    const auto named = [&](std::int64_t a) { return (a < 0 ? a + rank : a) == axis; };
    return axes.empty() || std::any_of(axes.begin(), axes.end(), named);
  };
  const auto shape = [=](const Hosts& in) {
    std::vector<std::int64_t> dims;
    for (int i = 0; i < in[0].shape.rank(); ++i) {
      if (!gone(i, in[0].shape.rank()))
        dims.push_back(in[0].shape[i]);
      else if (keep_dims)
        dims.push_back(1);
    }
    return Shape(std::span<const std::int64_t>(dims));
  };
  return by_places(shape, [=](const Hosts& in, const Place& at) {
    const Host& x = in[0];
    Shape over = x.shape;  // extents of 1 where the place is given
    Place from;
    std::size_t next = 0;
    for (int i = 0; i < over.rank(); ++i) {
      const bool reduced = gone(i, over.rank());
      from.push_back(reduced ? 0 : at[next]);
      if (!reduced || keep_dims) ++next;
      if (!reduced) over.set(i, 1);
    }
    Fibre all;
    each_place(over, [&](const Place& step) {
      Place here = from;
      for (std::size_t i = 0; i < here.size(); ++i) here[i] += step[i];
      all.push_back(x(here));
    });
    return f(all);
  });
}

}  // namespace reel::test
