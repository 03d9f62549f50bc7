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

/// A dense index for each value: values computed on the tape by their id, leaves (only xs matter) by a map.
class Numbering {
 public:
  Numbering(const Tape& tape, const Tensors& xs) : base_(tape.first_id()) {
    std::uint64_t last = base_;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      for (const Tensor& t : tape.outputs(tape.node(i))) last = std::max(last, t.id());
    }
    for (const Tensor& x : xs) last = std::max(last, x.id());
    size_ = made_ = static_cast<std::size_t>(last - base_) + 1;
    for (const Tensor& x : xs) {
      if (x.id() < base_ && leaves_.emplace(x.id(), size_).second) ++size_;
    }
  }
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t operator()(const Tensor& t) const {
    if (t.id() >= base_) {
      const auto n = static_cast<std::size_t>(t.id() - base_);
      return n < made_ ? n : none;
    }
    const auto found = leaves_.find(t.id());
    return found == leaves_.end() ? none : found->second;
  }
  std::size_t size() const { return size_; }

 private:
  std::uint64_t base_;
  std::size_t made_ = 0, size_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> leaves_;
};

/// Reduces a gradient to the spec of its value: sums over broadcast axes, and takes the real part for a real value.
Tensor unbroadcast(Tensor&& g, const Spec& spec) {
  if (!(g.shape() == spec.shape)) g = primitive::sum_to(g, spec.shape);
  if (is_complex(g.dtype()) && !is_complex(spec.dtype)) g = primitive::real_part(g);
  return std::move(g);
}

void accumulate(Tensor& sum, Tensor&& g) { sum = sum.defined() ? primitive::add(sum, g) : std::move(g); }

}  // namespace

Tensors grad(const Tensors& outputs, const Tensors& xs, const GradOptions& options, Loc where) {
  Tape* const current = Tape::current();
  if (!current)
    fail("grad", where,
         "there is no tape. Hint: create a Tape before computing the loss, and call grad while it lives");
  const Tape& tape = *current;
  const std::size_t nodes = tape.size();
  if (!options.cotangents.empty() && options.cotangents.size() != outputs.size())
    fail("grad", where, "{} cotangents for {} outputs", options.cotangents.size(), outputs.size());
  for (const Tensor& x : xs) {
    if (!x.defined()) fail("grad", where, "an x is an undefined tensor");
    if (!is_differentiable(x.dtype()))
      fail("grad", where, "x is {}; only floating point has gradients", x.spec().str());
  }

  const Numbering number(tape, xs);
  std::vector<char> reached(number.size(), 0), needs;
  auto is_reached = [&](const Tensor& t) {
    const std::size_t n = number(t);
    return n != Numbering::none && reached[n] && is_differentiable(t.dtype());
  };
  for (const Tensor& x : xs) reached[number(x)] = 1;
  const std::vector<char> keep = reached;  // the xs
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto ins = tape.inputs(tape.node(i));
    if (std::none_of(ins.begin(), ins.end(), is_reached)) continue;
    for (const Tensor& t : tape.outputs(tape.node(i))) reached[number(t)] = 1;
  }

  const bool traced = tape.mode() == Tape::Mode::symbolic;  // then the vjps are part of the program
  std::optional<NoGrad> no_grad;
  if (!options.create_graph && !traced) no_grad.emplace();

  Tensors gradient(number.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (tape.mode() == Tape::Mode::eager && outputs[i].id() < tape.first_id())
      fail("grad", where,
           "the output was computed before this tape began, so there is nothing to differentiate. Hint: create the "
           "Tape first");
    Tensor seed = options.cotangents.empty() ? Tensor() : options.cotangents[i];
    if (options.cotangents.empty()) {
      if (outputs[i].numel() != 1)
        fail("grad", where, "the output is {}; without a cotangent it must be a scalar. Hint: sum() or mean() it",
             outputs[i].spec().str());
      seed = primitive::full(outputs[i].spec(), 1);
    }
    if (seed.defined() && !(seed.shape() == outputs[i].shape()))
      fail("grad", where, "cotangent {} is {}, and its output {}", i, seed.spec().str(), outputs[i].spec().str());
    if (seed.defined() && is_reached(outputs[i])) accumulate(gradient[number(outputs[i])], std::move(seed));
  }

  // While vjps are recorded on this tape its arrays may be reallocated, so a node is copied before its vjp runs.
  const bool moves = Tape::current() == &tape;
  Tensors values, dy, dx;
  std::vector<std::uint32_t> versions;
  for (std::size_t i = nodes; i-- > 0;) {
    const Tape::Node& node = tape.node(i);
    dy.clear();
    for (const Tensor& t : tape.outputs(node)) {
      Tensor& g = gradient[number(t)];
      dy.push_back(keep[number(t)] ? g : std::exchange(g, Tensor()));
    }
    if (std::none_of(dy.begin(), dy.end(), [](const Tensor& g) { return g.defined(); })) continue;
    needs.clear();
    for (const Tensor& t : tape.inputs(node)) needs.push_back(is_reached(t) ? 1 : 0);
    if (std::find(needs.begin(), needs.end(), 1) == needs.end()) continue;
    const Op& op = *node.op;
    if (!op.vjp) fail(op.traits.name, node.where, "this op has no derivative, and one was asked for");

    auto ins = tape.inputs(node), outs = tape.outputs(node);
    auto node_versions = tape.versions(node);
    dx.assign(ins.size(), Tensor());
    const Attrs attrs = node.attrs;
    const Loc called = node.where;
    if (moves) {
      values.assign(ins.begin(), ins.end());
      values.insert(values.end(), outs.begin(), outs.end());
      versions.assign(node_versions.begin(), node_versions.end());
      ins = {values.data(), ins.size()};
      outs = {values.data() + ins.size(), outs.size()};
      node_versions = versions;
    }
    Vjp v(op, called, ins, outs, node_versions, dy, needs, dx);
    try {
      op.vjp(attrs, v);
    } catch (const Error& e) {  // of an op that the vjp calls, which the user may not know
      if (typeid(e) != typeid(Error) || std::string(e.what()).starts_with(fmt::format("[{}]", op.traits.name))) throw;
      throw Error(fmt::format("in the gradient of {} ({}): {}", op.traits.name, str(called), e.what()));
    }
    for (std::size_t k = 0; k < ins.size(); ++k) {
      if (needs[k] && dx[k].defined())
        accumulate(gradient[number(ins[k])], unbroadcast(std::move(dx[k]), ins[k].spec()));
    }
  }

  Tensors result;
  for (const Tensor& x : xs) {
    const Tensor& g = gradient[number(x)];
    result.push_back(g.defined() ? g : primitive::full(x.spec(), 0));
    if (traced && !options.create_graph) result.back() = primitive::stop_gradient(result.back());
  }
  return result;
}

}  // namespace reel
