// Ops that move elements without changing them. All are linear, so no vjp needs the inputs. All are one strided copy,
// except reshape and slices of the leading axis, which are views.
#include <algorithm>
#include <functional>

#include "ops/attributes.h"
#include "ops/axes.h"
#include "ops/ops.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// A strided copy, with operand strides for each axis of `shape`.
void strided_copy(const Shape& shape, const std::array<std::int64_t, Shape::max_rank>& si, std::int64_t first_in,
                  const std::array<std::int64_t, Shape::max_rank>& so, std::int64_t first_out, const Tensor& in,
                  Tensor& out) {
  StridedLoop<2> loop;
  for (int i = 0; i < shape.rank(); ++i)
    loop.push(shape[i], {si[static_cast<std::size_t>(i)], so[static_cast<std::size_t>(i)]});
  const std::size_t e = size_of(in.dtype());
  out.backend().copy({in.dtype(), loop,
                      static_cast<const std::byte*>(in.data()) + static_cast<std::size_t>(first_in) * e,
                      static_cast<std::byte*>(out.data()) + static_cast<std::size_t>(first_out) * e});
}

void fill_zero(Tensor& out) { out.backend().fill({out.dtype(), out.numel(), 0, out.data()}); }

constexpr Traits layout(const char* name) {
  return {.name = name, .kind = Kind::movement, .saves = Saves::nothing, .linear = true};
}

std::vector<std::int64_t> dims_of(const Shape& s) { return {s.begin(), s.end()}; }

struct Reshape {
  Shape shape;
  bool operator==(const Reshape&) const = default;
  static constexpr Traits traits = layout("reshape");
  Spec infer(Inputs in) const {
    if (shape.numel() != in[0].numel()) rule_error("{} elements do not fill shape {}", in[0].numel(), shape.str());
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  std::int64_t alias(Inputs) const { return 0; }
  void vjp(Vjp& v) const { v.set(0, reshape(v.dy(), dims_of(v.spec(0).shape))); }
  Tensor vmap(Inputs in, Mapped, std::int64_t steps) const { return reshape(in[0], dims_of(shape.insert(0, steps))); }
  bool shards_rows(Inputs in, Mapped) const { return shape.rank() > 0 && shape[0] == in[0].dim(0); }
};
REEL_OP(Reshape)

struct Permute {
  std::array<std::int8_t, Shape::max_rank> order{};
  int rank = 0;
  bool operator==(const Permute&) const = default;
  static constexpr Traits traits = layout("permute");
  std::size_t axis(int i) const { return static_cast<std::size_t>(order[static_cast<std::size_t>(i)]); }
  Spec infer(Inputs in) const {
    std::array<std::int64_t, Shape::max_rank> dims{};
    unsigned seen = 0;
    for (int i = 0; i < rank; ++i) {
      seen |= 1U << axis(i);
      dims[static_cast<std::size_t>(i)] = in[0].shape()[static_cast<int>(axis(i))];
    }
    if (seen != (1U << rank) - 1) rule_error("the order must name each axis once");
    return {in[0].dtype(), Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank))),
            &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const auto strides = strides_of(in[0].shape());
    std::array<std::int64_t, Shape::max_rank> si{};
    for (int i = 0; i < rank; ++i) si[static_cast<std::size_t>(i)] = strides[axis(i)];
    strided_copy(out.shape(), si, 0, strides_of(out.shape()), 0, in[0], out);
  }
  void vjp(Vjp& v) const {
    Permute back{{}, rank};
    for (int i = 0; i < rank; ++i) back.order[axis(i)] = static_cast<std::int8_t>(i);
    v.set(0, apply(back, {&v.dy()}, Loc::current()));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const {
    Permute after{{0}, rank + 1};
    for (int i = 0; i < rank; ++i)
      after.order[static_cast<std::size_t>(i) + 1] = static_cast<std::int8_t>(order[static_cast<std::size_t>(i)] + 1);
    return apply(after, {&in[0]}, Loc::current());
  }
  bool shards_rows(Inputs, Mapped) const { return axis(0) == 0; }
};
REEL_OP(Permute)
REEL_ATTRIBUTES(Permute, {"order", std::vector<double>(op.order.begin(), op.order.begin() + op.rank)})

