#include "engine/loop_plan.h"

#include <algorithm>

#include "engine/primitives.h"

namespace reel {

namespace {

/// By slot: read outside of the stage that makes it, or made by a call of its own.
std::vector<char> placed_slots(const Program& body, const std::vector<Stage>& stages) {
  std::vector<char> placed(body.slots.size(), 0);
  std::vector<std::size_t> stage_of(body.nodes.size());
  for (std::size_t g = 0; g < stages.size(); ++g) {
    for (int n : stages[g].nodes) stage_of[ix(n)] = g;
  }
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    if (!stages[stage_of[i]].fused) std::fill_n(placed.begin() + node.out, node.outs, 1);
    for (int s : node.in) {
      const int maker = body.maker(s);
      if (maker >= 0 && stage_of[ix(maker)] != stage_of[i]) placed[ix(s)] = 1;
    }
  }
  for (int s : body.outputs) placed[ix(s)] = 1;
  return placed;
}

constexpr std::int64_t worth_preparing = 4;  // steps

/// How many parts to make of the rows: one a thread, or more when what a thread works on in a step would not stay in
/// its cache. But rows taken together share the reading of weights, so large weights forbid it.
int parts_of(const LoopPlan& plan) {
  constexpr std::int64_t cache = std::int64_t{1} << 19, small = std::int64_t{1} << 19;  // bytes
  const Program& body = plan.body;
  const auto bytes = [&](int slot) {
    const Spec& s = body.slots[ix(slot)];
    return s.shape.numel() * static_cast<std::int64_t>(size_of(s.dtype));
  };
  std::int64_t weights = 0, work = 0;
  for (int s = 0; s < std::ssize(body.slots); ++s) {
    if (plan.rows.share[ix(s)] == Share::rows)
      work += s < body.inputs || plan.placed[ix(s)] ? bytes(s) : 0;
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

LoopPlan::LoopPlan(const Scan& scan, Inputs in, std::span<Tensor> out)
    : scan(scan),
      body(*scan.body),
      in(in),
      out(out),
      rows(scan.passes.rows && in[0].backend().runs_in_blocks()
               ? plan_rows(body, scan.carries, scan.keep ? 0 : scan.sums)
               : RowPlan::none(body)),
      stages(schedule(body, rows, scan.passes.fuse ? &in[0].backend() : nullptr)),
      replaced(body.nodes.size()),
      placed(placed_slots(body, stages)) {
  const Pause pause;  // what is made here is nobody's to differentiate
  if (rows.rows > 0) parts = parts_of(*this);
  for (int i = 0; i < scan.carries; ++i) {
    Spec spec = body.slots[ix(i)];
    spec.shape = spec.shape.insert(0, 2);
    if (is_partial(i)) spec.shape = spec.shape.insert(0, parts);
    states.push_back(scan.keep ? out[ix(scan.carries + scan.ys() + i)] : Tensor::empty(spec));
  }
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const Program::Node& node = body.nodes[i];
    attrs.push_back(node.attrs);
    if (!node.op->prepare || scan.length < worth_preparing) continue;
    Varying constant;
    Tensors values = body.stand_ins(node);
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      if (!body.is_capture(node.in[k])) continue;
      constant.set(k);
      values[k] = in[ix(node.in[k])];
    }
    node.op->prepare(node.attrs, pointers(values), constant, attrs[i], replaced[i]);
  }
}

void LoopPlan::finish() {
  const Pause pause;
  for (int i = 0; i < scan.carries; ++i) {
    if (!is_partial(i)) continue;
    Tensor total = states[ix(i)].at(0).at(scan.length % 2);
    for (int p = 1; p < parts; ++p) total = primitive::add(total, states[ix(i)].at(p).at(scan.length % 2));
    out[ix(i)].assign(total);
  }
}

}  // namespace reel
