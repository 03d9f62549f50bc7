#include "engine/scan/scan.h"

#include "engine/autodiff/primitives.h"

namespace reel {

namespace {

void check_defined(const Tensors& list, const char* what, const char* name, const Loc& where) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!list[i].defined()) fail(name, where, "{} {} is an undefined tensor", what, i);
}

std::int64_t checked_length(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options,
                            const char* name, const Loc& where) {
  if (!step) fail(name, where, "the step is an empty function");
  check_defined(state, "state", name, where);
  check_defined(xs, "x", name, where);
  std::int64_t length = options.length;
  for (const Tensor& x : xs) {
    if (x.rank() == 0) fail(name, where, "every x needs a leading axis of time, got {}", x.spec().str());
    if (&x == &xs[0] && length == -1) length = x.dim(0);
    if (x.dim(0) != length) fail(name, where, "the number of time steps is {}, but an x is {}", length, x.spec().str());
  }
  if (length < 0) fail(name, where, "without xs, length must say how many steps to run");
  return length;
}

void check_next(const Tensors& before, const Next& next, const char* name, const Loc& where) {
  const Tensors& after = next.state;
  check_defined(after, "after the step, state", name, where);
  check_defined(next.y, "output", name, where);
  if (before.size() != after.size())
    fail(name, where, "the step must return as many states as it is given: {}, got {}", before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!(before[i].spec() == after[i].spec()))
      fail(name, where, "state {} must keep its dtype and shape: it is {}, and {} after the step", i,
           before[i].spec().str(), after[i].spec().str());
}

}  // namespace

ScanResult scan(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options, Loc where) {
  const std::int64_t length = checked_length(step, state, xs, options, "scan", where);
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
    check_next(state, next, "scan", where);
    next.state.insert(next.state.end(), next.y.begin(), next.y.end());
    return next.state;
  });
  if (traced.program.values.empty()) return {};  // a step that takes nothing and returns nothing
  const Signature signature{.carries = static_cast<int>(state.size()),
                            .length = length,
                            .reverse = options.reverse,
                            .save_carries = Tape::current() != nullptr};
  const Tensors consts = std::move(traced.consts);
  traced.consts.clear();
  const Tensors results = run_plan(plan_of(std::move(traced), signature, options.passes), state, xs, consts, where);
  const auto ys = results.begin() + signature.carries;
  return {{results.begin(), ys}, {ys, results.end()}};
}

ScanResult unroll(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options, Loc where) {
  const std::int64_t length = checked_length(step, state, xs, options, "unroll", where);
  if (length == 0) return scan(step, state, xs, options, where);  // traces the step for the shapes of the outputs
  ScanResult result{state, {}};
  std::vector<Tensors> ys;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t t = options.reverse ? length - 1 - i : i;
    Tensors x;
    for (const Tensor& all : xs) x.push_back(primitive::at(all, t));
    Next next = step(result.last, x);
    check_next(state, next, "unroll", where);
    result.last = std::move(next.state);
    if (i > 0 && next.y.size() != ys.size())
      fail("unroll", where, "each step returns as many outputs as the first: {}, got {}", ys.size(), next.y.size());
    ys.resize(next.y.size(), Tensors(static_cast<std::size_t>(length)));
    for (std::size_t k = 0; k < next.y.size(); ++k) ys[k][static_cast<std::size_t>(t)] = next.y[k];
  }
  for (const Tensors& y : ys) result.ys.push_back(primitive::stack(y));
  return result;
}

REEL_OP(Scan)

}  // namespace reel
