// The gradient of a scan is a scan in the other direction. Its carries are the gradients of the states; its body is the
// vjp of the forward body, traced on an ordinary symbolic tape. Values that the forward loop saved (states and other
// residuals) are inputs. The body recomputes the others, which for elementwise ops is cheaper than loading them.
#include <algorithm>
#include <map>

#include "engine/autodiff/primitives.h"
#include "engine/scan/scan.h"

namespace reel {

namespace {

/// By id of an input or const of the body: does the gradient reach it from the outputs of the loop that have one? What
/// it does not reach has no gradient, rather than one of zeros: zero times an infinite derivative is NaN.
std::vector<char> reached_inputs(const Scan& scan, const std::vector<char>& outputs) {
  const Program& p = scan.loop().body;
  const auto n = static_cast<std::size_t>(scan.signature().carries);
  std::vector<char> reached(p.values.size(), 0), before;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t result = i % p.outputs.size();  // all values of the carries follow the results
    if (outputs[i]) reached[result < n ? result : p.outputs[result]] = 1;
  }
  while (before != reached) {
    before = reached;
    for (std::size_t i = 0; i < n; ++i) reached[p.outputs[i]] |= reached[i];
    for (auto node = p.nodes.rbegin(); node != p.nodes.rend(); ++node) {
      const auto first = reached.begin() + node->out, end = first + node->num_outputs;
      if (std::find(first, end, 1) == end) continue;
      std::vector<char> within(node->in.size(), 1);
      if (node->op == &op_of<Scan>()) within = reached_inputs(node->attrs.as<Scan>(), {first, end});
      for (std::size_t k = 0; k < node->in.size(); ++k)
        reached[node->in[k]] |= within[k] && is_differentiable(p.values[node->in[k]].dtype);
    }
  }
  return reached;
}

}  // namespace

