// Lookups by index: index_select and index_add are each other's gradient, and so are take_along and put_along.
#include "ops/ops.h"

namespace reel {

namespace {

void check_index(const Tensor& index) {
  if (index.dtype() != DType::i32) broken("indices must be i32");
}

/// `shape` with `axes` axes from `first` on replaced by those of `by`.
Shape replaced(const Shape& shape, int first, int axes, const Shape& by) {
  std::vector<std::int64_t> dims(shape.begin(), shape.begin() + first);
  dims.insert(dims.end(), by.begin(), by.end());
  dims.insert(dims.end(), shape.begin() + first + axes, shape.end());
  return Shape(std::span<const std::int64_t>(dims));
}

/// Input i of a call inside a time loop at time t.
Tensor at_step(Inputs in, Varying varying, std::size_t i, std::int64_t t) { return varying[i] ? at(in[i], t) : in[i]; }

/// The call for each time step by itself, for those that have no form for all.
template <class O>
Tensor step_by_step(const O& op, Inputs in, Varying varying, std::int64_t steps) {
  Tensors all;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor a = at_step(in, varying, 0, t), b = at_step(in, varying, 1, t);
    all.push_back(apply(op, {&a, &b}, Where::current()));
  }
  return stack(all);
}

struct IndexSelect {  // x [before, n, after], index [...] -> [before, ..., after]
  int axis;
  static constexpr Traits traits{.name = "index_select", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    return {in[0].dtype(), replaced(in[0].shape(), axis, 1, in[1].shape()), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const Shape& s = in[0].shape();
    out.backend().gather_rows({out.dtype(), s.product(0, axis), in[1].numel(), s[axis], s.product(axis + 1, s.rank()),
                               in[1].data_as<std::int32_t>(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, index_add(v.dy(), axis, v.in(1), v.spec(0).shape[axis])); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    if (varying[0] && varying[1]) return step_by_step(*this, in, varying, steps);
    return varying[0] ? index_select(in[0], axis + 1, in[1]) : movedim(index_select(in[0], axis, in[1]), axis, 0);
  }
  bool rows(Inputs, Varying split) const { return axis == 0 ? !split[0] : !split[1]; }
  bool looks_up(Inputs in) const { return axis == 0 && in[1].rank() == 1; }
  /// A table that a cache holds: in a loop its rows are at hand, outside the result would be a slab.
  bool thin(Inputs in) const {
    constexpr std::int64_t cache = std::int64_t{1} << 18;  // bytes
    return looks_up(in) && in[0].numel() * static_cast<std::int64_t>(size_of(in[0].dtype())) <= cache;
  }
};
REEL_OP(IndexSelect)

struct IndexAdd {  // values [before, ..., after], index [...] -> [before, count, after]
  int axis;
  std::int64_t count;
  static constexpr Traits traits{.name = "index_add", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (in[0].dtype() == DType::boolean) broken("bool elements are not supported");
    const Shape &s = in[0].shape(), &index = in[1].shape();
    if (axis + index.rank() > s.rank() || !(s == replaced(s, axis, index.rank(), index)))
      broken("from axis {} on, the values must have the axes of the index", axis);
    return {in[0].dtype(), replaced(s, axis, index.rank(), {count}), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    const Shape& s = out.shape();
    out.backend().scatter_add_rows({out.dtype(), s.product(0, axis), in[1].numel(), count,
                                    s.product(axis + 1, s.rank()), in[1].data_as<std::int32_t>(), in[0].data(),
                                    out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, index_select(v.dy(), axis, v.in(1))); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    return varying[1] ? step_by_step(*this, in, varying, steps) : index_add(in[0], axis + 1, in[1], count);
  }
  Tensor batch_sum(Inputs in, Varying varying, std::int64_t) const {  // steps are further indices
    return varying[0] && varying[1] ? index_add(movedim(in[0], 0, axis), axis, in[1], count) : Tensor();
  }
  bool rows(Inputs, Varying split) const { return axis != 0 && !split[1]; }
  bool sums_rows(Inputs, Varying split) const { return axis == 0 && split[0] && split[1]; }
  /// The gradient of a table with hardly more rows than a step looks up: adding it up costs no more than that step.
  bool thin(Inputs in) const { return axis == 0 && in[1].rank() == 1 && count <= 2 * in[1].numel(); }
};
REEL_OP(IndexAdd)

/// in[i], the same for all steps if it does not vary.
Tensor slab(Inputs in, Varying varying, std::size_t i, std::int64_t steps) {
  return varying[i] ? in[i] : expand(in[i], in[i].shape().insert(0, steps));
}

struct TakeAlong {  // x [before, n, after], index [before, m, after] -> [before, m, after]
  int axis;
  static constexpr Traits traits{.name = "take_along", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    const Shape &s = in[0].shape(), &index = in[1].shape();
    if (s.rank() != index.rank() || !(s.erase(axis) == index.erase(axis)))
      broken("the index must have the extents of the tensor, but for axis {}", axis);
    return {in[0].dtype(), index, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const Shape& s = in[0].shape();
    out.backend().take_along({out.dtype(), s.product(0, axis), s[axis], out.dim(axis), s.product(axis + 1, s.rank()),
                              in[1].data_as<std::int32_t>(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, put_along(v.dy(), v.in(1), axis, v.spec(0).shape[axis])); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    return take_along(slab(in, varying, 0, steps), slab(in, varying, 1, steps), axis + 1);
  }
  bool rows(Inputs, Varying split) const { return axis != 0 && split[0] && split[1]; }
};
REEL_OP(TakeAlong)

struct PutAlong {  // values and index [before, m, after] -> [before, n, after]
  int axis;
  std::int64_t n;
  static constexpr Traits traits{.name = "put_along", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (in[0].dtype() == DType::boolean) broken("bool elements are not supported");
    if (!(in[0].shape() == in[1].shape())) broken("there must be one index for each value");
    Shape shape = in[0].shape();
    if (n < 0) broken("the extent is 0 or more, got {}", n);
    shape.set(axis, n);
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    const Shape& s = out.shape();
    out.backend().put_along({out.dtype(), s.product(0, axis), n, in[0].dim(axis), s.product(axis + 1, s.rank()),
                             in[1].data_as<std::int32_t>(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, take_along(v.dy(), v.in(1), axis)); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    return put_along(slab(in, varying, 0, steps), slab(in, varying, 1, steps), axis + 1, n);
  }
  bool rows(Inputs, Varying split) const { return axis != 0 && split[0] && split[1]; }
};
REEL_OP(PutAlong)

}  // namespace

Tensor index_select(Arg x, std::int64_t axis, Arg index) {
  const int a = named("index_select", x, [&] { return checked_axis(axis, x->rank()); });
  return apply(IndexSelect{a}, {&x.tensor(), &index.tensor()}, x.where);
}
Tensor index_add(Arg values, std::int64_t axis, Arg index, std::int64_t count) {
  const int a = named("index_add", values, [&] {
    const int rank = values->rank() - index->rank() + 1;  // of the result
    if (rank < 1) broken("the values must have the axes of the index, which is {}", index->spec().str());
    return checked_axis(axis, rank);
  });
  return apply(IndexAdd{a, count}, {&values.tensor(), &index.tensor()}, values.where);
}
Tensor embedding(Arg index, Arg table) { return index_select({table.tensor(), index.where}, 0, index); }
Tensor scatter_add(Arg index, Arg rows, std::int64_t count) {
  return index_add({rows.tensor(), index.where}, 0, index, count);
}

Tensor take_along(Arg x, Arg index, std::int64_t axis) {
  const int a = named("take_along", x, [&] { return checked_axis(axis, x->rank()); });
  return apply(TakeAlong{a}, {&x.tensor(), &index.tensor()}, x.where);
}
Tensor put_along(Arg values, Arg index, std::int64_t axis, std::int64_t n) {
  const int a = named("put_along", values, [&] { return checked_axis(axis, values->rank()); });
  return apply(PutAlong{a, n}, {&values.tensor(), &index.tensor()}, values.where);
}
Tensor pick(Arg x, Arg index) {
  if (x->rank() != index->rank() + 1)
    fail("pick", x.where, "there must be one index for each place along the last axis; got {}, {}", x->spec().str(),
         index->spec().str());
  return squeeze({take_along(x, unsqueeze(index, -1)), x.where}, {-1});
}
Tensor place(Arg value, Arg index, std::int64_t n) {
  const Tensor one = unsqueeze(value, -1);
  return put_along({one, value.where}, unsqueeze(index, -1), -1, n);
}
Tensor one_hot(Arg index, std::int64_t n, DType dtype) {
  if (dtype == DType::boolean) return cast({one_hot(index, n), index.where}, dtype);
  const Tensor ones = Tensor::full(index->shape(), 1, dtype, index->backend());
  return place({ones, index.where}, index, n);
}

Tensor masked_fill(Arg x, Arg mask, Arg value) { return where({mask.tensor(), x.where}, value, x); }

}  // namespace reel
