// Reductions. sum_to does the work of sum: it sums over the axes where the target is 1 or absent.
#include "ops/ops.h"

namespace reel {

namespace {

/// The loop that reduces `from` to `to` (to broadcasts to from).
Loop<2> reducing_loop(const Shape& from, const Shape& to) {
  Loop<2> loop;
  const auto si = strides_of(from), so = strides_of(to);
  for (int i = 0; i < from.rank(); ++i)
    loop.push(from[i], {si[static_cast<std::size_t>(i)], broadcast_stride(to, so, i, from.rank())});
  return loop;
}

/// x's shape with the axes set to 1.
Shape reduced(const Tensor& x, const Axes& axes) {
  Shape shape = x.shape();
  for (std::int64_t a : axes) shape[checked_axis(a, x.rank())] = 1;
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) shape[i] = 1;
  }
  return shape;
}

/// A reduced result without the axes that were reduced.
Tensor drop_axes(const Tensor& x, const Axes& axes, int rank, const Where& where) {
  std::vector<std::int64_t> dims;
  std::vector<char> gone(static_cast<std::size_t>(rank), axes.empty() ? 1 : 0);
  for (std::int64_t a : axes) gone[static_cast<std::size_t>(checked_axis(a, rank))] = 1;
  for (int i = 0; i < rank; ++i) {
    if (!gone[static_cast<std::size_t>(i)]) dims.push_back(x.shape()[i]);
  }
  return reshape({x, where}, dims);
}

/// The target shape of a step, for a slab: T in front, and as many axes as the slab.
Shape batched(const Shape& shape, std::int64_t steps, int slab_rank) {
  Shape out = shape;
  while (out.rank() < slab_rank - 1) out = out.insert(0, 1);
  return out.insert(0, steps);
}

struct SumTo {
  Shape shape;
  static constexpr Traits traits{.name = "sum", .reads = Reads::nothing, .linear = true};
  Spec infer(Inputs in) const {
    if (in[0].dtype() == DType::boolean) broken("bool elements are not supported. Hint: cast to i32");
    const auto both = broadcast(in[0].shape(), shape);
    if (!both || !(*both == in[0].shape())) broken("shape {} does not stretch to the argument's", shape.str());
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const Loop<2> loop = reducing_loop(in[0].shape(), shape);
    out.backend().reduce({Reduction::sum, out.dtype(), loop, out.numel(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, expand(v.dy(), v.spec(0).shape)); }
  Tensor batch(Inputs in, Varying, std::int64_t steps) const {
    const Tensor y = sum_to(in[0], batched(shape, steps, in[0].rank()));
    const Shape out = shape.insert(0, steps);
    return reshape(y, {out.begin(), out.end()});
  }
};
REEL_OP(SumTo)

struct MaxTo {
  Shape shape;
  static constexpr Traits traits{.name = "max"};
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype()) && in[0].dtype() != DType::i32)
      broken("{} elements are not supported", name_of(in[0].dtype()));
    if (in[0].numel() == 0 && shape.numel() != 0) broken("there is no largest of no elements");
    return {in[0].dtype(), shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    const Loop<2> loop = reducing_loop(in[0].shape(), shape);
    out.backend().reduce({Reduction::max, out.dtype(), loop, out.numel(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    const Tensor hit = cast(equal(v.in(0), v.out()), v.out().dtype());
    v.set(0, hit * (v.dy() / sum_to(hit, shape)));
  }
  Tensor batch(Inputs in, Varying, std::int64_t steps) const {
    const Tensor y = apply(MaxTo{batched(shape, steps, in[0].rank())}, {&in[0]}, Where::current());
    const Shape out = shape.insert(0, steps);
    return reshape(y, {out.begin(), out.end()});
  }
};
REEL_OP(MaxTo)

struct Argmax {
  static constexpr Traits traits{.name = "argmax", .differentiable = false};
  Spec infer(Inputs in) const {
    if (in[0].rank() == 0 || in[0].dim(-1) == 0) broken("the last axis must have elements");
    if (is_complex(in[0].dtype()) || in[0].dtype() == DType::boolean)
      broken("{} elements are not supported", name_of(in[0].dtype()));
    return {DType::i32, in[0].shape().erase(in[0].rank() - 1), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().argmax({in[0].dtype(), out.numel(), in[0].dim(-1), in[0].data(), out.data_as<std::int32_t>()});
  }
  Tensor batch(Inputs in, Varying, std::int64_t) const { return argmax(in[0]); }
};
REEL_OP(Argmax)

template <class O>
Tensor reduce(const char* name, const Arg& x, const Axes& axes, bool keep_dims) {
  return named(name, x, [&] {
    const Tensor y = apply(O{reduced(x, axes)}, {&x.tensor()}, x.where);
    return keep_dims ? y : drop_axes(y, axes, x->rank(), x.where);
  });
}

}  // namespace

Tensor sum(Arg x, const Axes& axes, bool keep_dims) { return reduce<SumTo>("sum", x, axes, keep_dims); }
Tensor max(Arg x, const Axes& axes, bool keep_dims) { return reduce<MaxTo>("max", x, axes, keep_dims); }

Tensor mean(Arg x, const Axes& axes, bool keep_dims) {
  const Tensor total = sum(x, axes, keep_dims);
  return total * (static_cast<double>(total.numel()) / static_cast<double>(x->numel()));
}

Tensor argmax(Arg x) { return apply(Argmax{}, {&x.tensor()}, x.where); }

Tensor sum_to(Arg x, const Shape& shape) {
  return x->shape() == shape ? x.tensor() : apply(SumTo{shape}, {&x.tensor()}, x.where);
}

namespace primitive {
Tensor sum_to(const Tensor& x, const Shape& shape) { return reel::sum_to(x, shape); }
Tensor sum_leading(const Tensor& x) { return reel::sum(x, {0}); }
}  // namespace primitive

}  // namespace reel
