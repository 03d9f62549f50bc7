// Sums, extremes and their indices. sum_to implements sum: it sums over the axes where the target has extent 1 or is
// missing.
#include <algorithm>
#include <bit>
#include <utility>

#include "ops/attributes.h"
#include "ops/places.h"
#include "ops/sum_rows.h"

namespace reel {

namespace {

/// Reduces x to out, whose shape broadcasts to x's.
void reduce(Reduction kind, const Tensor& x, Tensor& out) {
  StridedLoop<2> loop;
  const auto si = strides_of(x.shape()), so = strides_of(out.shape());
  for (int i = 0; i < x.rank(); ++i)
    loop.push(x.dim(i), {si[static_cast<std::size_t>(i)], broadcast_stride(out.shape(), so, i, x.rank())});
  out.backend().reduce(
      {.kind = kind, .dtype = out.dtype(), .loop = loop, .out_numel = out.numel(), .in = x.data(), .out = out.data()});
}

/// A step's target shape for a stacked tensor: T in front, and as many axes as the stacked tensor.
Shape batched(const Shape& shape, std::int64_t steps, int slab_rank) {
  Shape out = shape;
  while (out.rank() < slab_rank - 1) out = out.insert(0, 1);
  return out.insert(0, steps);
}

/// Applies a reduction to `shape` to all steps of a stacked tensor [T, ...].
template <class O>
Tensor batch_reduction(const Tensor& stacked, const Shape& shape, std::int64_t steps) {
  const Tensor y = apply(O{batched(shape, steps, stacked.rank())}, {&stacked}, Loc::current());
  const Shape out = shape.insert(0, steps);
  return reshape(y, {out.begin(), out.end()});
}

/// Is axis 0 not reduced, so that row r of the result depends on row r alone?
bool keeps_rows(const Tensor& x, const Shape& shape) { return shape.rank() == x.rank() && shape[0] == x.dim(0); }

struct SumTo {
  Shape shape;
  bool operator==(const SumTo&) const = default;
  static constexpr Traits traits{.name = "sum", .saves = Saves::nothing, .linear = true};
  Spec infer(Inputs in) const {
    if (in[0].dtype() == DType::boolean) refuse(DType::boolean, ". Hint: cast to i32");
    const auto both = broadcast(in[0].shape(), shape);
    if (!both || !(*both == in[0].shape())) rule_error("shape {} cannot be broadcast to the argument's", shape.str());
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const { reduce(Reduction::sum, in[0], out); }
  void vjp(Vjp& v) const { v.set(0, expand(v.dy(), v.spec(0).shape)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t steps) const { return batch_reduction<SumTo>(in[0], shape, steps); }
  bool shards_rows(Inputs in, Mapped) const { return keeps_rows(in[0], shape); }
  bool reduces_rows(Inputs in, Mapped) const { return shape.rank() < in[0].rank() || shape[0] == 1; }
  /// What a sum reads is larger than its result, and read only once: in a loop that runs in blocks it is in the cache.
  bool memory_bound(Inputs in) const {
    const std::int64_t enough = in[0].backend().runs_in_blocks() ? 1 << 9 : 1 << 14;
    return in[0].numel() >= enough && in[0].numel() >= 8 * shape.numel();
  }
};
REEL_OP(SumTo)

template <Reduction kind>
struct Extreme {
  Shape shape;
  bool operator==(const Extreme&) const = default;
  static constexpr Traits traits{.name = kind == Reduction::max ? "max" : "min", .saves = Saves::inputs};
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype()) && in[0].dtype() != DType::i32) refuse(in[0].dtype());
    if (in[0].numel() == 0 && shape.numel() != 0)
      rule_error("there is no {} of no elements", kind == Reduction::max ? "largest" : "smallest");
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const { reduce(kind, in[0], out); }
  void vjp(Vjp& v) const {
    const Tensor x = v.in(0), most = apply(*this, {&x}, Loc::current());  // of x as it is now, not of what was saved
    const Tensor hit = cast(equal(x, most), x.dtype());
    v.set(0, hit * (v.dy() / sum_to(hit, shape)));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t steps) const { return batch_reduction<Extreme>(in[0], shape, steps); }
  bool shards_rows(Inputs in, Mapped) const { return keeps_rows(in[0], shape); }
};
REEL_OP(Extreme<Reduction::max>)
REEL_OP(Extreme<Reduction::min>)

template <Reduction kind>
struct Logical {  // max of bool is "any", min is "all"
  Shape shape;
  bool operator==(const Logical&) const = default;
  static constexpr Traits traits{.name = kind == Reduction::max ? "any" : "all", .differentiable = false};
  Spec infer(Inputs in) const {
    if (in[0].dtype() != DType::boolean)
      rule_error("bool elements expected, not {}. Hint: compare them with something", name_of(in[0].dtype()));
    return {DType::boolean, shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const { reduce(kind, in[0], out); }
  Tensor vmap(Inputs in, Mapped, std::int64_t steps) const { return batch_reduction<Logical>(in[0], shape, steps); }
  bool shards_rows(Inputs in, Mapped) const { return keeps_rows(in[0], shape); }
};
REEL_OP(Logical<Reduction::max>)
REEL_OP(Logical<Reduction::min>)

template <bool largest>
struct PlaceOfExtreme {
  int axis;
  bool operator==(const PlaceOfExtreme&) const = default;
  static constexpr Traits traits{.name = largest ? "argmax" : "argmin", .differentiable = false};
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype()) && in[0].dtype() != DType::i32) refuse(in[0].dtype());
    if (in[0].dim(axis) == 0) rule_error("axis {} has no elements", axis);
    return {DType::i32, in[0].shape().erase(axis), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const { out.backend().argmax(places_args(in[0], axis, largest, 1, out)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const {
    return apply(PlaceOfExtreme{axis + 1}, {&in[0]}, Loc::current());
  }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
using Argmax = PlaceOfExtreme<true>;
using Argmin = PlaceOfExtreme<false>;
REEL_OP(Argmax)
REEL_OP(Argmin)
REEL_ATTRIBUTES(Argmax, {"axis", attribute(op.axis)})
REEL_ATTRIBUTES(Argmin, {"axis", attribute(op.axis)})

template <class O>
Tensor reduce(const Arg& x, const Axes& axes, bool keep_dims) {
  return named(O::traits.name, x, [&] {
    const ReducedAxes r = reduced_axes(x->shape(), axes);
    return with_dims(apply(O{r.kept}, x), r, keep_dims, x.where);
  });
}

template <class O>
Tensor place(const Arg& x, std::int64_t axis) {
  return named(O::traits.name, x, [&] { return apply(O{checked_axis(axis, x->rank())}, x); });
}

}  // namespace

ReducedAxes reduced_axes(const Shape& shape, const Axes& axes) {
  ReducedAxes r{{}, {}, shape, {}, 1};
  std::array<bool, Shape::max_rank> gone{};
  gone.fill(axes.empty());
  for (std::int64_t a : axes) {
    bool& g = gone[static_cast<std::size_t>(checked_axis(a, shape.rank()))];
    if (std::exchange(g, true)) rule_error("axis {} is named twice", a);
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (gone[static_cast<std::size_t>(i)]) {
      r.over.push_back(i);
      r.count *= shape[i];
      r.kept.set(i, 1);
    } else {
      r.rest.push_back(i);
      r.dropped = r.dropped.insert(r.dropped.rank(), shape[i]);
    }
  }
  return r;
}

Tensor as_rows(const Arg& x, const ReducedAxes& r) {
  Axes order = r.rest;
  order.insert(order.end(), r.over.begin(), r.over.end());
  const Shape rows = r.dropped.insert(r.dropped.rank(), r.count);
  return reshape({permute(x, order), x.where}, {rows.begin(), rows.end()});
}

Tensor sum(Arg x, const Axes& axes, bool keep_dims) { return reduce<SumTo>(x, axes, keep_dims); }
Tensor max(Arg x, const Axes& axes, bool keep_dims) { return reduce<Extreme<Reduction::max>>(x, axes, keep_dims); }
Tensor min(Arg x, const Axes& axes, bool keep_dims) { return reduce<Extreme<Reduction::min>>(x, axes, keep_dims); }
Tensor any(Arg x, const Axes& axes, bool keep_dims) { return reduce<Logical<Reduction::max>>(x, axes, keep_dims); }
Tensor all(Arg x, const Axes& axes, bool keep_dims) { return reduce<Logical<Reduction::min>>(x, axes, keep_dims); }

Tensor mean(Arg x, const Axes& axes, bool keep_dims) {
  const std::int64_t count = named("mean", x, [&] {
    if (!is_differentiable(x->dtype())) refuse(x->dtype(), ". Hint: cast to f32");
    const ReducedAxes r = reduced_axes(x->shape(), axes);
    if (r.count == 0 && r.kept.numel() != 0) rule_error("there is no mean of no elements");
    return r.count;
  });
  return sum(x, axes, keep_dims) * (1 / static_cast<double>(std::max<std::int64_t>(count, 1)));
}

Tensor prod(Arg x, const Axes& axes, bool keep_dims) {
  return named("prod", x, [&] {
    if (x->dtype() == DType::boolean) refuse(DType::boolean, ". Hint: all()");
    const ReducedAxes r = reduced_axes(x->shape(), axes);
    Axes order = r.over;
    order.insert(order.end(), r.rest.begin(), r.rest.end());
    const DType dtype = x->dtype(), wide = is_complex(dtype) ? DType::c128 : is_floating(dtype) ? DType::f64 : dtype;
    const std::int64_t columns = r.dropped.numel();
    Tensor y = reshape({cast({permute(x, order), x.where}, wide), x.where}, {r.count, columns});
    if (r.count == 0) y = full({1, columns}, 1, wide, x->backend());
    for (std::int64_t n = r.count; n > 1; n = y.dim(0)) {
      // Neighbours go together, as large ones often have small ones beside them. The last bits of an index become axes
      // in front, the very last one first, so that pairs are in halves, which are views.
      const auto bits = std::min<std::int64_t>(4, std::bit_width(static_cast<std::uint64_t>(n)) - 1);
      const std::int64_t blocks = n >> bits, whole = blocks << bits;
      Axes extents{blocks}, turned;
      extents.insert(extents.end(), static_cast<std::size_t>(bits), 2);
      extents.push_back(columns);
      for (std::int64_t axis = bits; axis >= 0; --axis) turned.push_back(axis);
      turned.push_back(bits + 1);
      const Tensor split = reshape({slice({y, x.where}, 0, 0, whole), x.where}, extents);
      Tensor z = reshape({permute({split, x.where}, turned), x.where}, {whole, columns});
      for (std::int64_t half = whole / 2; half >= blocks; half /= 2)
        z = slice({z, x.where}, 0, 0, half) * slice({z, x.where}, 0, half, 2 * half);
      y = whole < n ? concat({z, slice({y, x.where}, 0, whole, n)}, 0) : z;
    }
    return with_dims(cast({y, x.where}, dtype), r, keep_dims, x.where);
  });
}

Tensor argmax(Arg x, std::int64_t axis) { return place<Argmax>(x, axis); }
Tensor argmin(Arg x, std::int64_t axis) { return place<Argmin>(x, axis); }

Tensor sum_to(Arg x, const Shape& shape) {
  return x.tensor("sum").shape() == shape ? x.tensor() : apply(SumTo{shape}, x);
}

namespace primitive {
Tensor sum_to(const Tensor& x, const Shape& shape) {
  return loop_adds_rows(x, shape) ? reel::sum_to(sum_rows(x), shape) : reel::sum_to(x, shape);
}
Tensor sum_leading(const Tensor& x) { return reel::sum(x, {0}); }
}  // namespace primitive

}  // namespace reel
