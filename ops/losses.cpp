// Losses, composed of other ops, but for the cross entropy.
#include <algorithm>

#include "ops/functors/cross_entropy.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// Weights and reduces a loss per element, as the options say.
Tensor reduced(const Tensor& loss, const LossOptions& options, const Loc& where) {
  Tensor total = loss, count;
  if (options.weight.defined()) {
    const Tensor& w = options.weight;
    const std::optional<Shape> both = broadcast(w.shape(), loss.shape());
    if (!both || !(*both == loss.shape()))
      rule_error("weights {} cannot be broadcast to {}, the shape of the loss", w.shape().str(), loss.shape().str());
    if (is_complex(w.dtype())) rule_error("weights are real numbers or bool, not {}", name_of(w.dtype()));
    count = expand({cast(w, loss.dtype()), where}, loss.shape());
    total = loss * count;
  }
  if (options.reduction == LossReduction::none) return total;
  total = sum({total, where});
  if (options.reduction == LossReduction::sum) return total;
  if (!count.defined()) return total * (1 / std::max(1.0, static_cast<double>(loss.numel())));
  count = sum(count);
  return total / reel::where(equal(count, 0.0), 1.0, count);
}

/// Checks the two arguments of an elementwise loss. Shapes must agree, as broadcasting here is nearly always a mistake.
void check_pair(const Arg& x, const Arg& target) {
  if (!is_differentiable(x->dtype())) rule_error("{} elements are not supported", name_of(x->dtype()));
  if (!target.is_number() && !(x->shape() == target->shape()))
    rule_error("there must be a target for each element, but the target is {}", target->spec().str());
}

/// Runs f as the loss called `name`, also for errors of the ops that it is made of.
template <class F>
Tensor loss_of(const char* name, const Arg& x, const Arg& target, F&& f) {
  return named(name, x, [&] { return told_as(name, "", {&x, &target}, f); });
}

/// -log p at the target, p = softmax(logits), and the residual p - e, e being 1 at the target and 0 elsewhere.
struct CrossEntropy {  // logits [..., n], target [...] -> loss [...], residual [..., n]
  static constexpr Traits traits{.name = "cross_entropy"};
  int outputs() const { return 2; }
  void infer(Inputs in, std::span<Spec> out) const {
    out[0] = row_spec(in, true);
    out[1] = row_spec(in, false);
  }
  void run(Inputs in, std::span<Tensor> out) const {
    out[0].backend().cross_entropy({.dtype = in[0].dtype(),
                                    .rows = in[1].numel(),
                                    .n = in[0].dim(-1),
                                    .logits = in[0].data(),
                                    .target = static_cast<const std::int32_t*>(in[1].data()),
                                    .loss = out[0].data(),
                                    .residual = out[1].data()});
  }
  // The residual is the gradient of the loss, and has that of softmax.
  void vjp(Vjp& v) const {
    Tensor dx;
    if (v.dy(0).defined()) dx = unsqueeze(v.dy(0), -1) * v.out(1);
    if (v.dy(1).defined()) {
      const Tensor of_softmax = softmax_gradient(softmax(v.in(0)), v.dy(1));
      dx = dx.defined() ? dx + of_softmax : of_softmax;
    }
    v.set(0, dx);
  }
};
REEL_OP(CrossEntropy)

}  // namespace

Tensor cross_entropy(Arg logits, Arg target, const LossOptions& options) {
  need_tensors("cross_entropy", {&logits, &target});
  return named("cross_entropy", logits, [&] {
    if (!is_floating(logits->dtype())) rule_error("{} logits are not supported", name_of(logits->dtype()));
    if (target->dtype() != DType::i32) rule_error("targets are i32, not {}", name_of(target->dtype()));
    if (logits->rank() != target->rank() + 1 || !(logits->shape().erase(target->rank()) == target->shape()))
      rule_error("there must be a target for each place along the last axis, but targets are {}",
                 target->shape().str());
    // While a loop is traced, of ops that it can hoist.
    const Tensor loss =
        logits->concrete() && target->concrete()
            ? apply_many(op_of<CrossEntropy>(), {}, {&logits.tensor(), &target.tensor()}, logits.where)[0]
            : -pick({log_softmax(logits), logits.where}, target);
    return reduced(loss, options, logits.where);
  });
}

// log(1 - p) = -softplus(x) and log p = -softplus(-x), neither of which cancels or overflows.
Tensor binary_cross_entropy_with_logits(Arg logits, Arg target, const LossOptions& options) {
  return loss_of("binary_cross_entropy_with_logits", logits, target, [&] {
    if (!is_floating(logits->dtype())) rule_error("{} logits are not supported", name_of(logits->dtype()));
    check_pair(logits, target);
    Tensor t = target.is_number() ? constant(target.number(), logits) : target.tensor();
    if (!is_differentiable(t.dtype())) t = cast({t, target.where}, logits->dtype());
    if (is_complex(t.dtype())) rule_error("targets are real numbers or bool, not {}", name_of(t.dtype()));
    const Tensor loss = t * softplus(-logits) + (1 - t) * softplus(logits);
    return reduced(loss, options, logits.where);
  });
}

Tensor mse(Arg x, Arg target, const LossOptions& options) {
  return loss_of("mse", x, target, [&] {
    check_pair(x, target);
    const Tensor d = x - target;
    return reduced(is_complex(d.dtype()) ? real(d * conj(d)) : square(d), options, x.where);
  });
}

Tensor l1_loss(Arg x, Arg target, const LossOptions& options) {
  return loss_of("l1_loss", x, target, [&] {
    check_pair(x, target);
    return reduced(abs(x - target), options, x.where);
  });
}

Tensor huber_loss(Arg x, Arg target, double delta, const LossOptions& options) {
  return loss_of("huber_loss", x, target, [&] {
    check_pair(x, target);
    if (!(delta > 0)) rule_error("delta is above 0, got {}", delta);
    const Tensor d = x - target, m = clamp(d, -delta, delta);
    return reduced(m * (d - 0.5 * m), options, x.where);
  });
}

}  // namespace reel
