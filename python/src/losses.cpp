// Losses.
#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

namespace {
LossOptions options(const std::optional<Tensor>& weight, const std::string& reduction) {
  LossOptions out;
  if (weight) out.weight = *weight;
  if (reduction == "sum")
    out.reduction = LossReduction::sum;
  else if (reduction == "none")
    out.reduction = LossReduction::none;
  else if (reduction != "mean")
    fail("loss", here(), "reduction is \"mean\", \"sum\" or \"none\", got \"{}\"", reduction);
  return out;
}

template <Tensor (*loss)(Arg, Arg, const LossOptions&)>
void bind_loss(nb::module_& m, const char* name, const char* x) {
  m.def(
      name,
      [](Arg a, Arg target, const std::optional<Tensor>& weight, const std::string& reduction) {
        return loss(a, target, options(weight, reduction));
      },
      nb::arg(x), "target"_a, nb::kw_only(), "weight"_a.none() = nb::none(), "reduction"_a = "mean", doc(name));
}
}  // namespace

void bind_losses(nb::module_& m) {
  bind_loss<cross_entropy>(m, "cross_entropy", "logits");
  bind_loss<binary_cross_entropy_with_logits>(m, "binary_cross_entropy_with_logits", "logits");
  bind_loss<mse>(m, "mse", "x");
  bind_loss<l1_loss>(m, "l1_loss", "x");
  m.def(
      "huber_loss",
      [](Arg x, Arg target, Number delta, const std::optional<Tensor>& weight, const std::string& reduction) {
        return huber_loss(x, target, delta, options(weight, reduction));
      },
      "x"_a, "target"_a, "delta"_a = 1.0, nb::kw_only(), "weight"_a.none() = nb::none(), "reduction"_a = "mean",
      doc("huber_loss"));
}

}  // namespace reel::python
