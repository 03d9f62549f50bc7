// where and cast.
#include "ops/constant.h"
#include "ops/ops.h"

namespace reel {

namespace {

struct Where3 {  // where() has broadcast all three to one shape
  static constexpr Traits traits{.name = "where", .kind = Kind::elementwise, .saves = Saves::inputs};
  Spec infer(Inputs in) const {
    if (in[0].dtype() != DType::boolean) rule_error("the condition must be bool");
    if (in[1].dtype() != in[2].dtype()) rule_error("both choices must have one dtype. Hint: cast one");
    if (!(in[0].shape() == in[1].shape()) || !(in[1].shape() == in[2].shape())) rule_error("shapes do not broadcast");
    return in[1].spec();
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().select(
        {out.dtype(), out.numel(), static_cast<const bool*>(in[0].data()), in[1].data(), in[2].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    const Tensor zero = constant(0, v.dy());
    if (v.needs(1)) v.set(1, where(v.in(0), v.dy(), zero));
    if (v.needs(2)) v.set(2, where(v.in(0), zero, v.dy()));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    Tensors all;
    for (std::size_t i = 0; i < 3; ++i)
      all.push_back(mapped[i] ? in[i] : expand(in[i], in[i].shape().insert(0, steps)));
    return apply(*this, pointers(all), Loc::current());
  }
  bool shards_rows(Inputs, Mapped sharded) const { return sharded[0] && sharded[1] && sharded[2]; }
  std::optional<FusedCall> fuse(Inputs in) const {
    return FusedCall{.kind = FusedCall::Kind::select, .dtype = in[1].dtype()};
  }
};
REEL_OP(Where3)

struct Cast {
  DType to;
  bool operator==(const Cast&) const = default;
  static constexpr Traits traits{.name = "cast", .kind = Kind::elementwise, .saves = Saves::nothing};
  Spec infer(Inputs in) const { return {to, in[0].shape(), &in[0].backend()}; }
  void run(Inputs in, Tensor& out) const {
    out.backend().cast({.from = in[0].dtype(), .to = to, .n = out.numel(), .in = in[0].data(), .out = out.data()});
  }
  void vjp(Vjp& v) const {
    if (is_differentiable(v.spec(0).dtype)) v.set(0, cast(v.dy(), v.spec(0).dtype));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs, Mapped) const { return true; }
  std::optional<FusedCall> fuse(Inputs in) const {
    return FusedCall{.kind = FusedCall::Kind::cast, .dtype = in[0].dtype(), .to = to};
  }
};
REEL_OP(Cast)

}  // namespace

Tensor where(Arg condition, Arg a, Arg b) {
  need_tensors("where", {&condition});
  Tensor left = operand("where", a, b), right = operand("where", b, a);
  const std::optional<Shape> choices = broadcast(left.shape(), right.shape());
  const std::optional<Shape> shape = choices ? broadcast(condition->shape(), *choices) : std::nullopt;
  if (!shape || condition->dtype() != DType::boolean || left.dtype() != right.dtype())
    return apply(Where3{}, {&condition.tensor(), &left, &right}, condition.where);  // throws the error
  const Tensor c = expand({condition.tensor(), condition.where}, *shape);
  left = expand({left, a.where}, *shape);
  right = expand({right, b.where}, *shape);
  return apply(Where3{}, {&c, &left, &right}, condition.where);
}

Tensor cast(Arg x, DType dtype) { return x.tensor("cast").dtype() == dtype ? x.tensor() : apply(Cast{dtype}, x); }

Tensor real(Arg x) { return cast(x, real_of(x.tensor("real").dtype())); }

Tensor constant(double value, const Tensor& x) { return full({}, value, x.dtype(), x.backend()); }

Tensor share(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return cast(condition, a.dtype()) + 0.5 * cast(equal(a, b), a.dtype());
}

namespace primitive {
Tensor real_part(const Tensor& x) { return real(x); }
}  // namespace primitive

}  // namespace reel
