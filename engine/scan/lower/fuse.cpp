#include "engine/scan/lower/fuse.h"

#include <algorithm>
#include <set>

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
  const std::size_t n = body.nodes.size();
  std::vector<std::vector<int>> readers(n);  // by node: those that read its results
  std::vector<int> awaited(n, 0);            // by node: arguments that are still to come
  std::set<int> alone, elementwise;          // nodes that are ready; those that they make ready have larger indices
  const auto ready = [&](int i) { (fuse && fusable(*fuse, body, body.nodes[i]) ? elementwise : alone).insert(i); };
  for (int i = 0; i < static_cast<int>(n); ++i) {
    for (int s : body.nodes[i].in) {
      const int producer = body.producer(s);
      if (producer < 0) continue;
      readers[producer].push_back(i);
      ++awaited[i];
    }
    if (awaited[i] == 0) ready(i);
  }
  const auto place = [&](int i, FusionGroup& group) {
    group.nodes.push_back(i);
    for (int reader : readers[i])
      if (--awaited[reader] == 0) ready(reader);
  };
  const auto alike = [&](int a, int b) {  // have one shape, also as shards
    return body.values[a].shape == body.values[b].shape &&
           (rows.placement[a] == Placement::sharded) == (rows.placement[b] == Placement::sharded);
  };
  std::vector<FusionGroup> groups;
  while (!alone.empty() || !elementwise.empty()) {
    for (auto i = alone.begin(); i != alone.end(); i = alone.erase(i)) place(*i, groups.emplace_back());
    FusionGroup run{{}, true};
    for (auto i = elementwise.begin(); i != elementwise.end();) {
      const bool joins = run.nodes.empty() || alike(body.nodes[run.nodes[0]].out, body.nodes[*i].out);
      if (joins) place(*i, run);
      i = joins ? elementwise.erase(i) : std::next(i);
    }
    if (!run.nodes.empty()) groups.push_back(std::move(run));
  }
  return groups;
}

}  // namespace reel
