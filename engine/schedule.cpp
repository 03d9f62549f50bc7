#include "engine/schedule.h"

#include <algorithm>

namespace reel {

std::optional<Strides> fused_steps(const Shape& operand, const Shape& run) {
  const int missing = run.rank() - operand.rank();
  bool full = missing == 0, flat = true;  // along the rows: as the run, or 1 throughout
  for (int i = 0; i + 1 < operand.rank(); ++i) {
    full = full && operand[i] == run[i + missing];
    flat = flat && operand[i] == 1;
  }
  if (!full && !flat) return std::nullopt;
  const std::int64_t columns = run.rank() > 0 ? run[run.rank() - 1] : 1;
  const bool wide = operand.rank() > 0 && operand[operand.rank() - 1] == columns;
  return Strides{full ? (wide ? columns : 1) : 0, wide ? 1 : 0};
}

namespace {

/// Can the node be a part of a fused run of the shape of its result? Arguments of all but zip are full.
bool fusable(Backend& backend, const Program& body, const Program::Node& node) {
  if (!node.op->fuse) return false;
  const Shape& run = body.slots[ix(node.out)].shape;
  const std::optional<FusedCall> call = node.op->fuse(node.attrs, pointers(body.stand_ins(node)));
  if (!call || !backend.fuses(*call)) return false;
  const bool zip = call->kind == FusedCall::Kind::zip;
  return std::all_of(node.in.begin(), node.in.end(), [&](int s) {
    const Shape& shape = body.slots[ix(s)].shape;
    return shape == run || (zip && fused_steps(shape, run));
  });
}

}  // namespace

std::vector<Stage> schedule(const Program& body, const RowPlan& rows, Backend* fuse) {
  std::vector<Stage> stages;
  const int n = static_cast<int>(body.nodes.size());
  std::vector<char> done(body.slots.size(), 0), placed(ix(n), 0), may(ix(n), 0);
  std::fill(done.begin(), done.begin() + body.inputs + body.captures, 1);
  for (int i = 0; i < n; ++i) may[ix(i)] = fuse && fusable(*fuse, body, body.nodes[ix(i)]);
  const auto ready = [&](int i) {
    const std::vector<int>& in = body.nodes[ix(i)].in;
    return !placed[ix(i)] && std::all_of(in.begin(), in.end(), [&](int s) { return done[ix(s)] != 0; });
  };
  const auto place = [&](int i, Stage& stage) {
    const Program::Node& node = body.nodes[ix(i)];
    stage.nodes.push_back(i);
    placed[ix(i)] = 1;
    std::fill(done.begin() + node.out, done.begin() + node.out + node.outs, 1);
  };
  for (int left = n; left > 0;) {
    // All that run by themselves come first.
    for (int i = 0; i < n; ++i) {
      if (may[ix(i)] || !ready(i)) continue;
      place(i, stages.emplace_back());
      --left;
    }
    // Then the elementwise ones that can run, of one shape in each thread.
    Stage run{{}, true};
    int first = -1;
    const auto alike = [&](int a, int b) {
      return body.slots[ix(a)].shape == body.slots[ix(b)].shape &&
             (rows.share[ix(a)] == Share::rows) == (rows.share[ix(b)] == Share::rows);
    };
    for (int i = 0; i < n; ++i) {
      if (!may[ix(i)] || !ready(i)) continue;
      const int out = body.nodes[ix(i)].out;
      if (first >= 0 && !alike(first, out)) continue;
      first = out;
      place(i, run);
      --left;
    }
    if (!run.nodes.empty()) stages.push_back(std::move(run));
  }
  return stages;
}

}  // namespace reel
