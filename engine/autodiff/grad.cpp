// Reverse-mode differentiation: a loop forwards marks the values that depend on xs, a loop backwards calls each op's
// vjp.
#include <algorithm>
#include <optional>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "engine/autodiff/primitives.h"
#include "engine/autodiff/tape.h"

namespace reel {

namespace {

/// A dense number for each value, and whether it depends on xs. Values computed on the tape are numbered by their id,
/// xs that are not behind them; 0 is what is neither.
class Dependence {
 public:
  Dependence(const Tape& tape, const Tensors& xs) : base_(tape.first_id()) {
    std::uint64_t end = base_;
    for (std::size_t i = 0; i < tape.size(); ++i)
      for (const Tensor& t : tape.outputs(tape.node(i))) end = std::max(end, t.id() + 1);
    for (const Tensor& x : xs) end = std::max(end, x.id() + 1);
    made_ = static_cast<std::size_t>(end - base_);
    reached_.resize(made_ + 1, 0);
    for (const Tensor& x : xs) {
      if (x.id() < base_ && leaves_.emplace(x.id(), reached_.size()).second) reached_.push_back(1);
      reached_[number(x)] = 1;
    }
    is_x_ = reached_;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      const auto ins = tape.inputs(tape.node(i));
      if (std::none_of(ins.begin(), ins.end(), [&](const Tensor& t) { return on_xs(t); })) continue;
      for (const Tensor& t : tape.outputs(tape.node(i))) reached_[number(t)] = 1;
    }
  }
  std::size_t number(const Tensor& t) const {
    if (t.id() >= base_) return t.id() - base_ < made_ ? static_cast<std::size_t>(t.id() - base_) + 1 : 0;
    const auto found = leaves_.find(t.id());
    return found == leaves_.end() ? 0 : found->second;
  }
  bool on_xs(const Tensor& t) const { return reached_[number(t)] && is_differentiable(t.dtype()); }
  bool is_x(const Tensor& t) const { return is_x_[number(t)]; }
  std::size_t size() const { return reached_.size(); }

 private:
  std::uint64_t base_;
  std::size_t made_ = 0;  // on the tape
  std::unordered_map<std::uint64_t, std::size_t> leaves_;
  std::vector<char> reached_, is_x_;
};

/// Reduces a gradient to the spec of its value: sums over broadcast axes, and takes the real part for a real value.
Tensor unbroadcast(Tensor&& g, const Spec& spec) {
  if (!(g.shape() == spec.shape)) g = primitive::sum_to(g, spec.shape);
  if (is_complex(g.dtype()) && !is_complex(spec.dtype)) g = primitive::real_part(g);
  return std::move(g);
}

void accumulate(Tensor& sum, Tensor&& g) { sum = sum.defined() ? primitive::add(sum, g) : std::move(g); }

const Tape& checked_tape(const Tensors& outputs, const Tensors& xs, const GradOptions& options, Loc where) {
  const Tape* const tape = Tape::current();
  if (!tape)
    fail("grad", where,
         "there is no tape. Hint: create a Tape before computing the loss, and call grad while it lives");
  if (!options.cotangents.empty() && options.cotangents.size() != outputs.size())
    fail("grad", where, "{} cotangents for {} outputs", options.cotangents.size(), outputs.size());
  for (const Tensor& x : xs) {
    if (!x.defined()) fail("grad", where, "an x is an undefined tensor");
    if (!is_differentiable(x.dtype()))
      fail("grad", where, "x is {}; only floating point has gradients", x.spec().str());
  }
  return *tape;
}

/// The gradient of output i that the sweep begins with: its cotangent, or 1 for a scalar.
Tensor seed(const Tape& tape, const Tensors& outputs, std::size_t i, const GradOptions& options, Loc where) {
  if (tape.mode() == Tape::Mode::eager && outputs[i].id() < tape.first_id())
    fail("grad", where,
         "the output was computed before this tape began, so there is nothing to differentiate. Hint: create the "
         "Tape first");
  if (options.cotangents.empty()) {
    if (outputs[i].numel() == 1) return primitive::full(outputs[i].spec(), 1);
    fail("grad", where, "the output is {}; without a cotangent it must be a scalar. Hint: sum() or mean() it",
         outputs[i].spec().str());
  }
  const Tensor& dy = options.cotangents[i];
  if (dy.defined() && (dy.shape() != outputs[i].shape() || dy.dtype() != outputs[i].dtype()))
    fail("grad", where, "cotangent {} is {}, and its output {}", i, dy.spec().str(), outputs[i].spec().str());
  return dy;
}

}  // namespace