struct Expand {
  Shape shape;
  bool operator==(const Expand&) const = default;
  static constexpr Traits traits = layout("expand");
  Spec infer(Inputs in) const {
    const auto both = broadcast(in[0].shape(), shape);
    if (!both || !(*both == shape)) rule_error("the shape cannot be broadcast to {}", shape.str());
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const auto own = strides_of(in[0].shape());
    std::array<std::int64_t, Shape::max_rank> si{};
    for (int i = 0; i < shape.rank(); ++i)
      si[static_cast<std::size_t>(i)] = broadcast_stride(in[0].shape(), own, i, shape.rank());
    strided_copy(out.shape(), si, 0, strides_of(out.shape()), 0, in[0], out);
  }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() == shape.rank() && in[0].dim(0) == shape[0]; }
  void vjp(Vjp& v) const { v.set(0, sum_to(v.dy(), v.spec(0).shape)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t steps) const {
    return expand(align(in[0], shape.rank()), shape.insert(0, steps));
  }
};
REEL_OP(Expand)

/// Slices along axis 0 are views.
struct LeadingSlice {
  std::int64_t first, last;
  bool operator==(const LeadingSlice&) const = default;
  static constexpr Traits traits = layout("slice_leading");
  Spec infer(Inputs in) const {
    if (in[0].rank() == 0) rule_error("a scalar has no axis to slice");
    if (first < 0 || last < first || last > in[0].dim(0))
      rule_error("elements {}..{} are not within axis 0", first, last);
    Shape shape = in[0].shape();
    shape.set(0, last - first);
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  std::int64_t alias(Inputs in) const { return first * in[0].shape().product(1, in[0].rank()); }
  void vjp(Vjp& v) const { v.set(0, pad(v.dy(), 0, first, v.spec(0).shape[0] - last)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return slice(in[0], 1, first, last); }
};
REEL_OP(LeadingSlice)
REEL_ATTRIBUTES(LeadingSlice, {"first", attribute(op.first)}, {"last", attribute(op.last)})

struct Slice {
  int axis;
  std::int64_t first, last;
  bool operator==(const Slice&) const = default;
  static constexpr Traits traits = layout("slice");
  Spec infer(Inputs in) const {
    if (first < 0 || last < first || last > in[0].dim(axis))
      rule_error("elements {}..{} are not within axis {}", first, last, axis);
    Shape shape = in[0].shape();
    shape.set(axis, last - first);
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const auto si = strides_of(in[0].shape());
    strided_copy(out.shape(), si, first * si[static_cast<std::size_t>(axis)], strides_of(out.shape()), 0, in[0], out);
  }
  void vjp(Vjp& v) const { v.set(0, pad(v.dy(), axis, first, v.spec(0).shape[axis] - last)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return slice(in[0], axis + 1, first, last); }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(Slice)
REEL_ATTRIBUTES(Slice, {"axis", attribute(op.axis)}, {"first", attribute(op.first)}, {"last", attribute(op.last)})

struct Pad {
  int axis;
  std::int64_t before, after;
  bool operator==(const Pad&) const = default;
  static constexpr Traits traits = layout("pad");
  Spec infer(Inputs in) const {
    if (before < 0 || after < 0) rule_error("the number of zeros is 0 or more, got {} and {}", before, after);
    Shape shape = in[0].shape();
    shape.set(axis, saturated_sum(shape[axis], saturated_sum(before, after)));
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    if (before + after > 0) fill_zero(out);
    const auto so = strides_of(out.shape());
    strided_copy(in[0].shape(), strides_of(in[0].shape()), 0, so, before * so[static_cast<std::size_t>(axis)], in[0],
                 out);
  }
  void vjp(Vjp& v) const { v.set(0, slice(v.dy(), axis, before, before + v.spec(0).shape[axis])); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return pad(in[0], axis + 1, before, after); }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(Pad)
REEL_ATTRIBUTES(Pad, {"axis", attribute(op.axis)}, {"before", attribute(op.before)}, {"after", attribute(op.after)})

struct Concat {
  int axis;
  bool operator==(const Concat&) const = default;
  static constexpr Traits traits = layout("concat");
  Spec infer(Inputs in) const {
    Shape shape = in[0].shape();
    for (std::size_t i = 1; i < in.size(); ++i) {
      if (in[i].dtype() != in[0].dtype()) rule_error("all parts must have one dtype");
      if (in[i].rank() != shape.rank()) rule_error("all parts must have the same number of axes");
      for (int k = 0; k < shape.rank(); ++k) {
        if (k != axis && in[i].dim(k) != shape[k])
          rule_error("part {} differs along axis {}, not only along {}", i, k, axis);
      }
      shape.set(axis, shape[axis] + in[i].dim(axis));
    }
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const auto so = strides_of(out.shape());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      strided_copy(in[i].shape(), strides_of(in[i].shape()), 0, so, first * so[static_cast<std::size_t>(axis)], in[i],
                   out);
      first += in[i].dim(axis);
    }
  }
  void vjp(Vjp& v) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < v.inputs(); ++i) {
      const std::int64_t n = v.spec(i).shape[axis];
      if (v.needs(i)) v.set(i, slice(v.dy(), axis, first, first + n));
      first += n;
    }
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    Tensors parts;
    for (std::size_t i = 0; i < in.size(); ++i)
      parts.push_back(mapped[i] ? in[i] : expand(in[i], in[i].shape().insert(0, steps)));
    return concat(parts, axis + 1);
  }
  bool shards_rows(Inputs in, Mapped sharded) const {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!sharded[i]) return false;
    }
    return axis != 0;
  }
};
REEL_OP(Concat)
REEL_ATTRIBUTES(Concat, {"axis", attribute(op.axis)})

