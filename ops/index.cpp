// Gathers and scatters: index_select and index_add are each other's gradient, and so are take_along and scatter_add.
#include "engine/autodiff/primitives.h"
#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/told_as.h"

namespace reel {

namespace {

void check_index(const Tensor& index) {
  if (index.dtype() != DType::i32) rule_error("indices must be i32");
}

/// `shape` with `axes` axes, starting at `first`, replaced by those of `by`.
Shape replaced(const Shape& shape, int first, int axes, const Shape& by) {
  std::vector<std::int64_t> dims(shape.begin(), shape.begin() + first);
  dims.insert(dims.end(), by.begin(), by.end());
  dims.insert(dims.end(), shape.begin() + first + axes, shape.end());
  return Shape(std::span<const std::int64_t>(dims));
}

/// Does a table of so many elements, of the dtype of `rows`, stay in the cache?
bool is_small_table(const Tensor& rows, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(size_of(rows.dtype())) <= rows.backend().costs().small_table;
}

/// Input i of a call inside a time loop at time t.
Tensor at_step(Inputs in, Mapped mapped, std::size_t i, std::int64_t t) { return mapped[i] ? at(in[i], t) : in[i]; }

/// One call for each time step, for cases that no single call covers.
template <class O>
Tensor step_by_step(const O& op, Inputs in, Mapped mapped, std::int64_t steps) {
  if (steps == 0) {
    const auto step = [&](std::size_t i) {
      return Tensor::abstract({in[i].dtype(), mapped[i] ? in[i].shape().erase(0) : in[i].shape(), &in[i].backend()});
    };
    const Tensor a = step(0), b = step(1);
    const Spec spec = op.infer({&a, &b});
    return full(spec.shape.insert(0, 0), 0, spec.dtype, *spec.backend);
  }
  Tensors all;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor a = at_step(in, mapped, 0, t), b = at_step(in, mapped, 1, t);
    all.push_back(apply(op, {&a, &b}, Loc::current()));
  }
  return stack(all);
}

struct IndexSelect {  // x [before, n, after], index [...] -> [before, ..., after]
  int axis;
  bool operator==(const IndexSelect&) const = default;
  static constexpr Traits traits{.name = "index_select", .saves = Saves::inputs, .singular = true};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    return {in[0].dtype(), replaced(in[0].shape(), axis, 1, in[1].shape()), &in[0].backend()};
  }
  double flops(Inputs) const { return 0; }
  void run(Inputs in, Tensor& out) const {
    const Shape& s = in[0].shape();
    out.backend().gather_rows({.dtype = out.dtype(),
                               .outer = s.product(0, axis),
                               .count = in[1].numel(),
                               .rows = s[axis],
                               .width = s.product(axis + 1, s.rank()),
                               .index = static_cast<const std::int32_t*>(in[1].data()),
                               .in = in[0].data(),
                               .out = out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, index_add(v.dy(), axis, v.in(1), v.spec(0).shape[axis])); }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    if (mapped[0] && mapped[1]) return step_by_step(*this, in, mapped, steps);
    return mapped[0] ? index_select(in[0], axis + 1, in[1]) : movedim(index_select(in[0], axis, in[1]), axis, 0);
  }
  bool shards_rows(Inputs, Mapped sharded) const { return axis == 0 ? !sharded[0] : !sharded[1]; }
  bool is_gather(Inputs in) const { return axis == 0 && in[1].rank() == 1; }
  /// The table fits into the cache: gathering inside the loop is cheap, and hoisting would write a stacked result.
  bool memory_bound(Inputs in) const { return is_gather(in) && is_small_table(in[0], in[0].numel()); }
};
REEL_OP(IndexSelect)
REEL_ATTRIBUTES(IndexSelect, {"axis", attribute(op.axis)})

struct NamedRows {  // table [n, ...], index [...] -> the table, with zeros in the rows that no element of the index
                    // names
  bool operator==(const NamedRows&) const = default;
  static constexpr Traits traits{.name = "named_rows", .saves = Saves::inputs, .allocates = true};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (in[0].rank() == 0) rule_error("the table has one axis or more");
    return in[0].spec();
  }
  double flops(Inputs in) const { return static_cast<double>(in[1].numel()); }
  void run(Inputs in, Tensor& out) const {
    const Tensor& table = in[0];
    const std::int64_t rows = table.dim(0), n = in[1].numel();
    const Tensor zero = full({}, 0, table.dtype(), table.backend());
    if (rows == 0) {
      out = expand(zero, table.shape());
      return;
    }
    // An index that is no row is for the gather to refuse.
    const Tensor row = minimum(maximum(reshape(in[1], {n}), 0), static_cast<double>(rows - 1));
    const Tensor times = index_add(full({n}, 1, DType::f32, table.backend()), 0, row, rows);
    std::vector<std::int64_t> column(static_cast<std::size_t>(table.rank()), 1);
    column[0] = rows;
    out = where(reshape(times, column) > 0, table, zero);
  }
  void vjp(Vjp& v) const { v.set(0, primitive::named_rows(v.dy(), v.in(1))); }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const { return step_by_step(*this, in, mapped, steps); }
};
REEL_OP(NamedRows)