void pull_back(const Op& op, const Attrs& attrs, Vjp& v, Loc called) try { op.vjp(attrs, v); } catch (const Error& e) {
  if (typeid(e) == typeid(RuleError)) fail(op.traits.name, called, "{}", static_cast<const RuleError&>(e).rule);
  if (typeid(e) != typeid(Error) || std::string(e.what()).starts_with(fmt::format("[{}]", op.traits.name))) throw;
  throw Error(fmt::format("in the gradient of {} ({}): {}", op.traits.name, str(called), e.what()));
}

Tensors grad(const Tensors& outputs, const Tensors& xs, const GradOptions& options, Loc where) {
  const Tape& tape = checked_tape(outputs, xs, options, where);
  const Dependence depends(tape, xs);

  const bool traced = tape.mode() == Tape::Mode::symbolic;  // then the vjps are part of the program
  std::optional<NoGrad> no_grad;
  if (!options.create_graph && !traced) no_grad.emplace();

  Tensors gradient(depends.size());  // by number, of what has been summed up
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (Tensor dy = seed(tape, outputs, i, options, where); dy.defined() && depends.on_xs(outputs[i]))
      accumulate(gradient[depends.number(outputs[i])], std::move(dy));

  Tensors ins, outs, dy, dx;
  std::vector<char> needs;
  std::vector<std::uint32_t> versions;
  for (std::size_t i = tape.size(); i-- > 0;) {  // vjps may be recorded behind these
    const Tape::Node node = tape.node(i);        // a copy, as a vjp that is recorded on this tape may move its arrays
    dy.clear();
    for (const Tensor& t : tape.outputs(node)) {
      Tensor& g = gradient[depends.number(t)];
      dy.push_back(depends.is_x(t) ? g : std::exchange(g, Tensor()));
    }
    if (std::none_of(dy.begin(), dy.end(), [](const Tensor& g) { return g.defined(); })) continue;
    needs.clear();
    for (const Tensor& t : tape.inputs(node)) needs.push_back(depends.on_xs(t) ? 1 : 0);
    if (std::find(needs.begin(), needs.end(), 1) == needs.end()) continue;
    const Op& op = *node.op;
    if (!op.vjp) fail(op.traits.name, node.where, "this op has no derivative, and one was asked for");

    ins.assign(tape.inputs(node).begin(), tape.inputs(node).end());
    outs.assign(tape.outputs(node).begin(), tape.outputs(node).end());
    versions.assign(tape.versions(node).begin(), tape.versions(node).end());
    dx.assign(ins.size(), Tensor());
    Vjp v(op, node.where, ins, outs, versions, dy, needs, dx);
    pull_back(op, node.attrs, v, node.where);
    for (std::size_t k = 0; k < ins.size(); ++k) {
      if (needs[k] && dx[k].defined())
        accumulate(gradient[depends.number(ins[k])], unbroadcast(std::move(dx[k]), ins[k].spec()));
    }
  }

  Tensors result;
  for (const Tensor& x : xs) {
    const Tensor& g = gradient[depends.number(x)];
    result.push_back(g.defined() ? g : primitive::full(x.spec(), 0));
    if (traced && !options.create_graph) result.back() = primitive::stop_gradient(result.back());
  }
  return result;
}

}  // namespace reel