struct Roll {
  int axis;
  std::int64_t shift;
  bool operator==(const Roll&) const = default;
  static constexpr Traits traits = layout("roll");
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    const std::int64_t n = out.shape()[axis];
    if (out.numel() == 0) return;
    const std::int64_t s = (shift % n + n) % n, inner = out.shape().product(axis + 1, out.rank()), block = n * inner;
    const std::int64_t blocks = out.numel() / block;
    const std::size_t e = size_of(out.dtype());
    const auto move = [&](std::int64_t first, std::int64_t count, std::int64_t from, std::int64_t to,
                          std::int64_t width) {
      StridedLoop<2> loop;
      loop.push(count, {block, block});
      loop.push(width, {1, 1});
      out.backend().copy(
          {out.dtype(), loop,
           static_cast<const std::byte*>(in[0].data()) + static_cast<std::size_t>(first * block + from) * e,
           static_cast<std::byte*>(out.data()) + static_cast<std::size_t>(first * block + to) * e});
    };
    // Both parts are moved for a few blocks at a time, so that the second finds them in the cache.
    const std::int64_t few =
        std::max<std::int64_t>(1, out.backend().costs().copied_at_once / (block * static_cast<std::int64_t>(e)));
    for (std::int64_t first = 0; first < blocks; first += few) {
      const std::int64_t count = std::min(few, blocks - first);
      move(first, count, 0, s * inner, (n - s) * inner);
      move(first, count, (n - s) * inner, 0, s * inner);
    }
  }
  void vjp(Vjp& v) const { v.set(0, roll(v.dy(), -shift, axis)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return roll(in[0], shift, axis + 1); }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
  std::optional<FusedCall> fuse(Inputs in) const {
    const std::int64_t n = in[0].dim(axis);
    if (axis != in[0].rank() - 1 || n == 0 || n > std::numeric_limits<int>::max()) return std::nullopt;
    if (n > FusedArgs::block && in[0].spec().backend->runs_in_blocks())
      return std::nullopt;  // a fused block holds only a part of a row
    FusedCall call{.kind = FusedCall::Kind::roll, .functor = static_cast<int>((shift % n + n) % n)};
    call.dtype = call.to = in[0].dtype();
    return call;
  }
};
REEL_OP(Roll)
REEL_ATTRIBUTES(Roll, {"axis", attribute(op.axis)}, {"shift", attribute(op.shift)})

