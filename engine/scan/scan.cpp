#include "engine/scan/scan.h"

#include <algorithm>

#include "engine/autodiff/primitives.h"

namespace reel {

namespace {

std::int64_t checked_length(const Tensors& xs, const ScanOptions& options, const char* name, const Loc& where) {
  std::int64_t length = options.length;
  for (const Tensor& x : xs) {
    if (x.rank() == 0) fail(name, where, "every x needs a leading axis of time, got {}", x.spec().str());
    if (&x == &xs[0] && length == 0) length = x.dim(0);
    if (x.dim(0) != length) fail(name, where, "the number of time steps is {}, but an x is {}", length, x.spec().str());
  }
  if (xs.empty() && length <= 0) fail(name, where, "without xs, options.length must say how many steps to run");
  return length;
}

void check_state(const Tensors& before, const Tensors& after, const char* name, const Loc& where) {
  if (before.size() != after.size())
    fail(name, where, "the step must return as many states as it is given: {}, got {}", before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!(before[i].spec() == after[i].spec()))
      fail(name, where, "state {} must keep its dtype and shape: it is {}, and {} after the step", i,
           before[i].spec().str(), after[i].spec().str());
  }
}

}  // namespace

ScanResult scan(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options, Loc where) {
  const std::int64_t length = checked_length(xs, options, "scan", where);
  if (options.checkpoint_every < 0)
    fail("scan", where, "checkpoint_every is 0 or more steps, got {}", options.checkpoint_every);
  if (options.checkpoint_every > 0 && options.checkpoint_every < length)
    return segmented_scan(step, state, xs, options, length, where);
  std::vector<Spec> specs;
  for (const Tensor& s : state) specs.push_back(s.spec());
  for (const Tensor& x : xs) specs.push_back({x.dtype(), x.shape().erase(0), &x.backend()});
  Traced traced = trace(specs, [&](const Tensors& in) {
    const auto split = in.begin() + static_cast<std::ptrdiff_t>(state.size());
    Next next = step(Tensors(in.begin(), split), Tensors(split, in.end()));
    check_state(state, next.state, "scan", where);
    next.state.insert(next.state.end(), next.y.begin(), next.y.end());
    return next.state;
  });
  return run_scan(
      {std::move(traced.program), state, xs, std::move(traced.consts), length, options.reverse, options.passes, 0},
      where);
}

ScanResult run_scan(ScanCall call, const Loc& where) {
  if (call.passes.delay_gathers) delay_gathers(call);
  if (call.passes.hoist) hoist(call);
  dce(call);
  const bool save_carries = Tape::current() != nullptr;  // a gradient may follow, and needs the states
  const auto carries = static_cast<std::size_t>(call.carries());

  // Each value is output only once.
  const std::vector<int> wanted(call.body.outputs.begin() + call.carries(), call.body.outputs.end());
  call.body.outputs.resize(carries);
  auto place = [&](int id) {  // the index of a value among the outputs; appends it if it is none
    const auto first = call.body.outputs.begin() + call.carries();
    const auto found = std::find(first, call.body.outputs.end(), id);
    const auto at = static_cast<std::size_t>(found - call.body.outputs.begin());
    if (found == call.body.outputs.end()) call.body.outputs.push_back(id);
    return at;
  };
  std::vector<std::size_t> places;
  for (int id : wanted) places.push_back(place(id));
  if (save_carries && call.passes.rematerialize) {
    for (int id : choose_residuals(call.body)) place(id);
  }

  Scan op{std::make_shared<const Program>(std::move(call.body)),
          call.carries(),
          call.length,
          call.reverse,
          save_carries,
          call.passes,
          call.accumulators};
  Tensors in = call.carry;
  in.insert(in.end(), call.xs.begin(), call.xs.end());
  in.insert(in.end(), call.consts.begin(), call.consts.end());
  const Tensors out = apply_many(op_of<Scan>(), Attrs(op), pointers(in), where);

  ScanResult result;
  result.last.assign(out.begin(), out.begin() + call.carries());
  for (std::size_t p : places) result.ys.push_back(out[p]);
  return result;
}

ScanResult unroll(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options, Loc where) {
  const std::int64_t length = checked_length(xs, options, "unroll", where);
  if (length == 0) return scan(step, state, xs, options, where);  // traces the step for the shapes of the outputs
  ScanResult result{state, {}};
  std::vector<Tensors> ys;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t t = options.reverse ? length - 1 - i : i;
    Tensors x;
    for (const Tensor& all : xs) x.push_back(primitive::at(all, t));
    Next next = step(result.last, x);
    check_state(state, next.state, "unroll", where);
    result.last = std::move(next.state);
    ys.resize(next.y.size());
    for (std::size_t k = 0; k < next.y.size(); ++k) ys[k].push_back(next.y[k]);
  }
  for (Tensors& y : ys) {
    if (options.reverse) std::reverse(y.begin(), y.end());
    result.ys.push_back(primitive::stack(y));
  }
  return result;
}

void dce(ScanCall& call) {
  std::vector<char> used(call.body.values.size(), 0);
  for (const Program::Node& n : call.body.nodes) {
    for (int s : n.in) used[s] = 1;
  }
  for (int s : call.body.outputs) used[s] = 1;
  const auto carries = static_cast<std::size_t>(call.carries());
  std::vector<Spec> specs(call.body.values.begin(), call.body.values.begin() + call.carries());
  std::vector<std::size_t> kept;
  Tensors xs;
  for (std::size_t j = 0; j < call.xs.size(); ++j) {
    if (!used[carries + j]) continue;
    kept.push_back(carries + j);
    specs.push_back(call.body.values[carries + j]);
    xs.push_back(call.xs[j]);
  }
  if (xs.size() == call.xs.size()) return;
  Traced t = trace(specs, [&](const Tensors& in) {
    Tensors all(in.begin(), in.begin() + call.carries());
    all.resize(static_cast<std::size_t>(call.body.inputs));
    for (std::size_t k = 0; k < kept.size(); ++k) all[kept[k]] = in[carries + k];
    return eval(call.body, all, call.consts);
  });
  call.body = std::move(t.program);
  call.consts = std::move(t.consts);
  call.xs = std::move(xs);
}

REEL_OP(Scan)

}  // namespace reel
