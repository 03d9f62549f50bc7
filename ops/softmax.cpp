// softmax, log_softmax, logsumexp and layer normalisation: functions of rows with kernels of their own. The tests check
// them against compositions of other ops.
#include "ops/attributes.h"
#include "ops/rows.h"

namespace reel {

namespace {

struct Softmax {
  static constexpr Traits traits{.name = "softmax", .saves = Saves::output};
  Spec infer(Inputs in) const { return row_spec(in, false); }
  void run(Inputs in, Tensor& out) const { run_rows(RowFunction::softmax, 0, in[0], out); }
  void vjp(Vjp& v) const { v.set(0, softmax_gradient(v.out(), v.dy())); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return softmax(in[0]); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Softmax)

struct LogSoftmax {
  static constexpr Traits traits{.name = "log_softmax", .saves = Saves::output};
  Spec infer(Inputs in) const { return row_spec(in, false); }
  void run(Inputs in, Tensor& out) const { run_rows(RowFunction::log_softmax, 0, in[0], out); }
  void vjp(Vjp& v) const { v.set(0, v.dy() - exp(v.out()) * sum(v.dy(), {-1}, true)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return log_softmax(in[0]); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(LogSoftmax)

struct Logsumexp {  // [..., n] -> [...]
  static constexpr Traits traits{.name = "logsumexp"};
  Spec infer(Inputs in) const { return row_spec(in, true); }
  void run(Inputs in, Tensor& out) const { run_rows(RowFunction::logsumexp, 0, in[0], out); }
  void vjp(Vjp& v) const {
    const Tensor y = unsqueeze(v.out(), -1), dy = unsqueeze(v.dy(), -1);
    v.set(0, exp(v.in(0) - y) * dy);
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Logsumexp)

struct Standardize {  // (x - mean) / sqrt(variance + epsilon)
  double epsilon;
  bool operator==(const Standardize&) const = default;
  static constexpr Traits traits{.name = "standardize"};
  Spec infer(Inputs in) const {
    if (!(epsilon > 0)) rule_error("epsilon is above 0, got {}", epsilon);
    return row_spec(in, false);
  }
  void run(Inputs in, Tensor& out) const { run_rows(RowFunction::standardize, epsilon, in[0], out); }
  void vjp(Vjp& v) const {  // removes the components of dy along 1 and along y
    const Tensor &y = v.out(), &dy = v.dy();
    if (y.numel() == 0) return v.set(0, dy);
    const Tensor along = dy - mean(dy, {-1}, true) - y * mean(dy * y, {-1}, true);
    v.set(0, rsqrt(var(v.in(0), {-1}, true) + epsilon) * along);
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Standardize)
REEL_ATTRIBUTES(Standardize, {"epsilon", attribute(op.epsilon)})

/// Applies O along an axis, which is moved to the end and back.
template <class O>
Tensor along(const Arg& x, std::int64_t axis) {
  return named(O::traits.name, x, [&] {
    const int a = checked_axis(axis, x->rank());
    const Tensor rows = movedim(x, a, -1);
    return movedim({apply(O{}, {&rows}, x.where), x.where}, -1, a);
  });
}

}  // namespace

Tensor softmax(Arg x, std::int64_t axis) { return along<Softmax>(x, axis); }
Tensor log_softmax(Arg x, std::int64_t axis) { return along<LogSoftmax>(x, axis); }

Tensor logsumexp(Arg x, const Axes& axes, bool keep_dims) {
  return named("logsumexp", x, [&] {
    const ReducedAxes r = reduced_axes(x->shape(), axes);
    const Tensor rows = as_rows(x, r);
    return with_dims(apply(Logsumexp{}, {&rows}, x.where), r, keep_dims, x.where);
  });
}

Tensor standardize(Arg x, double epsilon) { return apply(Standardize{epsilon}, x); }

Tensor layer_norm(Arg x, Arg gain, Arg bias, double epsilon) {
  need_tensors("layer_norm", {&x, &gain, &bias});
  const std::int64_t n = x->rank() > 0 ? x->dim(-1) : 0;
  for (const Arg* parameter : {&gain, &bias}) {
    if (!((*parameter)->shape() == Shape{n}))
      fail("layer_norm", x.where, "gain and bias must have one element for each of the last axis; got {}, {}, {}",
           x->spec().str(), gain->spec().str(), bias->spec().str());
  }
  const Tensor scaled = operator*({standardize(x, epsilon), x.where}, gain);
  return operator+({scaled, x.where}, bias);
}

}  // namespace reel
