#include "engine/autodiff/tape.h"

#include <utility>

#include "engine/autodiff/primitives.h"
#include "engine/device/lowered_loop.h"

namespace reel {

namespace {
thread_local Tape* current_tape = nullptr;
thread_local int traces = 0;  // symbolic tapes of this thread
constexpr const char* in_trace = "NoGrad and a new Tape do not work in a traced step. Hint: stop_gradient";
constexpr const char* no_value =
    "it belongs to a step that has ended or another thread, or, in a vjp, the op does not save it";

std::string describe(Inputs in) {
  std::string text;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i == 6) return text + ", ...";
    text += (i ? ", " : "") + (in[i].defined() ? in[i].spec().str() : "undefined");
  }
  return text;
}

/// Infers the specs and makes the outputs: abstract tensors while tracing, otherwise a view or computed values. Errors
/// name the op, the rule, the arguments and the caller.
void evaluate(const Op& op, const Attrs& attrs, Inputs in, std::span<Spec> specs, std::span<Tensor> out,
              const Loc& where) try {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) fail(op.traits.name, where, "argument {} is an undefined tensor; got {}", i, describe(in));
    if (&in[i].backend() != &in[0].backend())
      fail(op.traits.name, where, "arguments live on different devices: {} and {}", in[0].backend().name(),
           in[i].backend().name());
  }
  op.infer(attrs, in, specs);
  for (Spec& s : specs) s.backend = s.backend ? s.backend : in.size() > 0 ? &in[0].backend() : &backend("");
  if (current_tape && current_tape->mode() == Tape::Mode::symbolic) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = Tensor::abstract(specs[i]);
    return;
  }
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!in[i].concrete()) fail(op.traits.name, where, "argument {} has no value: {}", i, traces ? in_trace : no_value);
  if (op.alias) {
    out[0] = in[0].view(specs[0].shape, op.alias(attrs, in));
  } else {
    for (std::size_t i = 0; i < out.size() && !op.traits.allocates; ++i) out[i] = Tensor::empty(specs[i]);
    const std::uint64_t first = out[0].id();
    const NoGrad no_grad;  // of what run() calls, the result is this op's
    op.run(attrs, in, out);
    for (std::size_t i = 0; i < out.size(); ++i)  // an argument that run() gives back is a value of its own here
      if (out[i].id() != first + i && out[i].defined()) out[i] = out[i].view(out[i].shape());
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!(out[i].spec() == specs[i]))
      rule_error("its run() gives {}, its infer() {}", out[i].spec().str(), specs[i].str());
} catch (const LoopError& e) {
  fail(e.op, e.where, "{} at {}", e.rule, str(where));
} catch (const RuleError& e) {
  fail(op.traits.name, where, "{}; got {}", e.rule, describe(in));
} catch (const NotCapturable& e) {
  if (*e.what() == '[') throw;  // an op inside this one has added its name
  throw NotCapturable(fmt::format("[{}] {}", op.traits.name, e.what()));
}
}  // namespace

void rethrow_as_rule(const std::exception& e) {
  if (dynamic_cast<const Error*>(&e) || dynamic_cast<const NotCapturable*>(&e)) return;
  const bool logic = dynamic_cast<const std::logic_error*>(&e), ours = std::string_view(e.what()).starts_with("reel: ");
  if (logic ? !ours : dynamic_cast<const std::runtime_error*>(&e) != nullptr) throw RuleError(e.what());
}

std::vector<const Op*>& op_registry() {
  static std::vector<const Op*> ops;
  return ops;
}

Tape* Tape::current() { return current_tape; }

Tape::Arrays& Tape::spare() {
  thread_local Arrays arrays;
  return arrays;
}

Tape::Tape(Mode mode)
    : mode_(mode), outer_(current_tape), first_id_(Tensor::abstract({}).id()), arrays_(std::exchange(spare(), {})) {
  current_tape = this;
  traces += mode_ == Mode::symbolic;
}

Tape::~Tape() {
  Tape** link = &current_tape;  // tapes need not end in the order of a stack
  while (*link && *link != this) link = &(*link)->outer_;
  if (*link) *link = outer_;
  traces -= mode_ == Mode::symbolic;
  arrays_.nodes.clear();
  arrays_.values.clear();
  arrays_.versions.clear();
  if (spare().nodes.capacity() < arrays_.nodes.capacity()) spare() = std::move(arrays_);
}

NoGrad::NoGrad() : outer_(current_tape) { current_tape = nullptr; }
NoGrad::~NoGrad() { current_tape = outer_; }

void Tape::record(const Op& op, const Attrs& attrs, Inputs in, std::span<const Tensor> out, const Loc& where,
                  bool given) {
  arrays_.nodes.push_back({&op, attrs, where, arrays_.values.size(), static_cast<std::uint32_t>(in.size()),
                           static_cast<std::uint32_t>(out.size()), given});
  const auto reads = static_cast<int>(op.traits.saves);
  auto keep = [&](const Tensor& t, bool value) {
    arrays_.versions.push_back(t.version());
    arrays_.values.push_back(value ? t : t.without_storage());
  };
  for (std::size_t i = 0; i < in.size(); ++i) keep(in[i], mode_ == Mode::symbolic || (reads & 1) != 0);
  for (const Tensor& t : out) keep(t, (reads & 2) != 0);
}

std::optional<Spec> try_infer(const Op& op, const Attrs& attrs, Inputs in) try {
  Spec spec;
  op.infer(attrs, in, {&spec, 1});
  return spec;
} catch (const Error&) {
  return std::nullopt;
}

Tensor apply(const Op& op, const Attrs& attrs, Inputs in, const Loc& where) {
  Spec spec;
  Tensor out;
  evaluate(op, attrs, in, {&spec, 1}, {&out, 1}, where);
  if (current_tape) current_tape->record(op, attrs, in, {&out, 1}, where);
  return out;
}

Tensors apply_many(const Op& op, const Attrs& attrs, Inputs in, const Loc& where) {
  std::vector<Spec> specs(op.outputs(attrs));
  Tensors out(specs.size());
  evaluate(op, attrs, in, specs, out, where);
  if (current_tape) current_tape->record(op, attrs, in, out, where);
  return out;
}

void Vjp::set(std::size_t i, const Tensor& gradient) {
  if (needs(i) && gradient.defined() &&
      ((gradient.dtype() != spec(i).dtype && gradient.dtype() != complex_of(spec(i).dtype)) ||
       broadcast(gradient.shape(), spec(i).shape) != gradient.shape()))
    fail(op_.traits.name, where_,
         "its vjp gives {} for input {}, which is {}. Hint: a gradient has its input's dtype and shape",
         gradient.spec().str(), i, spec(i).str());
  dx_[i] = gradient;
}

std::size_t Vjp::known(std::size_t i, std::size_t count, const char* what) const {
  if (i >= count)
    fail(op_.traits.name, where_, "its vjp uses {} {}, and the call has {}. Hint: they count from 0", what, i, count);
  return i;
}

const Tensor& Vjp::checked(std::span<const Tensor> of, std::size_t i, std::size_t first, const char* what) const {
  const Tensor& t = of[known(i, of.size(), what)];
  if (t.concrete() && t.version() != versions_[first + i])
    fail(op_.traits.name, where_,
         "{} {} was changed in place after this call, and its derivative needs the old value. Hint: take the gradient "
         "before the change, or change a copy",
         what, i);
  return t;
}

}  // namespace reel
