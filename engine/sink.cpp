// Sink: what the carried gradient does not depend on leaves the backward loop at its end. The gradient of a weight is a
// sum over time of small products; both factors are kept as slabs and become one product after the loop.
#include <algorithm>

#include "engine/primitives.h"
#include "engine/scan.h"

namespace reel {

namespace {

/// By slot: differs from step to step.
std::vector<char> varying_slots(const Program& p) {
  std::vector<char> varying(p.slots.size(), 0);
  std::fill(varying.begin(), varying.begin() + p.inputs, 1);
  for (const Program::Node& node : p.nodes) {
    const bool any = std::any_of(node.in.begin(), node.in.end(), [&](int s) { return varying[ix(s)] != 0; });
    std::fill(varying.begin() + node.out, varying.begin() + node.out + node.outs, any);
  }
  return varying;
}

/// Which nodes leave the loop: heavy ones that no carry needs, and all that follows from them; and those that only move
/// the elements of one of the `sums`, the last outputs, for the sum may be moved instead.
std::vector<char> plan(const ScanCall& call, int sums) {
  const Program& p = call.body;
  const std::size_t nodes = p.nodes.size();
  std::vector<char> needed(p.slots.size(), 0), blocked(p.slots.size(), 0), sunk(nodes, 0), sunk_slot(p.slots.size(), 0);
  const std::vector<char> varying = varying_slots(p);
  for (int i = 0; i < call.carries(); ++i) needed[ix(p.outputs[ix(i)])] = 1;
  mark_ancestors(p, needed);
  std::vector<char> may(nodes, 0), moves_sum(nodes, 0), summed(p.slots.size(), 0);
  for (auto s = p.outputs.end() - sums; s != p.outputs.end(); ++s) summed[ix(*s)] = 1;
  for (std::size_t i = nodes; i-- > 0;) {
    const Program::Node& node = p.nodes[i];
    const Traits& traits = node.op->traits;
    may[i] = node.op->batch && varying[ix(node.out)] && !needed[ix(node.out)] && !blocked[ix(node.out)];
    moves_sum[i] = may[i] && summed[ix(node.out)] && traits.linear && traits.kind == Kind::movement;
    for (int s : node.in) {
      if (!may[i]) blocked[ix(s)] = 1;  // someone inside the loop uses it
      if (moves_sum[i]) summed[ix(s)] = 1;
    }
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    bool follows = false;
    for (int s : node.in) follows = follows || sunk_slot[ix(s)];
    sunk[i] = may[i] && (follows || moves_sum[i] || p.gains_outside(node));
    sunk_slot[ix(node.out)] = sunk[i];
  }
  return sunk;
}

/// What the loop must leave behind for what comes after it.
class Demand {
 public:
  Demand(const Program& body, int carries, const std::vector<char>& varying, const std::vector<char>& sunk)
      : body_(body), carries_(carries), varying_(varying), sunk_(sunk) {}

  /// All values of a slot are wanted.
  void all(int slot) {
    if (inside(slot))
      note(put_out, slot);
    else if (body_.maker(slot) >= 0)
      for (int s : node(slot).in) all(s);
  }
  /// The sum of its values over time is. Of what is linear the sum may be taken before, inside the loop, where it costs
  /// no slab.
  void sum(int slot) {
    if (inside(slot))
      note(summed, slot);
    else if (!varying_[ix(slot)] || body_.maker(slot) < 0)
      return;
    else if (sums_inputs(slot))
      for (int s : node(slot).in) sum(s);
    else
      all(slot);
  }
  /// The sum of a sunk slot is its op on the sums of the inputs.
  bool sums_inputs(int slot) const {
    if (!node(slot).op->traits.linear) return false;
    return std::all_of(node(slot).in.begin(), node(slot).in.end(), [&](int s) { return varying_[ix(s)] != 0; });
  }

  std::vector<int> put_out, summed;  // slots that the loop makes: wanted for all times, and summed up

 private:
  const Program::Node& node(int slot) const { return body_.nodes[ix(body_.maker(slot))]; }
  bool inside(int slot) const { return slot < carries_ || (body_.maker(slot) >= 0 && !sunk_[ix(body_.maker(slot))]); }
  static void note(std::vector<int>& list, int slot) {
    if (std::find(list.begin(), list.end(), slot) == list.end()) list.push_back(slot);
  }
  const Program& body_;
  int carries_;
  const std::vector<char>&varying_, &sunk_;
};

/// The values of sunk nodes for all times, made after the loop.
class After {
 public:
  After(const Program& body, const Demand& demand, std::int64_t length, Tensors known, Tensors sums,
        std::vector<char> varying)
      : body_(body),
        demand_(demand),
        length_(length),
        value_(std::move(known)),
        sum_(std::move(sums)),
        varying_(std::move(varying)) {}

  /// All values [T, ...] of a slot; of a capture its one value.
  const Tensor& all(int slot) {
    Tensor& v = value_[ix(slot)];
    if (!v.defined()) {
      const Call c = call(slot);
      v = c.node.op->batch(c.node.attrs, c.in, c.varying, length_);
    }
    return v;
  }

