// where and cast.
#include "ops/ops.h"

namespace reel {

namespace {

struct Where3 {  // all three of one shape; where() sees to that
  static constexpr Traits traits{.name = "where", .kind = Kind::elementwise, .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    if (in[0].dtype() != DType::boolean) broken("the condition must be bool");
    if (in[1].dtype() != in[2].dtype()) broken("both choices must have one dtype. Hint: cast one");
    if (!(in[0].shape() == in[1].shape()) || !(in[1].shape() == in[2].shape())) broken("shapes do not broadcast");
    return in[1].spec();
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().select(
        {size_of(out.dtype()), out.numel(), in[0].data_as<bool>(), in[1].data(), in[2].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    const Tensor zero = constant(0, v.dy());
    if (v.needs(1)) v.set(1, where(v.in(0), v.dy(), zero));
    if (v.needs(2)) v.set(2, where(v.in(0), zero, v.dy()));
  }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    Tensors all;
    for (std::size_t i = 0; i < 3; ++i)
      all.push_back(varying[i] ? in[i] : expand(in[i], in[i].shape().insert(0, steps)));
    return apply(*this, pointers(all), Where::current());
  }
  bool rows(Inputs, Varying split) const { return split[0] && split[1] && split[2]; }
  std::optional<FusedCall> fuse(Inputs in) const {
    return FusedCall{.kind = FusedCall::Kind::select, .dtype = in[1].dtype()};
  }
};
REEL_OP(Where3)

struct Cast {
  DType to;
  static constexpr Traits traits{.name = "cast", .kind = Kind::elementwise, .reads = Reads::nothing};
  Spec infer(Inputs in) const { return {to, in[0].shape(), &in[0].backend()}; }
  void run(Inputs in, Tensor& out) const {
    out.backend().cast({in[0].dtype(), to, out.numel(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    if (is_differentiable(v.spec(0).dtype)) v.set(0, cast(v.dy(), v.spec(0).dtype));
  }
  Tensor batch(Inputs in, Varying, std::int64_t) const { return apply(*this, {&in[0]}, Where::current()); }
  bool rows(Inputs, Varying) const { return true; }
  std::optional<FusedCall> fuse(Inputs in) const {
    return FusedCall{.kind = FusedCall::Kind::cast, .dtype = in[0].dtype(), .to = to};
  }
};
REEL_OP(Cast)

}  // namespace

Tensor where(Arg condition, Arg a, Arg b) {
  Tensor left = a.is_number() ? constant(a.number(), b) : a.tensor();
  Tensor right = b.is_number() ? constant(b.number(), a) : b.tensor();
  const std::optional<Shape> choices = broadcast(left.shape(), right.shape());
  const std::optional<Shape> shape = choices ? broadcast(condition->shape(), *choices) : std::nullopt;
  if (!shape) return apply(Where3{}, {&condition.tensor(), &left, &right}, condition.where);  // says what is wrong
  const Tensor c = expand({condition.tensor(), condition.where}, *shape);
  left = expand({left, a.where}, *shape);
  right = expand({right, b.where}, *shape);
  return apply(Where3{}, {&c, &left, &right}, condition.where);
}

Tensor cast(Arg x, DType dtype) {
  return x->dtype() == dtype ? x.tensor() : apply(Cast{dtype}, {&x.tensor()}, x.where);
}

Tensor real(Arg x) { return cast(x, real_of(x->dtype())); }

Tensor constant(double value, const Tensor& x) { return Tensor::full({}, value, x.dtype(), x.backend()); }

Tensor share(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return cast(condition, a.dtype()) + 0.5 * cast(equal(a, b), a.dtype());
}

namespace primitive {
Tensor real_part(const Tensor& x) { return real(x); }
}  // namespace primitive

}  // namespace reel
