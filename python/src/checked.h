// Tensors whose elements keep a rule, such as the divisors of integers, which are not 0.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>

#include "ops/arg.h"
#include "ops/ops.h"

namespace reel::python {

struct ElementRule {
  const char* name;  // of the function that the user called
  bool (*holds)(double);
  const char* text;
  const char* hint = "";
};

/// The rule and the first element of x that breaks it, if one does. In a loop x may be the values of all steps, or of a
/// part of the batch, so the element's number says nothing there, and the hint comes before what the loop adds.
std::optional<std::string> broken(const ElementRule& rule, const Tensor& x, bool in_loop);

/// x. A step of scan checks the elements as it runs: a value that is traced is not known.
template <const ElementRule& rule>
struct Checked {
  static constexpr Traits traits{.name = rule.name, .kind = Kind::movement, .saves = Saves::nothing, .singular = true};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    if (const auto text = broken(rule, in[0], true)) throw RuleError(*text);
    out.assign(in[0]);
  }
  void vjp(Vjp& v) const { v.set(0, v.dy()); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs, Mapped) const { return true; }
};

/// x, or Error if an element breaks the rule.
template <const ElementRule& rule>
Tensor checked(Arg x) {
  if (!x->concrete()) return apply(Checked<rule>{}, x);
  if (const auto text = broken(rule, x.tensor(), false)) fail(rule.name, x.where, "{}", *text);
  return x.tensor();
}

}  // namespace reel::python
