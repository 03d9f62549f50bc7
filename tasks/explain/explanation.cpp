#include "tasks/explain/explanation.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

namespace reel::explain {

namespace {

double bytes_of(const Spec& s) { return static_cast<double>(s.shape.numel()) * static_cast<double>(size_of(s.dtype)); }

bool is_product(const Program::Node& node) { return std::strcmp(node.op->traits.name, "matmul") == 0; }

Program::Cost total(const Program& p) {
  Program::Cost sum;
  for (const Program::Node& node : p.nodes) {
    const Program::Cost cost = p.cost(node);
    sum.flops += cost.flops;
    sum.bytes += cost.bytes;
  }
  return sum;
}

double products_of(const Program& p) {
  double sum = 0;
  for (const Program::Node& node : p.nodes) sum += is_product(node) ? p.cost(node).flops : 0;
  return sum;
}

/// The ops that must run for a value from what is there anyway: arguments, and what the body puts out.
void count_again(const Program& p, int id, std::set<int>& nodes) {
  const int n = p.producer(id);
  if (n < 0 || !nodes.insert(n).second) return;
  for (const int s : p.nodes[static_cast<std::size_t>(n)].in) {
    if (std::find(p.outputs.begin(), p.outputs.end(), s) == p.outputs.end()) count_again(p, s, nodes);
  }
}

/// What the forward loop puts out for the gradient alone: the last ys, which its epilogue does not take.
void add_kept(LoopReport& report, const Loop& loop) {
  const Program& p = loop.body;
  if (!loop.signature.save_carries) return;
  for (int i = 0; i < loop.signature.carries; ++i)
    report.states_bytes += bytes_of(p.values[static_cast<std::size_t>(p.outputs[static_cast<std::size_t>(i)])]);
  const CostModel costs = p.values.at(0).backend->costs();
  const int taken = loop.epilogue.program.inputs - loop.signature.carries - loop.passed();
  StageRows& last = report.stages.back();
  for (std::size_t i = static_cast<std::size_t>(loop.signature.carries + taken); i < p.outputs.size(); ++i) {
    const int id = p.outputs[i];
    const auto producer = static_cast<std::size_t>(p.producer(id));
    const Program::Node& node = p.nodes[producer];
    std::set<int> again;
    count_again(p, id, again);
    KeptRow row{.name = last.body.values[static_cast<std::size_t>(id)], .op = node.op->traits.name};
    row.bytes = bytes_of(p.values[static_cast<std::size_t>(id)]);
    row.save_price = row.bytes / 4 * (node.op->alias ? costs.save_view : costs.save);
    for (const int n : again) row.again_flops += p.cost(p.nodes[static_cast<std::size_t>(n)]).flops;
    row.again_ops = again.size();
    report.kept.push_back(row);
    for (OpRow& op : last.body.rows) op.kept = op.kept || op.node == static_cast<int>(producer);
  }
}

void add_groups(LoopReport& report, const WatchedLoop& watched) {
  const auto lowering = watched.plan->lowering();
  const Program& p = lowering->body;
  const ProgramRows& rows = report.stages.back().body;
  std::size_t call = 0;
  for (std::size_t g = 0; g < lowering->groups.size(); ++g) {
    const FusionGroup& group = lowering->groups[g];
    GroupRow row{.fused = group.fused, .nodes = group.nodes};
    std::set<int> touched;  // values that are in memory
    for (const int n : group.nodes) {
      const Program::Node& node = p.nodes[static_cast<std::size_t>(n)];
      row.names.push_back(rows.values[static_cast<std::size_t>(node.out)]);
      row.ops.emplace_back(node.op->traits.name);
      row.flops += p.cost(node).flops;
      row.product_flops += is_product(node) ? p.cost(node).flops : 0;
      for (const Program::Node& add : p.nodes)  // which its call does, too
        if (lowering->term_of[static_cast<std::size_t>(add.out)] == node.out) row.flops += p.cost(add).flops;
      if (node.op->alias) continue;
      const auto in_memory = [&](int s) { return p.producer(s) < 0 || lowering->placed[static_cast<std::size_t>(s)]; };
      std::copy_if(node.in.begin(), node.in.end(), std::inserter(touched, touched.end()), in_memory);
      for (int s = node.out; s < node.out + node.num_outputs; ++s) {
        if (in_memory(s)) touched.insert(s);
      }
    }
    for (const int s : touched) row.bytes += bytes_of(p.values[static_cast<std::size_t>(s)]);
    if (watched.lowered) {
      row.first_call = call;
      row.end_call = call = watched.lowered->ends[g];
    }
    if (!watched.times.groups.empty()) row.seconds = watched.times.groups[g];
    report.groups.push_back(row);
  }
}

BufferRow buffer_row(const LoopReport& report, const Loop& loop, const ShardLoop& shard, const LoopBuffer& b) {
  const Program& p = loop.body;
  const ProgramRows& rows = report.stages.back().body;
  const auto T = static_cast<double>(loop.signature.length);
  const auto index = static_cast<std::size_t>(b.index);
  using Kind = LoopBuffer::Kind;
  switch (b.kind) {
    case Kind::input: {
      const bool is_const = p.is_const(b.index);
      return {is_const ? "const" : "input", rows.values[index],
              bytes_of(p.values[index]) * (is_const || b.index < loop.signature.carries ? 1 : T), ""};
    }
    case Kind::output: {
      const auto id = static_cast<std::size_t>(p.outputs[index]);
      return {"output", rows.values[id], bytes_of(p.values[id]) * T, ""};
    }
    case Kind::state:
      return {"state", rows.values[index], bytes_of(p.values[index]) * (loop.signature.save_carries ? T + 1 : 2), ""};
    case Kind::prepacked: {
      const int id = p.nodes[index].in[static_cast<std::size_t>(b.argument)];
      return {"prepacked", rows.values[static_cast<std::size_t>(id)], -1, ""};
    }
    case Kind::scratch:
      break;
  }
  return {"scratch", "", static_cast<double>(shard.scratch), ""};
}

void add_calls(LoopReport& report, const WatchedLoop& watched) {
  report.shards = watched.shards;
  report.batch = watched.plan->lowering()->rows.rows;
  if (!watched.lowered) return;
  const ShardLoop& shard = *watched.lowered;
  for (const LoopBuffer& b : shard.buffers) report.buffers.push_back(buffer_row(report, watched.plan->loop, shard, b));
  for (std::size_t c = 0; c < shard.loop.calls.size(); ++c) {
    const LoopCall& call = shard.loop.calls[c];
    const auto group = std::upper_bound(shard.ends.begin(), shard.ends.end(), c) - shard.ends.begin();
    report.calls.push_back(
        {call.kernel.name(), sizes_of(call.kernel), group < std::ssize(shard.ends) ? static_cast<int>(group) : -1});
    for (const Operand& o : call.operands) {
      if (o.buffer < 0) continue;
      std::string& moves = report.buffers[static_cast<std::size_t>(o.buffer)].moves;
      moves = o.double_buffered ? "alternates" : o.stride != 0 ? "a step further" : moves.empty() ? "stays" : moves;
    }
  }
  report.setup_calls = shard.loop.setup.size();
  for (BufferRow& b : report.buffers) {
    if (b.moves.empty()) b.moves = "stays";
  }
  if (!watched.times.groups.empty()) report.copies_seconds = watched.times.copies;
  report.prologue_seconds = watched.times.prologue;
  report.epilogue_seconds = watched.times.epilogue;
}

}  // namespace

Program::Cost LoopReport::whole() const {
  const auto T = static_cast<double>(signature.length);
  return {prologue.flops + T * step.flops + epilogue.flops, prologue.bytes + T * step.bytes + epilogue.bytes};
}

double LoopReport::products() const {
  return prologue_products + static_cast<double>(signature.length) * step_products + epilogue_products;
}

double LoopReport::body_seconds() const {
  if (copies_seconds < 0) return -1;
  return std::accumulate(groups.begin(), groups.end(), copies_seconds,
                         [](double sum, const GroupRow& g) { return sum + g.seconds; });
}

double LoopReport::seconds() const {
  const double body = body_seconds();
  if (body < 0) return -1;
  return std::accumulate(prologue_seconds.begin(), prologue_seconds.end(), 0.0) + body +
         std::accumulate(epilogue_seconds.begin(), epilogue_seconds.end(), 0.0);
}

Explanation explain_loops(const std::string& title, const std::vector<WatchedLoop>& loops, const ArgumentNames& names) {
  Explanation out;
  out.title = title;
  Namer namer;
  const auto gradient = [](const WatchedLoop& l) { return l.stages.front().loop.signature.gradient; };
  const auto forward_loops = std::count_if(loops.begin(), loops.end(), [&](auto& l) { return !gradient(l); });
  std::int64_t forward = 0, backward = 0;
  for (const WatchedLoop& watched : loops) {
    const Loop& loop = watched.plan->loop;
    ArgumentNames own = names;
    if (gradient(watched)) {
      for (std::string& name : own.carries) name = "d" + name;
    }
    LoopReport report;
    std::int64_t& number = gradient(watched) ? backward : forward;
    ++number;
    report.title = gradient(watched) ? "gradient" : "forward";
    if (forward_loops > 1) report.title += fmt::format(", loop {}", number);
    report.signature = loop.signature;
    report.stages = namer.stages(watched, own);
    report.prologue = total(loop.prologue.program);
    report.step = total(loop.body);
    report.epilogue = total(loop.epilogue.program);
    report.prologue_products = products_of(loop.prologue.program);
    report.step_products = products_of(loop.body);
    report.epilogue_products = products_of(loop.epilogue.program);
    add_kept(report, loop);
    for (const OpRow& op : report.stages.back().body.rows) {
      if (!op.again || op.mark == Mark::dropped) continue;
      ++report.again_ops;
      report.again_flops += op.cost.flops;
    }
    add_groups(report, watched);
    add_calls(report, watched);
    out.loops.push_back(std::move(report));
  }
  return out;
}

std::string flops_text(double flops) { return flops > 0 ? amount_text(flops, "flop") : ""; }
std::string bytes_text(double bytes) { return bytes > 0 ? amount_text(bytes, "B") : ""; }
std::string milliseconds_text(double seconds) {
  if (seconds < 0) return "";
  return seconds < 1e-4 ? fmt::format("{:.3g} us", 1e6 * seconds) : fmt::format("{:.3g} ms", 1e3 * seconds);
}

}  // namespace reel::explain