  /// The sum of a slot's values over time.
  Tensor sum(int slot) {
    if (sum_[ix(slot)].defined()) return sum_[ix(slot)];
    if (!varying_[ix(slot)]) return primitive::scale(all(slot), static_cast<double>(length_));
    if (value_[ix(slot)].defined()) return primitive::sum_leading(value_[ix(slot)]);
    const Program::Node& node = body_.nodes[ix(body_.maker(slot))];
    if (demand_.sums_inputs(slot)) {
      Tensors sums;
      for (int s : node.in) sums.push_back(sum(s));
      return apply(*node.op, node.attrs, pointers(sums), node.where);
    }
    if (node.op->batch_sum) {
      const Call c = call(slot);
      if (Tensor total = node.op->batch_sum(node.attrs, c.in, c.varying, length_); total.defined()) return total;
    }
    return primitive::sum_leading(all(slot));
  }

 private:
  struct Call {
    const Program::Node& node;
    std::vector<const Tensor*> in;
    Varying varying;
  };
  Call call(int slot) {
    Call c{body_.nodes[ix(body_.maker(slot))], {}, {}};
    for (std::size_t k = 0; k < c.node.in.size(); ++k) {
      all(c.node.in[k]);
      if (varying_[ix(c.node.in[k])]) c.varying.set(k);
    }
    for (int s : c.node.in) c.in.push_back(&value_[ix(s)]);
    return c;
  }

  const Program& body_;
  const Demand& demand_;
  std::int64_t length_;
  Tensors value_, sum_;  // by slot
  std::vector<char> varying_;
};

}  // namespace

ScanResult run_with_sums(ScanCall call, int sums, const Where& where) {
  if (call.passes.hoist) hoist(call);  // so that what is constant is a capture
  const Program p = call.body;
  const int carries = call.carries(), ys = call.ys() - sums;
  const std::vector<char> sunk = call.passes.sink ? plan(call, sums) : std::vector<char>(p.nodes.size(), 0);
  std::vector<char> varying = varying_slots(p);
  const auto output = [&](int i) { return p.outputs[ix(carries + i)]; };

  Demand demand(p, carries, varying, sunk);
  for (int j = 0; j < ys; ++j) {
    if (!varying[ix(output(j))] && p.maker(output(j)) < 0)
      demand.put_out.push_back(output(j));  // a constant, wanted once for each step
    else
      demand.all(output(j));
  }
  for (int k = 0; k < sums; ++k) demand.sum(output(ys + k));

  // The body without the sunk nodes; sums are further carries.
  ScanCall inner = call;
  inner.sums = static_cast<int>(demand.summed.size());
  std::vector<Spec> specs(p.slots.begin(), p.slots.begin() + carries);
  for (int s : demand.summed) {
    const Spec& spec = p.slots[ix(s)];
    specs.push_back(spec);
    inner.carry.push_back(Tensor::zeros(spec.shape, spec.dtype, *spec.backend));
  }
  specs.insert(specs.end(), p.slots.begin() + carries, p.slots.begin() + p.inputs);
  Traced rest = trace(specs, [&](const Tensors& in) {
    const auto xs = in.begin() + carries + std::ssize(demand.summed);
    Tensors value(p.slots.size());
    std::copy(in.begin(), in.begin() + carries, value.begin());
    std::copy(xs, in.end(), value.begin() + carries);
    std::copy(call.captures.begin(), call.captures.end(), value.begin() + p.inputs);
    for (std::size_t i = 0; i < p.nodes.size(); ++i) {
      if (!sunk[i]) apply_node(p.nodes[i], value);
    }
    Tensors out;
    for (int i = 0; i < carries; ++i) out.push_back(value[ix(p.outputs[ix(i)])]);
    for (std::size_t k = 0; k < demand.summed.size(); ++k)
      out.push_back(primitive::add(in[ix(carries) + k], value[ix(demand.summed[k])]));
    for (int s : demand.put_out) out.push_back(value[ix(s)]);
    return out;
  });
  inner.body = std::move(rest.program);
  inner.captures = std::move(rest.captures);
  const ScanResult inside = run_scan(std::move(inner), where);

  // After the loop: slabs of what was put out and of xs, captures as they are.
  Tensors known(p.slots.size()), totals(p.slots.size());
  std::copy(call.xs.begin(), call.xs.end(), known.begin() + carries);
  std::copy(call.captures.begin(), call.captures.end(), known.begin() + p.inputs);
  for (std::size_t k = 0; k < demand.put_out.size(); ++k) {
    known[ix(demand.put_out[k])] = inside.ys[k];
    varying[ix(demand.put_out[k])] = 1;
  }
  for (std::size_t k = 0; k < demand.summed.size(); ++k) totals[ix(demand.summed[k])] = inside.last[ix(carries) + k];
  After after(p, demand, call.length, std::move(known), std::move(totals), varying);

  ScanResult result;
  result.last.assign(inside.last.begin(), inside.last.begin() + carries);
  for (int j = 0; j < ys; ++j) result.ys.push_back(after.all(output(j)));
  for (int k = 0; k < sums; ++k) result.ys.push_back(after.sum(output(ys + k)));
  return result;
}

}  // namespace reel
