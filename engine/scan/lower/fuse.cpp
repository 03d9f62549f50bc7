#include "engine/scan/lower/fuse.h"

#include <algorithm>

namespace reel {

std::optional<Strides> fused_steps(const Shape& operand, const Shape& run) {
  const int missing = run.rank() - operand.rank();
  bool full = missing == 0, flat = true;  // the row axes have the group's extents, or are all 1
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

/// Can the node join a fusion group of its result's shape? Only arguments of zip may be broadcast.
bool fusable(Backend& backend, const Program& body, const Program::Node& node) {
  if (!node.op->loop.fuse) return false;
  const Shape& run = body.values[node.out].shape;
  const std::optional<FusedCall> call = node.op->loop.fuse(node.attrs, pointers(body.abstract_inputs(node)));
  if (!call || !backend.fuses(*call)) return false;
  const bool zip = call->kind == FusedCall::Kind::zip;
  return std::all_of(node.in.begin(), node.in.end(), [&](int s) {
    const Shape& shape = body.values[s].shape;
    return shape == run || (zip && fused_steps(shape, run));
  });
}

}  // namespace

std::vector<FusionGroup> fuse(const Program& body, const ShardPlan& rows, Backend* fuse) {
  std::vector<FusionGroup> groups;
  const int n = static_cast<int>(body.nodes.size());
  std::vector<char> done(body.values.size(), 0), placed(n, 0), may(n, 0);
  std::fill(done.begin(), done.begin() + body.inputs + body.consts, 1);
  for (int i = 0; i < n; ++i) may[i] = fuse && fusable(*fuse, body, body.nodes[i]);
  const auto ready = [&](int i) {
    const std::vector<int>& in = body.nodes[i].in;
    return !placed[i] && std::all_of(in.begin(), in.end(), [&](int s) { return done[s] != 0; });
  };
  const auto place = [&](int i, FusionGroup& group) {
    const Program::Node& node = body.nodes[i];
    group.nodes.push_back(i);
    placed[i] = 1;
    std::fill(done.begin() + node.out, done.begin() + node.out + node.num_outputs, 1);
  };
  for (int left = n; left > 0;) {
    // First, all nodes that run alone and are ready.
    for (int i = 0; i < n; ++i) {
      if (may[i] || !ready(i)) continue;
      place(i, groups.emplace_back());
      --left;
    }
    // Then the elementwise nodes that are ready and have one shape, also as shards.
    FusionGroup run{{}, true};
    int first = -1;
    const auto alike = [&](int a, int b) {
      return body.values[a].shape == body.values[b].shape &&
             (rows.placement[a] == Placement::sharded) == (rows.placement[b] == Placement::sharded);
    };
    for (int i = 0; i < n; ++i) {
      if (!may[i] || !ready(i)) continue;
      const int out = body.nodes[i].out;
      if (first >= 0 && !alike(first, out)) continue;
      first = out;
      place(i, run);
      --left;
    }
    if (!run.nodes.empty()) groups.push_back(std::move(run));
  }
  return groups;
}

}  // namespace reel
