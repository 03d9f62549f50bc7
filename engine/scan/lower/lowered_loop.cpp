#include "engine/scan/lower/lowered_loop.h"

#include <algorithm>

#include "engine/autodiff/primitives.h"

namespace reel {

namespace {

/// By id: is the value read outside of its fusion group, or produced by a call that is not fused?
std::vector<char> placed_values(const Program& body, const std::vector<FusionGroup>& groups) {
  std::vector<char> placed(body.values.size(), 0);
  std::vector<std::size_t> stage_of(body.nodes.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (int n : groups[g].nodes) stage_of[n] = g;
  }
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    if (!groups[stage_of[i]].fused) std::fill_n(placed.begin() + node.out, node.num_outputs, 1);
    for (int s : node.in) {
      const int producer = body.producer(s);
      if (producer >= 0 && stage_of[producer] != stage_of[i]) placed[s] = 1;
    }
  }
  for (int s : body.outputs) placed[s] = 1;
  return placed;
}

constexpr std::int64_t worth_prepacking = 4;  // steps

/// The number of shards: one per thread, or more when a thread's working set of a step would not fit its cache. But
/// every shard reads the weights again, so with large weights there is one shard per thread.
int parts_of(const LoweredLoop& plan) {
  constexpr std::int64_t cache = std::int64_t{1} << 19, small = std::int64_t{1} << 19;  // bytes
  const Program& body = plan.body;
  const auto bytes = [&](int id) {
    const Spec& s = body.values[id];
    return s.shape.numel() * static_cast<std::int64_t>(size_of(s.dtype));
  };
  std::int64_t weights = 0, work = 0;
  for (int s = 0; s < std::ssize(body.values); ++s) {
    if (plan.rows.placement[s] == Placement::sharded)
      work += s < body.inputs || plan.placed[s] ? bytes(s) : 0;
    else
      weights += bytes(s);
  }
  const std::int64_t rows = plan.rows.rows, threads = plan.in[0].backend().threads();
  std::int64_t parts = std::min(threads, rows);
  if (weights <= small && work / parts > cache) {
    const std::int64_t height = std::max<std::int64_t>(1, cache / (work / rows));
    parts = (rows + height - 1) / height;
    parts = std::min(rows, (parts + threads - 1) / threads * threads);
  }
  return static_cast<int>(parts);
}

}  // namespace

Lowering::Lowering(const Plan& plan) {
  const Program& body = plan.loop.body;
  const Signature& s = plan.loop.signature;
  Backend& backend = *body.values[0].backend;
  rows = plan.passes.shard_batch && backend.runs_in_blocks()
             ? shard_batch(body, s.carries, s.save_carries ? 0 : s.accumulators)
             : ShardPlan::none(body);
  groups = fuse(body, rows, plan.passes.fuse ? &backend : nullptr);
  placed = placed_values(body, groups);
}

std::shared_ptr<const Lowering> Plan::lowering() const {
  const std::lock_guard lock(mutex_);
  if (!lowering_) lowering_ = std::make_shared<const Lowering>(*this);
  return lowering_;
}

LoweredLoop::LoweredLoop(const Scan& scan, Inputs in, std::span<Tensor> out)
    : scan(scan),
      body(*scan.body),
      in(in),
      out(out),
      lowering(scan.plan->lowering()),
      rows(lowering->rows),
      groups(lowering->groups),
      placed(lowering->placed),
      replaced(body.nodes.size()) {
  const NoGrad no_grad;
  if (rows.rows > 0) parts = parts_of(*this);
  for (int i = 0; i < scan.carries; ++i) {
    Spec spec = body.values[i];
    spec.shape = spec.shape.insert(0, 2);
    if (is_partial(i)) spec.shape = spec.shape.insert(0, parts);
    states.push_back(scan.save_carries ? out[scan.carries + scan.ys() + i] : Tensor::empty(spec));
  }
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    attrs.push_back(node.attrs);
    if (!node.op->prepack || scan.length < worth_prepacking) continue;
    Mapped constant;
    Tensors values = body.abstract_inputs(node);
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      if (!body.is_const(node.in[k])) continue;
      constant.set(k);
      values[k] = in[node.in[k]];
    }
    node.op->prepack(node.attrs, pointers(values), constant, attrs[i], replaced[i]);
  }
}

void LoweredLoop::finish() {
  const NoGrad no_grad;
  for (int i = 0; i < scan.carries; ++i) {
    if (!is_partial(i)) continue;
    Tensor total = states[i].at(0).at(scan.length % 2);
    for (int p = 1; p < parts; ++p) total = primitive::add(total, states[i].at(p).at(scan.length % 2));
    out[i].assign(total);
  }
}

}  // namespace reel