struct Flip {
  int axis;
  bool operator==(const Flip&) const = default;
  static constexpr Traits traits = layout("flip");
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    if (out.numel() == 0) return;
    const auto so = strides_of(out.shape());
    auto si = so;
    std::int64_t& step = si[static_cast<std::size_t>(axis)];
    const std::int64_t last = (out.dim(axis) - 1) * step;
    step = -step;
    strided_copy(out.shape(), si, last, so, 0, in[0], out);
  }
  void vjp(Vjp& v) const { v.set(0, flip(v.dy(), axis)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return flip(in[0], axis + 1); }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(Flip)
REEL_ATTRIBUTES(Flip, {"axis", attribute(op.axis)})

}  // namespace

Tensor reshape(Arg x, const std::vector<std::int64_t>& dims) {
  return named("reshape", x, [&] {
    std::vector<std::int64_t> known = dims;
    std::int64_t product = 1, open = -1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == -1 && open >= 0) rule_error("-1 can stand for one extent, but {} and {} are -1", open, i);
      if (dims[i] == -1)
        open = static_cast<std::int64_t>(i);
      else
        product = saturated_product(product, dims[i]);
    }
    if (open >= 0) {
      if (product == 0) rule_error("-1 is ambiguous here: the other extents multiply to 0");
      known[static_cast<std::size_t>(open)] = x->numel() / product;
    }
    return apply(Reshape{Shape(std::span<const std::int64_t>(known))}, x);
  });
}

Tensor permute(Arg x, const Axes& order) {
  return named("permute", x, [&] {
    if (std::ssize(order) != x->rank())
      rule_error("the order names {} ax{}s, the tensor has {}", order.size(), order.size() == 1 ? "i" : "e", x->rank());
    Permute op{{}, x->rank()};
    for (int i = 0; i < op.rank; ++i)
      op.order[static_cast<std::size_t>(i)] =
          static_cast<std::int8_t>(checked_axis(order[static_cast<std::size_t>(i)], op.rank));
    const auto first = op.order.begin();
    const auto end = first + op.rank;
    if (std::adjacent_find(first, end, std::greater_equal<>{}) == end) return x.tensor();
    return apply(op, x);
  });
}

Tensor expand(Arg x, const Shape& shape) {
  return x.tensor("expand").shape() == shape ? x.tensor() : apply(Expand{shape}, x);
}

Tensor slice(Arg x, std::int64_t axis, std::int64_t first, std::int64_t last) {
  const int a = named("slice", x, [&] { return checked_axis(axis, x->rank()); });
  if (a > 0) return apply(Slice{a, first, last}, x);
  return told_as("slice", LeadingSlice::traits.name, [&] { return apply(LeadingSlice{first, last}, x); });
}

Tensor pad(Arg x, std::int64_t axis, std::int64_t before, std::int64_t after) {
  const int a = named("pad", x, [&] { return checked_axis(axis, x->rank()); });
  return apply(Pad{a, before, after}, x);
}

Tensor concat(const Tensors& parts, std::int64_t axis, Loc where) {
  if (parts.empty()) fail("concat", where, "at least one part is needed");
  const int a = named("concat", {parts[0], where}, [&] { return checked_axis(axis, parts[0].rank()); });
  return apply(Concat{a}, pointers(parts), where);
}

Tensor roll(Arg x, std::int64_t shift, std::int64_t axis) {
  const int a = named("roll", x, [&] { return checked_axis(axis, x->rank()); });
  const std::int64_t n = std::max<std::int64_t>(x->dim(a), 1);
  return apply(Roll{a, shift % n}, x);
}

Tensor flip(Arg x, std::int64_t axis) {
  const int a = named("flip", x, [&] { return checked_axis(axis, x->rank()); });
  return apply(Flip{a}, x);
}

Tensor align(const Tensor& stacked, int rank) {
  Shape shape = stacked.shape();
  while (shape.rank() - 1 < rank) shape = shape.insert(1, 1);
  return shape.rank() == stacked.rank() ? stacked : reshape(stacked, dims_of(shape));
}

namespace primitive {
Tensor slice_leading(const Tensor& x, std::int64_t first, std::int64_t last) { return slice(x, 0, first, last); }
Tensor concat_leading(const Tensors& parts) { return concat(parts, 0); }
Tensor reshape(const Tensor& x, const Shape& shape) { return reel::reshape(x, dims_of(shape)); }
}  // namespace primitive

}  // namespace reel
