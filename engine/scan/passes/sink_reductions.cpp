// Sink: what the carried gradients do not depend on leaves the backward loop and runs in the epilogue. The gradient of
// a weight is a sum over time of small products; the loop stacks both factors, and one product after it gives the sum.
#include <algorithm>
#include <utility>

#include "engine/autodiff/primitives.h"
#include "engine/scan/passes/passes.h"

namespace reel {

namespace {

/// By id: differs from step to step.
std::vector<char> varying_slots(const Program& p) {
  std::vector<char> varying(p.values.size(), 0);
  std::fill(varying.begin(), varying.begin() + p.inputs, 1);
  mark_descendants(p, varying);
  return varying;
}

/// By node: does it leave the loop? Nodes worth hoisting do if no carry depends on them, and so does all that depends
/// on them. So do nodes that only move the elements of one of the last `sums` outputs: the sum is moved instead.
std::vector<char> plan(const Program& p, int carries, int sums) {
  const std::size_t nodes = p.nodes.size();
  std::vector<char> needed(p.values.size(), 0), blocked(p.values.size(), 0), sunk(nodes, 0),
      sunk_value(p.values.size(), 0);
  const std::vector<char> varying = varying_slots(p);
  for (int i = 0; i < carries; ++i) needed[p.outputs[i]] = 1;
  mark_ancestors(p, needed);
  std::vector<char> may(nodes, 0), moves_sum(nodes, 0), summed(p.values.size(), 0);
  for (auto s = p.outputs.end() - sums; s != p.outputs.end(); ++s) summed[*s] = 1;
  for (std::size_t i = nodes; i-- > 0;) {
    const Program::Node& node = p.nodes[i];
    const Traits& traits = node.op->traits;
    may[i] = node.op->loop.vmap && varying[node.out] && !needed[node.out] && !blocked[node.out];
    moves_sum[i] = may[i] && summed[node.out] && traits.linear && traits.kind == Kind::movement;
    for (int s : node.in) {
      if (!may[i]) blocked[s] = 1;  // a node inside the loop reads it
      if (moves_sum[i]) summed[s] = 1;
    }
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    const Program::Node& node = p.nodes[i];
    sunk[i] = may[i] && (any_marked(sunk_value, node.in) || moves_sum[i] || p.worth_hoisting(node));
    sunk_value[node.out] = sunk[i];
  }
  return sunk;
}

/// What the loop must output for the nodes that run after it.
struct Demand {
  const Program& body;
  int carries;
  const std::vector<char>&varying, &sunk;
  std::vector<int> put_out = {}, summed = {};  // values of the loop that it stacks, and that it sums over time
  // By id: all() or sum() has been here. Many paths may lead to one value.
  std::vector<char> saw_all = std::vector<char>(body.values.size(), 0), saw_sum = saw_all;

  /// The value is needed for all time steps.
  void all(int id) {
    if (std::exchange(saw_all[id], 1)) return;
    if (inside(id))
      put_out.push_back(id);
    else if (body.producer(id) >= 0)
      for (int s : node(id).in) all(s);
  }
  /// The value's sum over time is needed. For linear ops the inputs are summed inside the loop, which avoids stacking
  /// them.
  void sum(int id) {
    if (std::exchange(saw_sum[id], 1)) return;
    if (inside(id))
      summed.push_back(id);
    else if (!varying[id] || body.producer(id) < 0)
      return;
    else if (sums_inputs(id))
      for (int s : node(id).in) sum(s);
    else
      all(id);
  }
  /// Is the sum of a sunk value its op applied to the sums of the inputs?
  bool sums_inputs(int id) const {
    return node(id).op->traits.linear && std::ranges::all_of(node(id).in, [&](int s) { return varying[s] != 0; });
  }

  const Program::Node& node(int id) const { return body.nodes[body.producer(id)]; }
  bool inside(int id) const { return id < carries || (body.producer(id) >= 0 && !sunk[body.producer(id)]); }
};

/// Computes the values of sunk nodes for all time steps, after the loop.
struct After {
  const Program& body;
  const Demand& demand;
  std::int64_t length;
  Tensors value, total;  // by id: what is known already, and the sums over time that are
  std::vector<char> varying;

  /// The stacked values [T, ...]; of a const its one value.
  const Tensor& all(int id) {
    if (!value[id].defined()) value[id] = all_steps(body, known(id), value, varying, length);
    return value[id];
  }

  /// The value's sum over time.
  Tensor sum(int id) {
    Tensor& result = total[id];
    if (result.defined()) return result;
    if (!varying[id]) return result = primitive::scale(all(id), static_cast<double>(length));
    if (value[id].defined()) return result = primitive::sum_leading(value[id]);
    const Program::Node& node = body.nodes[body.producer(id)];
    if (demand.sums_inputs(id)) {
      Tensors sums;
      for (int s : node.in) sums.push_back(sum(s));
      return result = apply(*node.op, node.attrs, pointers(sums), node.where);
    }
    if (node.op->loop.vmap_sum) result = all_steps(body, known(id), value, varying, length, true);
    return result.defined() ? result : result = primitive::sum_leading(all(id));
  }