void Scan::vjp(Vjp& v) const {
  REEL_ASSERT(signature().save_carries);
  const Program& p = loop().body;
  const std::int64_t length = signature().length;
  const bool reverse = signature().reverse;
  const int n = signature().carries, ys = loop().ys(), xs = loop().xs(), first_const = p.inputs;
  const auto slice = [&](const Tensor& all, bool before) {  // [T + 1, ...] -> [T, ...]: before or after each step
    const std::int64_t first = before == reverse ? 1 : 0;
    return primitive::slice_leading(all, first, first + length);
  };
  const std::int64_t end = reverse ? 0 : length;  // the index in a carry's values of the last one

  // The inputs: states before each step, xs, residuals of the forward loop, and the gradients of states and ys.
  Tensors stacked;
  const auto add = [&](const Tensor& all) {
    stacked.push_back(all);
    return static_cast<int>(stacked.size()) - 1;
  };
  std::vector<int> state_in(n), x_in, dstate_in(n, -1), dy_in(ys, -1);
  std::map<int, int> ready;  // forward id -> index of its residual in `stacked`
  std::vector<char> given;   // by output: has it a gradient?
  for (std::size_t i = 0; i < static_cast<std::size_t>(outputs()); ++i) given.push_back(v.dy(i).defined());
  const std::vector<char> reached = reached_inputs(*this, given);
  std::vector<int> carried;  // the states that have gradients
  for (int i = 0; i < n; ++i) {
    const Tensor& all = v.out((n + ys + i));
    state_in[i] = add(slice(all, true));
    if (p.producer(p.outputs[i]) >= 0) ready.emplace(p.outputs[i], add(slice(all, false)));
    if (!reached[i] || !is_differentiable(all.dtype())) continue;
    carried.push_back(i);
    if (const Tensor& d = v.dy((n + ys + i)); d.defined()) dstate_in[i] = add(slice(d, true));
  }
  for (int j = 0; j < xs; ++j) x_in.push_back(add(v.in((n + j))));
  for (int j = 0; j < ys; ++j) {
    const int id = p.outputs[n + j];
    if (p.producer(id) >= 0 && !ready.contains(id)) ready.emplace(id, add(v.out((n + j))));
    if (const Tensor& d = v.dy((n + j)); d.defined()) dy_in[j] = add(d);
  }

  // The xs and consts that need gradients.
  std::vector<int> wanted_xs, wanted_consts;
  for (int j = 0; j < xs; ++j)
    if (v.needs((n + j)) && reached[n + j]) wanted_xs.push_back(j);
  for (int k = 0; k < p.consts; ++k)
    if (v.needs((first_const + k)) && reached[first_const + k]) wanted_consts.push_back(k);

  Tensors dlast, consts;
  for (int i : carried) {
    Tensor d = v.dy(i);
    if (const Tensor& all = v.dy((n + ys + i)); all.defined())
      d = d.defined() ? primitive::add(d, primitive::at(all, end)) : primitive::at(all, end);
    if (!d.defined()) d = Tensor::zeros(v.spec(i).shape, v.spec(i).dtype, *v.spec(i).backend);
    dlast.push_back(d);
  }
  for (int k = 0; k < p.consts; ++k) consts.push_back(v.in((first_const + k)));

  // The step of the gradient: states' gradients and the sums for consts are carries, gradients of xs are outputs.
  const auto step = [&](const Tensors& all) {
    const std::size_t first_step = carried.size() + wanted_consts.size();
    const auto step_of = [&](int i) -> const Tensor& { return all[first_step + static_cast<std::size_t>(i)]; };
    Tensors value(p.values.size());
    for (int i = 0; i < n; ++i) value[i] = step_of(state_in[i]);
    for (int j = 0; j < xs; ++j) value[n + j] = step_of(x_in[j]);
    std::copy(all.end() - p.consts, all.end(), value.begin() + first_const);
    for (const Program::Node& node : p.nodes) {
      bool known = true;
      for (int s = node.out; s < node.out + node.num_outputs; ++s) known = known && ready.contains(s);
      if (!known) {
        apply_node(node, value);
        continue;
      }
      std::vector<const Tensor*> arguments;
      for (int s : node.in) arguments.push_back(&value[s]);
      for (int s = node.out; s < node.out + node.num_outputs; ++s) value[s] = step_of(ready.at(s));
      Tape::current()->record(*node.op, node.attrs, arguments,
                              {&value[node.out], static_cast<std::size_t>(node.num_outputs)}, node.where, true);
    }

    Tensors outputs, wrt;
    GradOptions options{.create_graph = true};  // a gradient of this loop may follow
    for (std::size_t k = 0; k < carried.size(); ++k) {
      outputs.push_back(value[p.outputs[carried[k]]]);
      options.cotangents.push_back(all[k]);
      wrt.push_back(value[carried[k]]);
    }
    for (int j = 0; j < ys; ++j) {
      if (dy_in[j] < 0) continue;
      outputs.push_back(value[p.outputs[n + j]]);
      options.cotangents.push_back(step_of(dy_in[j]));
    }
    for (int k : wanted_consts) wrt.push_back(value[first_const + k]);
    for (int j : wanted_xs) wrt.push_back(value[n + j]);
    Tensors gradients = grad(outputs, wrt, options);
    for (std::size_t k = 0; k < carried.size(); ++k) {
      const int d = dstate_in[carried[k]];
      if (d >= 0) gradients[k] = primitive::add(gradients[k], step_of(d));
    }
    for (std::size_t k = carried.size(); k < first_step; ++k) gradients[k] = primitive::add(all[k], gradients[k]);
    return gradients;
  };

  const bool save = Tape::current() != nullptr;
  std::string key = save ? "twice" : "once";  // what is asked for and what is given; a cotangent is what a user gives
  for (std::size_t i = 0; i < static_cast<std::size_t>(outputs()); ++i)
    key += v.dy(i).defined() ? v.dy(i).spec().str() : "-";
  for (std::size_t i = 0; i < v.inputs(); ++i) key += v.needs(i) ? '+' : '-';
  PlanPtr gradient = plan->gradient(key);
  if (!gradient) {
    std::vector<Spec> specs, const_specs(p.values.begin() + first_const, p.values.begin() + first_const + p.consts);
    for (const Tensor& d : dlast) specs.push_back(d.spec());
    for (int k : wanted_consts) specs.push_back(const_specs[static_cast<std::size_t>(k)]);
    for (const Tensor& s : stacked) specs.push_back({s.dtype(), s.shape().erase(0), &s.backend()});
    const auto sums = static_cast<int>(wanted_consts.size());
    gradient = plan_of(trace_body(specs, const_specs, step),
                       {.carries = static_cast<int>(carried.size()) + sums,
                        .accumulators = sums,
                        .length = length,
                        .reverse = !reverse,
                        .save_carries = save,
                        .gradient = true},
                       plan->passes);
    plan->keep_gradient(key, gradient);
  }
  const Tensors results = run_plan(gradient, dlast, stacked, consts, v.where());

  auto result = results.begin();
  for (int i : carried) v.set(i, *result++);
  for (int k : wanted_consts) v.set((first_const + k), *result++);
  for (int j : wanted_xs) v.set((n + j), *result++);
}

}  // namespace reel