struct IndexAdd {  // values [before, ..., after], index [...] -> [before, count, after]
  int axis;
  std::int64_t count;
  bool operator==(const IndexAdd&) const = default;
  static constexpr Traits traits{.name = "index_add", .saves = Saves::inputs, .accumulates = true};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (in[0].dtype() == DType::boolean) rule_error("bool elements are not supported");
    const Shape &s = in[0].shape(), &index = in[1].shape();
    if (axis + index.rank() > s.rank() || !(s == replaced(s, axis, index.rank(), index)))
      rule_error("from axis {} on, the values must have the axes of the index", axis);
    return {in[0].dtype(), replaced(s, axis, index.rank(), {count}), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    const Shape& s = out.shape();
    out.backend().segment_sum({.dtype = out.dtype(),
                               .outer = s.product(0, axis),
                               .count = in[1].numel(),
                               .rows = count,
                               .width = s.product(axis + 1, s.rank()),
                               .index = static_cast<const std::int32_t*>(in[1].data()),
                               .in = in[0].data(),
                               .out = out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, index_select(v.dy(), axis, v.in(1))); }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return mapped[1] ? step_by_step(*this, in, mapped, steps) : index_add(in[0], axis + 1, in[1], count);
  }
  Tensor vmap_sum(Inputs in, Mapped mapped, std::int64_t) const {  // time steps become further indices
    return mapped[0] && mapped[1] ? index_add(movedim(in[0], 0, axis), axis, in[1], count) : Tensor();
  }
  bool shards_rows(Inputs, Mapped sharded) const { return axis != 0 && !sharded[1]; }
  bool reduces_rows(Inputs, Mapped sharded) const { return axis == 0 && sharded[0] && sharded[1]; }
  /// A loop adds to the gradient of a small table in place, which spares a stacked result. Where it cannot, a step
  /// costs as much as the table has rows, so these may be a few times those that a step gathers, but not more.
  bool memory_bound(Inputs in) const {
    if (axis != 0 || in[1].rank() != 1) return false;
    const std::int64_t gathered = in[1].numel(), width = in[0].shape().product(1, in[0].shape().rank());
    return count <= 2 * gathered || (count <= 16 * gathered && is_small_table(in[0], count * width));
  }
};
REEL_OP(IndexAdd)

/// in[i] stacked [T, ...], broadcast over time if it does not vary.
Tensor stacked(Inputs in, Mapped mapped, std::size_t i, std::int64_t steps) {
  return mapped[i] ? in[i] : expand(in[i], in[i].shape().insert(0, steps));
}

struct TakeAlong {  // x [before, n, after], index [before, m, after] -> [before, m, after]
  int axis;
  bool operator==(const TakeAlong&) const = default;
  static constexpr Traits traits{.name = "take_along", .saves = Saves::inputs, .singular = true};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    const Shape &s = in[0].shape(), &index = in[1].shape();
    if (s.rank() != index.rank() || !(s.erase(axis) == index.erase(axis)))
      rule_error("the index must have the extents of the tensor, but for axis {}", axis);
    return {in[0].dtype(), index, &in[0].backend()};
  }
  double flops(Inputs) const { return 0; }
  void run(Inputs in, Tensor& out) const {
    const Shape& s = in[0].shape();
    out.backend().take_along({.dtype = out.dtype(),
                              .outer = s.product(0, axis),
                              .n = s[axis],
                              .m = out.dim(axis),
                              .inner = s.product(axis + 1, s.rank()),
                              .index = static_cast<const std::int32_t*>(in[1].data()),
                              .in = in[0].data(),
                              .out = out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, scatter_add(v.dy(), v.in(1), axis, v.spec(0).shape[axis])); }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return take_along(stacked(in, mapped, 0, steps), stacked(in, mapped, 1, steps), axis + 1);
  }
  bool shards_rows(Inputs, Mapped sharded) const { return axis != 0 && sharded[0] && sharded[1]; }
};
REEL_OP(TakeAlong)
REEL_ATTRIBUTES(TakeAlong, {"axis", attribute(op.axis)})

