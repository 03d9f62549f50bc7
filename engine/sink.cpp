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

/// Which nodes leave the loop: heavy ones that no carry needs, and all that follows from them.
std::vector<char> plan(const ScanCall& call) {
  const Program& p = call.body;
  const std::size_t nodes = p.nodes.size();
  std::vector<char> needed(p.slots.size(), 0), blocked(p.slots.size(), 0), sunk(nodes, 0), sunk_slot(p.slots.size(), 0);
  const std::vector<char> varying = varying_slots(p);
  for (int i = 0; i < call.carries(); ++i) needed[ix(p.outputs[ix(i)])] = 1;
  mark_ancestors(p, needed);
  std::vector<char> may(nodes, 0);
  for (std::size_t i = nodes; i-- > 0;) {
    const Program::Node& node = p.nodes[i];
    may[i] = node.op->batch && varying[ix(node.out)] && !needed[ix(node.out)] && !blocked[ix(node.out)];
    if (may[i]) continue;
    for (int s : node.in) blocked[ix(s)] = 1;  // someone inside the loop uses it
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    bool follows = false;
    for (int s : node.in) follows = follows || sunk_slot[ix(s)];
    sunk[i] = may[i] && (follows || node.op->traits.kind == Kind::heavy);
    sunk_slot[ix(node.out)] = sunk[i];
  }
  return sunk;
}

/// The values of sunk nodes for all times, made after the loop.
class After {
 public:
  After(const Program& body, std::int64_t length, Tensors known, std::vector<char> varying)
      : body_(body), length_(length), value_(std::move(known)), varying_(std::move(varying)) {}

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
    if (!varying_[ix(slot)]) return primitive::scale(all(slot), static_cast<double>(length_));
    if (value_[ix(slot)].defined()) return primitive::sum_leading(value_[ix(slot)]);
    const Program::Node& node = body_.nodes[ix(body_.maker(slot))];
    bool all_vary = true;
    for (int s : node.in) all_vary = all_vary && varying_[ix(s)];
    if (node.op->traits.linear && all_vary) {
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
  std::int64_t length_;
  Tensors value_;
  std::vector<char> varying_;
};

}  // namespace

ScanResult run_with_sums(ScanCall call, int sums, const Where& where) {
  if (call.passes.hoist) hoist(call);  // so that what is constant is a capture
  const Program p = call.body;
  const int carries = call.carries(), ys = call.ys() - sums;
  const std::vector<char> sunk = call.passes.sink ? plan(call) : std::vector<char>(p.nodes.size(), 0);
  const auto is_sunk = [&](int slot) { return p.maker(slot) >= 0 && sunk[ix(p.maker(slot))]; };

  // Values made inside the loop that sunk nodes read are put out for all times.
  std::vector<int> put_out, summed_inside;
  const auto inside_loop = [&](int slot) { return slot < carries || (p.maker(slot) >= 0 && !is_sunk(slot)); };
  const auto want = [&](int slot) {
    if (inside_loop(slot)) put_out.push_back(slot);
  };
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    if (!sunk[i]) continue;
    for (int s : p.nodes[i].in) want(s);
  }
  for (int j = 0; j < ys; ++j) {
    const int slot = p.outputs[ix(carries + j)];
    if (slot >= p.inputs && p.maker(slot) < 0) put_out.push_back(slot);  // a constant, wanted once for each step
    want(slot);
  }
  for (int k = 0; k < sums; ++k) {
    const int slot = p.outputs[ix(carries + ys + k)];
    if (inside_loop(slot)) summed_inside.push_back(slot);
  }
  std::sort(put_out.begin(), put_out.end());
  put_out.erase(std::unique(put_out.begin(), put_out.end()), put_out.end());

  // The body without the sunk nodes; sums that stay are further carries.
  ScanCall inner = call;
  std::vector<Spec> specs(p.slots.begin(), p.slots.begin() + carries);
  for (int s : summed_inside) {
    const Spec& spec = p.slots[ix(s)];
    specs.push_back(spec);
    inner.carry.push_back(Tensor::zeros(spec.shape, spec.dtype, *spec.backend));
  }
  specs.insert(specs.end(), p.slots.begin() + carries, p.slots.begin() + p.inputs);
  Traced rest = trace(specs, [&](const Tensors& in) {
    const auto xs = in.begin() + carries + static_cast<std::ptrdiff_t>(summed_inside.size());
    Tensors value(p.slots.size());
    std::copy(in.begin(), in.begin() + carries, value.begin());
    std::copy(xs, in.end(), value.begin() + carries);
    std::copy(call.captures.begin(), call.captures.end(), value.begin() + p.inputs);
    for (std::size_t i = 0; i < p.nodes.size(); ++i) {
      if (!sunk[i]) apply_node(p.nodes[i], value);
    }
    Tensors out;
    for (int i = 0; i < carries; ++i) out.push_back(value[ix(p.outputs[ix(i)])]);
    for (std::size_t k = 0; k < summed_inside.size(); ++k)
      out.push_back(primitive::add(in[ix(carries) + k], value[ix(summed_inside[k])]));
    for (int s : put_out) out.push_back(value[ix(s)]);
    return out;
  });
  inner.body = std::move(rest.program);
  inner.captures = std::move(rest.captures);
  const ScanResult inside = run_scan(std::move(inner), where);

  // After the loop: slabs of what was put out and of xs, captures as they are.
  Tensors known(p.slots.size());
  std::vector<char> varying = varying_slots(p);
  std::copy(call.xs.begin(), call.xs.end(), known.begin() + carries);
  std::copy(call.captures.begin(), call.captures.end(), known.begin() + p.inputs);
  for (std::size_t k = 0; k < put_out.size(); ++k) {
    known[ix(put_out[k])] = inside.ys[k];
    varying[ix(put_out[k])] = 1;
  }
  After after(p, call.length, std::move(known), std::move(varying));

  ScanResult result;
  result.last.assign(inside.last.begin(), inside.last.begin() + carries);
  for (int j = 0; j < ys; ++j) {
    const int slot = p.outputs[ix(carries + j)];
    result.ys.push_back(after.all(slot));
  }
  for (int k = 0; k < sums; ++k) {
    const int slot = p.outputs[ix(carries + ys + k)];
    const auto inside_at = std::find(summed_inside.begin(), summed_inside.end(), slot);
    if (inside_at != summed_inside.end())
      result.ys.push_back(inside.last[ix(carries) + static_cast<std::size_t>(inside_at - summed_inside.begin())]);
    else
      result.ys.push_back(after.sum(slot));
  }
  return result;
}

}  // namespace reel