  /// The node that produces a value, with its arguments computed.
  const Program::Node& known(int id) {
    const Program::Node& node = body.nodes[body.producer(id)];
    for (int s : node.in) all(s);
    return node;
  }
};

/// The body with the terms of its accumulators instead of the sums: it takes the other carries, and returns the terms
/// behind ys.
Program without_accumulators(Program p, int carries, int accumulators) {
  std::vector<char> kept(p.values.size(), 1);
  const auto first = p.outputs.begin() + carries, last = first + accumulators;
  std::vector<int> terms;
  for (auto sum = first; sum != last; ++sum) {
    const Program::Node& add = p.nodes[p.producer(*sum)];
    REEL_ASSERT(add.in.size() == 2 && add.in[0] == static_cast<int>(sum - p.outputs.begin()));
    terms.push_back(add.in[1]);
    kept[add.in[0]] = kept[*sum] = 0;
  }
  p.outputs.erase(first, last);
  p.outputs.insert(p.outputs.end(), terms.begin(), terms.end());
  return subset(p, kept);
}

}  // namespace

Loop sink_reductions(Loop loop, const ScanPasses&) {
  if (!loop.signature.gradient) return loop;
  const int sums = loop.signature.accumulators, carries = loop.signature.carries - sums, ys = loop.ys(), xs = loop.xs();
  const std::int64_t length = loop.signature.length;
  const Program p = without_accumulators(loop.body, carries, sums);
  const std::vector<char> sunk = plan(p, carries, sums);
  std::vector<char> varying = varying_slots(p);
  const auto output = [&](int i) { return p.outputs[carries + i]; };

  Demand demand{p, carries, varying, sunk};
  for (int j = 0; j < ys; ++j) {
    if (!varying[output(j)] && p.producer(output(j)) < 0)
      demand.put_out.push_back(output(j));  // a const, stacked once for each step
    else
      demand.all(output(j));
  }
  for (int k = 0; k < sums; ++k) demand.sum(output(ys + k));

  // The body without the sunk nodes; sums become accumulators.
  const auto first_x = p.values.begin() + carries, first_const = p.values.begin() + p.inputs;
  std::vector<Spec> inputs(p.values.begin(), first_x);
  for (int s : demand.summed) inputs.push_back(p.values[s]);
  inputs.insert(inputs.end(), first_x, first_const);
  Traced body = trace_body(inputs, {first_const, first_const + p.consts}, [&](const Tensors& in) {
    Tensors value(p.values.size());
    const auto next = std::copy_n(in.begin(), carries, value.begin());
    std::copy(in.begin() + carries + std::ssize(demand.summed), in.end(), next);
    for (std::size_t i = 0; i < p.nodes.size(); ++i)
      if (!sunk[i]) apply_node(p.nodes[i], value);
    Tensors out;
    for (int i = 0; i < carries; ++i) out.push_back(value[p.outputs[i]]);
    for (std::size_t k = 0; k < demand.summed.size(); ++k)
      out.push_back(primitive::add(in[carries + k], value[demand.summed[k]]));
    for (int s : demand.put_out) out.push_back(value[s]);
    return out;
  });

  // The epilogue gets all xs and consts; dce drops those that it does not read.
  const Traced after = std::move(loop.epilogue);
  const int operands = xs + p.consts, passed = loop.passed();
  loop.prologue = then(loop.prologue, [&](const Tensors& results) {
    Tensors out(results.begin(), results.begin() + operands);
    out.insert(out.end(), body.consts.begin(), body.consts.end());
    out.insert(out.end(), results.begin(), results.end());
    return out;
  });
  std::vector<Spec> late(inputs.begin(), inputs.begin() + carries + std::ssize(demand.summed));
  for (auto x = first_x; x != first_const; ++x) late.push_back(stacked(*x, length));
  late.insert(late.end(), first_const, first_const + p.consts);
  const auto old_passed = after.program.values.begin() + carries + sums;
  late.insert(late.end(), old_passed, old_passed + passed);
  for (int s : demand.put_out) late.push_back(stacked(p.values[s], length));
  loop.epilogue = trace(late, [&](const Tensors& in) {
    const auto totals = in.begin() + carries, known_x = totals + std::ssize(demand.summed);
    const auto further = known_x + operands, put_out = further + passed;
    Tensors known(p.values.size()), total(p.values.size());
    std::copy_n(known_x, operands, known.begin() + carries);
    for (std::size_t k = 0; k < demand.put_out.size(); ++k) {
      known[demand.put_out[k]] = put_out[static_cast<std::ptrdiff_t>(k)];
      varying[demand.put_out[k]] = 1;
    }
    for (std::size_t k = 0; k < demand.summed.size(); ++k)
      total[demand.summed[k]] = totals[static_cast<std::ptrdiff_t>(k)];
    After computed{p, demand, length, std::move(known), std::move(total), varying};
    Tensors results(in.begin(), totals);
    for (int k = 0; k < sums; ++k) results.push_back(computed.sum(output(ys + k)));
    results.insert(results.end(), further, put_out);
    for (int j = 0; j < ys; ++j) results.push_back(computed.all(output(j)));
    return eval(after.program, results, after.consts);
  });
  loop.body = std::move(body.program);
  loop.signature.accumulators = static_cast<int>(demand.summed.size());
  loop.signature.carries = carries + loop.signature.accumulators;
  return loop;
}

}  // namespace reel
