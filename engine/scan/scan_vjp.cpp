// The gradient of a scan is a scan in the other direction. Its carries are the gradients of the states; its body is the
// vjp of the forward body, traced on an ordinary symbolic tape. Values that the forward loop saved (states and other
// residuals) are inputs. The body recomputes the others, which for elementwise ops is cheaper than loading them.
#include <algorithm>
#include <map>

#include "engine/autodiff/primitives.h"
#include "engine/scan/scan.h"

namespace reel {

namespace {

Plan::Gradient reach(const Scan& scan, std::span<const char> outputs);

/// By input of a call: does the gradient of output `of` reach it? The op's vjp says so, given shapes only: that of
/// floor sets no gradient.
std::vector<char> reach(const Program& p, const Program::Node& node, int of) {
  const Tape tape(Tape::Mode::symbolic);
  const Tensors ins = p.abstract_inputs(node);
  Tensors outs, dy, dx(ins.size());
  std::vector<char> reached, given;
  for (const Tensor& t : ins) reached.push_back(is_differentiable(t.dtype()));
  for (int s : node.outputs()) {
    given.push_back(s == of);
    outs.push_back(Tensor::abstract(p.values[s]));
    dy.push_back(s == of ? outs.back() : Tensor());
  }
  if (node.op == &op_of<Scan>()) return reach(node.attrs.as<Scan>(), given).inputs;
  if (!node.op->vjp) return reached;  // that is an error once it is traced
  Vjp v(*node.op, node.where, ins, outs, {}, dy, reached, dx);
  pull_back(*node.op, node.attrs, v, node.where);
  for (std::size_t k = 0; k < ins.size(); ++k) reached[k] = reached[k] && dx[k].defined();
  return reached;
}

/// What the gradient of the marked outputs of a loop reaches, step by step, until nothing changes. What it does not
/// reach has no gradient, rather than one of zeros: zero times an infinite derivative is NaN.
Plan::Gradient reach(const Scan& scan, std::span<const char> outputs) {
  const Program& p = scan.loop().body;
  const int n = scan.signature().carries, results = static_cast<int>(p.outputs.size());
  const std::span<const char> last = outputs.first(n), all = outputs.subspan(results);  // of the states
  Plan::Gradient out{nullptr, std::vector<char>(p.inputs + p.consts, 0), {last.begin(), last.end()}};
  for (int i = 0; i < n; ++i) out.carries[i] |= all[i];
  std::vector<char> state = out.carries, before;
  std::vector<std::vector<char>> through(p.values.size());  // by id of a node's output
  for (std::int64_t t = 0; t < scan.signature().length && (t == 0 || state != before); ++t) {
    before = state;
    std::vector<char> marked(p.values.size(), 0);
    for (int i = 0; i < results; ++i) marked[p.outputs[i]] |= i < n ? state[i] : outputs[i];
    for (auto node = p.nodes.rbegin(); node != p.nodes.rend(); ++node) {
      for (int s : node->outputs()) {
        if (marked[s] && through[s].empty()) through[s] = reach(p, *node, s);
        for (std::size_t k = 0; k < node->in.size(); ++k) marked[node->in[k]] |= marked[s] && through[s][k];
      }
    }
    for (std::size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i] |= marked[i];
    for (int i = 0; i < n; ++i) out.carries[i] |= state[i] = marked[i] | all[i];
  }
  std::copy(state.begin(), state.end(), out.inputs.begin());
  return out;
}

}  // namespace

void Scan::vjp(Vjp& v) const {
  REEL_ASSERT(signature().save_carries);
  const Program& p = loop().body;
  const std::int64_t length = signature().length;
  const bool reverse = signature().reverse;
  const int n = signature().carries, ys = loop().ys(), xs = loop().xs(), first_const = p.inputs;
  const auto slice = [&](const Tensor& all, bool before) {  // [T + 1, ...] -> [T, ...]: before or after each step
    return primitive::slice_leading(all, before == reverse, (before == reverse) + length);
  };
  const std::int64_t end = reverse ? 0 : length;  // the index in a carry's values of the last one

  const bool save = Tape::current() != nullptr;
  std::string key = save ? "twice" : "once";  // what is asked for and what is given; a cotangent is what a user gives
  std::vector<char> given;                    // by output: has it a gradient?
  for (std::size_t i = 0; i < static_cast<std::size_t>(outputs()); ++i) {
    given.push_back(v.dy(i).defined());
    key += given[i] ? v.dy(i).spec().str() : "-";
  }
  for (std::size_t i = 0; i < v.inputs(); ++i) key += v.needs(i) ? '+' : '-';
  Plan::Gradient gradient = plan->gradient(key);
  if (!gradient.plan) gradient = reach(*this, given);

  // The inputs: states before each step, xs, residuals of the forward loop, and the gradients of states and ys.
  Tensors stacked;
  const auto add = [&](const Tensor& all) {
    stacked.push_back(all);
    return static_cast<int>(stacked.size()) - 1;
  };
  std::vector<int> state_in(n), x_in, dstate_in(n, -1), dy_in(ys, -1);
  std::map<int, int> ready;  // forward id -> index of its residual in `stacked`
  std::vector<int> carried;  // the states that have gradients
  for (int i = 0; i < n; ++i) {
    const Tensor& all = v.out(n + ys + i);
    state_in[i] = add(slice(all, true));
    if (p.producer(p.outputs[i]) >= 0) ready.emplace(p.outputs[i], add(slice(all, false)));
    if (!gradient.carries[i]) continue;
    carried.push_back(i);
    if (const Tensor& d = v.dy(n + ys + i); d.defined()) dstate_in[i] = add(slice(d, true));
  }
  for (int j = 0; j < xs; ++j) x_in.push_back(add(v.in(n + j)));
  for (int j = 0; j < ys; ++j) {
    const int id = p.outputs[n + j];
    if (p.producer(id) >= 0 && !ready.contains(id)) ready.emplace(id, add(v.out(n + j)));
    if (const Tensor& d = v.dy(n + j); d.defined()) dy_in[j] = add(d);
  }

  // The xs and consts that need gradients.
  std::vector<int> wanted_xs, wanted_consts;
  for (int s = n; s < first_const + p.consts; ++s)
    if (v.needs(s) && gradient.inputs[s]) (s < first_const ? wanted_xs : wanted_consts).push_back(s);

  Tensors dlast, consts;
  for (int i : carried) {
    Tensor d = v.dy(i);
    if (const Tensor& all = v.dy(n + ys + i); all.defined())
      d = d.defined() ? primitive::add(d, primitive::at(all, end)) : primitive::at(all, end);
    if (!d.defined()) d = Tensor::zeros(v.spec(i).shape, v.spec(i).dtype, *v.spec(i).backend);
    dlast.push_back(d);
  }
  for (int k = 0; k < p.consts; ++k) consts.push_back(v.in(first_const + k));

  // The step of the gradient: states' gradients and the sums for consts are carries, gradients of xs are outputs.
  const auto step = [&](const Tensors& all) {
    const std::size_t first_step = carried.size() + wanted_consts.size();
    const auto step_of = [&](int i) -> const Tensor& { return all[first_step + static_cast<std::size_t>(i)]; };
    Tensors value(p.values.size());
    for (int i = 0; i < n; ++i) value[i] = step_of(state_in[i]);
    for (int j = 0; j < xs; ++j) value[n + j] = step_of(x_in[j]);
    std::copy(all.end() - p.consts, all.end(), value.begin() + first_const);
    for (const Program::Node& node : p.nodes) {
      if (!std::ranges::all_of(node.outputs(), [&](int s) { return ready.contains(s); })) {
        apply_node(node, value);
        continue;
      }
      std::vector<const Tensor*> arguments;
      for (int s : node.in) arguments.push_back(&value[s]);
      for (int s : node.outputs()) value[s] = step_of(ready.at(s));
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
    for (int s : wanted_consts) wrt.push_back(value[s]);
    for (int s : wanted_xs) wrt.push_back(value[s]);
    Tensors gradients = grad(outputs, wrt, options);
    for (std::size_t k = 0; k < carried.size(); ++k)
      if (const int d = dstate_in[carried[k]]; d >= 0) gradients[k] = primitive::add(gradients[k], step_of(d));
    for (std::size_t k = carried.size(); k < first_step; ++k) gradients[k] = primitive::add(all[k], gradients[k]);
    return gradients;
  };

  if (!gradient.plan) {
    std::vector<Spec> specs, const_specs(p.values.begin() + first_const, p.values.begin() + first_const + p.consts);
    for (const Tensor& d : dlast) specs.push_back(d.spec());
    for (int s : wanted_consts) specs.push_back(p.values[s]);
    for (const Tensor& s : stacked) specs.push_back({s.dtype(), s.shape().erase(0), &s.backend()});
    const auto sums = static_cast<int>(wanted_consts.size());
    gradient.plan = plan_of(trace_body(specs, const_specs, step),
                            {.carries = static_cast<int>(carried.size()) + sums,
                             .accumulators = sums,
                             .length = length,
                             .reverse = !reverse,
                             .save_carries = save,
                             .gradient = true},
                            plan->passes);
    plan->keep_gradient(key, gradient);
  }
  const Tensors results = run_plan(gradient.plan, dlast, stacked, consts, v.where());

  auto result = results.begin();
  for (int i : carried) v.set(i, gradient.inputs[i] ? *result : Tensor()), ++result;
  for (int s : wanted_consts) v.set(s, *result++);
  for (int s : wanted_xs) v.set(s, *result++);
}

}  // namespace reel