struct ScatterAdd {  // values and index [before, m, after] -> [before, n, after]
  int axis;
  std::int64_t n;
  bool operator==(const ScatterAdd&) const = default;
  static constexpr Traits traits{.name = "scatter_add", .saves = Saves::inputs, .accumulates = true, .singular = true};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (in[0].dtype() == DType::boolean) rule_error("bool elements are not supported");
    if (!(in[0].shape() == in[1].shape())) rule_error("there must be one index for each value");
    Shape shape = in[0].shape();
    if (n < 0) rule_error("the extent is 0 or more, got {}", n);
    shape.set(axis, n);
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    const Shape& s = out.shape();
    out.backend().scatter_add({.dtype = out.dtype(),
                               .outer = s.product(0, axis),
                               .n = n,
                               .m = in[0].dim(axis),
                               .inner = s.product(axis + 1, s.rank()),
                               .index = static_cast<const std::int32_t*>(in[1].data()),
                               .in = in[0].data(),
                               .out = out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, take_along(v.dy(), v.in(1), axis)); }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return scatter_add(stacked(in, mapped, 0, steps), stacked(in, mapped, 1, steps), axis + 1, n);
  }
  bool shards_rows(Inputs, Mapped sharded) const { return axis != 0 && sharded[0] && sharded[1]; }
};
REEL_OP(ScatterAdd)

}  // namespace

Tensor index_select(Arg x, std::int64_t axis, Arg index) {
  need_tensors("index_select", {&x, &index});
  const int a = named("index_select", x, [&] { return checked_axis(axis, x->rank()); });
  return apply(IndexSelect{a}, x, index);
}
Tensor index_add(Arg values, std::int64_t axis, Arg index, std::int64_t count) {
  need_tensors("index_add", {&values, &index});
  const int a = named("index_add", values, [&] {
    const int rank = values->rank() - index->rank() + 1;  // of the result
    if (rank < 1) rule_error("the values must have the axes of the index, which is {}", index->spec().str());
    return checked_axis(axis, rank);
  });
  return apply(IndexAdd{a, count}, values, index);
}
Tensor embedding(Arg index, Arg table) {
  need_tensors("embedding", {&index, &table});
  return told_as("embedding", "index_select", {&index, &table}, [&] {
    return index_select({table.tensor(), index.where}, 0, index);
  });
}
Tensor segment_sum(Arg index, Arg rows, std::int64_t count) {
  need_tensors("segment_sum", {&index, &rows});
  return told_as("segment_sum", "index_add", {&index, &rows}, [&] {
    return index_add({rows.tensor(), index.where}, 0, index, count);
  });
}

Tensor take_along(Arg x, Arg index, std::int64_t axis) {
  const int a = named("take_along", x, [&] { return checked_axis(axis, x->rank()); });
  return apply(TakeAlong{a}, x, index);
}
Tensor scatter_add(Arg values, Arg index, std::int64_t axis, std::int64_t n) {
  const int a = named("scatter_add", values, [&] { return checked_axis(axis, values->rank()); });
  return apply(ScatterAdd{a, n}, values, index);
}
Tensor pick(Arg x, Arg index) {
  need_tensors("pick", {&x, &index});
  if (x->rank() != index->rank() + 1)
    fail("pick", x.where, "there must be one index for each place along the last axis; got {}, {}", x->spec().str(),
         index->spec().str());
  return told_as("pick", "take_along", {&x, &index}, [&] {
    return squeeze({take_along(x, unsqueeze(index, -1)), x.where}, {-1});
  });
}
Tensor place(Arg value, Arg index, std::int64_t n) {
  need_tensors("place", {&value, &index});
  const Tensor one = unsqueeze(value, -1);
  return told_as("place", "scatter_add", {&value, &index}, [&] {
    return scatter_add({one, value.where}, unsqueeze(index, -1), -1, n);
  });
}
Tensor one_hot(Arg index, std::int64_t n, DType dtype) {
  need_tensors("one_hot", {&index});
  if (dtype == DType::boolean) return cast({one_hot(index, n), index.where}, dtype);
  const Tensor ones = full(index->shape(), 1, dtype, index->backend());
  return told_as("one_hot", "place", {&index}, [&] { return place({ones, index.where}, index, n); });
}

Tensor masked_fill(Arg x, Arg mask, Arg value) {
  need_tensors("masked_fill", {&x, &mask});
  return told_as("masked_fill", "where", [&] { return where({mask.tensor(), x.where}, value, x); });
}

namespace primitive {
Tensor named_rows(const Tensor& table, const Tensor& index) {
  return apply(NamedRows{}, {&table, &index}, Loc::current());
}
}  // namespace primitive

}  // namespace reel
