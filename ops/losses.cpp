// Losses, from other ops.
#include "ops/ops.h"

namespace reel {

namespace {
/// The largest of each row, as a constant: it only keeps exp from overflowing, and cancels out of every derivative.
Tensor row_maximum(const Arg& x) {
  if (x->rank() == 0) fail("logsumexp", x.where, "one axis or more is needed; got {}", x->spec().str());
  if (Tape::current() && Tape::current()->mode() == Tape::Mode::symbolic) return max(x, {-1}, true);
  const Pause pause;
  return max(x, {-1}, true);
}
}  // namespace

Tensor logsumexp(Arg x) {
  const Tensor top = row_maximum(x);
  const Shape rows = x->shape().erase(x->rank() - 1);
  return log(sum(exp(x - top), {-1})) + reshape(top, {rows.begin(), rows.end()});
}

Tensor log_softmax(Arg x) {
  const Tensor shifted = x - row_maximum(x);
  return shifted - log(sum(exp(shifted), {-1}, true));
}

Tensor cross_entropy(Arg logits, Arg target) { return -mean(pick({log_softmax(logits), logits.where}, target)); }

Tensor mse(Arg x, Arg target) { return mean(square(x - target)); }

}  // namespace reel
