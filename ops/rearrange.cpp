// More ops that rearrange elements, composed of those in layout.cpp.
#include "ops/ops.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// reshape to a Shape.
Tensor shaped(const Tensor& x, const Shape& shape, const Loc& where) {
  return reshape({x, where}, {shape.begin(), shape.end()});
}

/// Repeats x, viewed as [before, after], along a new axis between: [before, n, after].
Tensor repeated(const Tensor& x, std::int64_t before, std::int64_t after, std::int64_t n, const Loc& where) {
  const Tensor one = reshape({x, where}, {before, 1, after});
  return expand({one, where}, {before, n, after});
}

}  // namespace

Tensor transpose(Arg x) {
  need_tensors("transpose", {&x});
  if (x->rank() < 2) fail("transpose", x.where, "two axes or more are needed; got {}", x->spec().str());
  Axes order;
  for (int i = 0; i < x->rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order);
}

Tensor movedim(Arg x, std::int64_t from, std::int64_t to) {
  return named("movedim", x, [&] {
    const int a = checked_axis(from, x->rank()), b = checked_axis(to, x->rank());
    Axes order;
    for (int i = 0; i < x->rank(); ++i) {
      if (i != a) order.push_back(i);
    }
    order.insert(order.begin() + b, a);
    return permute(x, order);
  });
}

Tensor squeeze(Arg x, const Axes& axes) {
  return named("squeeze", x, [&] {
    std::array<bool, Shape::max_rank> gone{};
    for (std::int64_t a : axes) {
      const int i = checked_axis(a, x->rank());
      if (x->dim(i) != 1) rule_error("only axes of extent 1 can go, axis {} has {}", a, x->dim(i));
      gone[static_cast<std::size_t>(i)] = true;
    }
    std::vector<std::int64_t> dims;
    for (int i = 0; i < x->rank(); ++i) {
      if (axes.empty() ? x->dim(i) != 1 : !gone[static_cast<std::size_t>(i)]) dims.push_back(x->dim(i));
    }
    return reshape(x, dims);
  });
}

Tensor unsqueeze(Arg x, std::int64_t axis) {
  return named("unsqueeze", x,
               [&] { return shaped(x, x->shape().insert(checked_axis(axis, x->rank() + 1), 1), x.where); });
}

Tensor at(Arg x, std::int64_t t) {
  need_tensors("at", {&x});
  if (x->rank() == 0 || t < 0 || t >= x->dim(0))
    fail("at", x.where, "there is no element {} along axis 0; got {}", t, x->spec().str());
  const Tensor row = slice(x, 0, t, t + 1);
  return shaped(row, row.shape().erase(0), x.where);
}

Tensors unstack(Arg x, std::int64_t axis) {
  return named("unstack", x, [&] {
    const int a = checked_axis(axis, x->rank());
    Tensors parts;
    for (std::int64_t i = 0; i < x->dim(a); ++i)
      parts.push_back(shaped(slice(x, a, i, i + 1), x->shape().erase(a), x.where));
    return parts;
  });
}

Tensor stack(const Tensors& parts, Loc where) {
  if (parts.empty()) fail("stack", where, "at least one part is needed");
  Tensors rows;
  for (const Tensor& p : parts) {
    if (p.shape() != parts[0].shape())
      fail("stack", where, "all parts must have one shape; got {}, {}", parts[0].spec().str(), p.spec().str());
    rows.push_back(shaped(p, p.shape().insert(0, 1), where));
  }
  return told_as("stack", "concat", [&] { return concat(rows, 0, where); });
}

Tensors split(Arg x, int parts, std::int64_t axis) {
  const int a = named("split", x, [&] { return checked_axis(axis, x->rank()); });
  const std::int64_t n = x->dim(a);
  if (parts < 1 || n % parts != 0)
    fail("split", x.where, "the extent of axis {}, {}, is not divisible by {}; got {}", a, n, parts, x->spec().str());
  Tensors out;
  for (int i = 0; i < parts; ++i) out.push_back(slice(x, a, i * (n / parts), (i + 1) * (n / parts)));
  return out;
}

Tensors split_with_sizes(Arg x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  return named("split_with_sizes", x, [&] {
    const int a = checked_axis(axis, x->rank());
    std::int64_t first = 0;
    for (std::int64_t n : sizes) {
      if (n < 0) rule_error("sizes are 0 or more, got {}", n);
      first = saturated_sum(first, n);
    }
    if (first != x->dim(a)) rule_error("the sizes add up to {}, the extent of axis {} is {}", first, a, x->dim(a));
    Tensors parts;
    first = 0;
    for (std::int64_t n : sizes) {
      parts.push_back(slice(x, a, first, first + n));
      first += n;
    }
    return parts;
  });
}

Tensor tile(Arg x, const std::vector<std::int64_t>& counts) {
  return named("tile", x, [&] {
    if (std::ssize(counts) > Shape::max_rank)
      rule_error("a tensor has at most {} axes, got counts for {}", Shape::max_rank, counts.size());
    Tensor y = x;
    while (y.rank() < static_cast<int>(counts.size())) y = unsqueeze({y, x.where}, 0);
    const int lead = y.rank() - static_cast<int>(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] < 0) rule_error("counts are 0 or more, got {}", counts[i]);
      if (counts[i] == 1) continue;
      const int axis = lead + static_cast<int>(i);
      Shape shape = y.shape();
      const std::int64_t before = shape.product(0, axis), after = shape.product(axis, shape.rank());
      shape.set(axis, saturated_product(shape[axis], counts[i]));
      y = shaped(repeated(y, before, after, counts[i], x.where), shape, x.where);
    }
    return y;
  });
}

Tensor repeat(Arg x, std::int64_t count, std::int64_t axis) {
  return named("repeat", x, [&] {
    const int a = checked_axis(axis, x->rank());
    if (count < 0) rule_error("the count is 0 or more, got {}", count);
    Shape shape = x->shape();
    const std::int64_t before = shape.product(0, a + 1), after = shape.product(a + 1, shape.rank());
    shape.set(a, saturated_product(shape[a], count));
    return shaped(repeated(x, before, after, count, x.where), shape, x.where);
  });
}

namespace primitive {
Tensor at(const Tensor& x, std::int64_t t) { return reel::at(x, t); }
Tensor stack(const Tensors& rows) { return reel::stack(rows); }
}  // namespace primitive

}  // namespace reel
