#include <fmt/ranges.h>

#include <numeric>

#include "tasks/explain/render.h"

namespace reel::explain {

namespace {

std::string row_text(const OpRow& row, const std::string& time, bool marked) {
  const std::string call = fmt::format("{} = {}({})", row.name, row.op, fmt::join(row.args, ", "));
  const std::string notes =
      std::string(row.kept ? " kept" : "") + (row.again && row.mark != Mark::dropped ? " again" : "");
  std::string line = fmt::format("{} {:<38} {:<18} {:>10} {:>8}{:>9}  {}{}", marked ? static_cast<char>(row.mark) : ' ',
                                 call, row.spec.str(), row.view ? "" : flops_text(row.cost.flops),
                                 row.view ? "" : bytes_text(row.cost.bytes), time, row.where, notes);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

/// The whole program, or only what a pass changed in it.
std::string program_text(const std::string& title, const ProgramRows& p, const std::vector<double>& seconds,
                         bool changes) {
  if (p.rows.empty()) return "";
  std::string out = fmt::format("{}\n  inputs {}\n", title, fmt::join(p.inputs, " "));
  if (!p.consts.empty()) out += fmt::format("  consts {}\n", fmt::join(p.consts, " "));
  int as_before = 0;
  const auto end_of_those = [&] {
    if (as_before > 0) out += fmt::format("  ... {} op{} as before\n", as_before, as_before == 1 ? "" : "s");
    as_before = 0;
  };
  for (const OpRow& row : p.rows) {
    const bool old = row.mark == Mark::same && !row.kept;
    if (changes && old) {
      ++as_before;
      continue;
    }
    if (!changes && row.mark == Mark::dropped) continue;
    end_of_those();
    const bool measured = row.node >= 0 && !row.view && static_cast<std::size_t>(row.node) < seconds.size();
    out += row_text(row, measured ? milliseconds_text(seconds[static_cast<std::size_t>(row.node)]) : "", changes);
  }
  end_of_those();
  return out + fmt::format("  outputs {}\n", fmt::join(p.outputs, " "));
}

std::string body_title(const Signature& s) {
  return fmt::format("body, {} steps{}", s.length, s.reverse ? " from the last to the first" : "");
}

std::string stage_text(const LoopReport& loop, const StageRows& stage, bool whole) {
  const bool first = stage.rule.empty();
  const std::string head = first ? "---- as traced" : fmt::format("---- {}: {}", stage.pass, stage.rule);
  if (!stage.changed && !whole) return head + ". Nothing to do\n";
  const bool changes = !whole && !first;
  return head + "\n" + program_text("prologue, once", stage.prologue, {}, changes) +
         program_text(body_title(loop.signature), stage.body, {}, changes) +
         program_text("epilogue, once", stage.epilogue, {}, changes);
}

/// All that runs in the end.
std::string final_text(const LoopReport& loop) {
  const StageRows& last = loop.stages.back();
  return "---- after all passes\n" + program_text("prologue, once", last.prologue, loop.prologue_seconds, false) +
         program_text(body_title(loop.signature), last.body, {}, false) +
         program_text("epilogue, once", last.epilogue, loop.epilogue_seconds, false);
}

std::string kept_text(const LoopReport& loop) {
  const auto T = static_cast<double>(loop.signature.length);
  std::string out;
  if (loop.signature.save_carries) {
    out += "kept for the gradient, besides inputs and weights\n";
    out += fmt::format("  {:<10} {:<16} {:>8} a step, {:>8} in all\n", "states", "", bytes_text(loop.states_bytes),
                       bytes_text(loop.states_bytes * (T + 1)));
    for (const KeptRow& k : loop.kept)
      out += fmt::format(
          "  {:<10} {:<16} {:>8} a step, {:>8} in all; keeping it costs {} additions, recomputing it {} in {} op{}\n",
          k.name, k.op, bytes_text(k.bytes), bytes_text(k.bytes * T), amount_text(k.save_price, ""),
          flops_text(k.again_flops), k.again_ops, k.again_ops == 1 ? "" : "s");
  }
  if (loop.again_ops > 0)
    out += fmt::format("computed again: {} op{} of the forward step, {} a step\n", loop.again_ops,
                       loop.again_ops == 1 ? "" : "s", flops_text(loop.again_flops));
  return out;
}

std::string groups_text(const LoopReport& loop) {
  std::string out = "groups of the body, in the order in which they run\n" + shards_text(loop) + "\n";
  for (std::size_t g = 0; g < loop.groups.size(); ++g) {
    const GroupRow& group = loop.groups[g];
    out += fmt::format("  {:>3} {} {:<56} {:>10} {:>8}", g + 1, group.fused ? "fused" : "alone", ops_text(group),
                       flops_text(group.flops), bytes_text(group.bytes));
    if (group.seconds >= 0) out += fmt::format(" {:>9}", milliseconds_text(group.seconds));
    out += "\n";
    if (group.fused) out += fmt::format("            {}\n", fmt::join(group.names, " "));
    for (std::size_t c = group.first_call; c < group.end_call && c < loop.calls.size(); ++c)
      out += fmt::format("            {} {}\n", loop.calls[c].kernel, loop.calls[c].sizes);
  }
  for (const CallRow& call : loop.calls) {
    if (call.group < 0) out += fmt::format("  end of the step: {} {}\n", call.kernel, call.sizes);
  }
  if (loop.setup_calls > 0) out += fmt::format("  before the first step: {} copies of rows\n", loop.setup_calls);
  return out;
}

std::string buffers_text(const LoopReport& loop) {
  if (loop.buffers.empty()) return "";
  std::string out = "buffers of the first shard's loop\n";
  for (const BufferRow& b : loop.buffers)
    out += fmt::format("  {:<10} {:<12} {:>8}  {}\n", b.kind, b.name, b.bytes < 0 ? "" : bytes_text(b.bytes), b.moves);
  return out;
}

std::string totals_text(const LoopReport& loop, const Rates& rates) {
  std::string out = "operations and memory traffic of the calls\n";
  for (const Total& t : totals(loop)) {
    out += fmt::format("  {:<22} {:>11} {:>9}", t.what, flops_text(t.once.flops * t.times),
                       bytes_text(t.once.bytes * t.times));
    if (t.seconds >= 0) out += fmt::format(" {:>9}", milliseconds_text(t.seconds));
    out += "\n";
  }
  const double bound = bound_seconds(loop, rates);
  out += fmt::format("  {:<22} {:>11}", "products in all", loop.products() > 0 ? flops_text(loop.products()) : "none");
  if (bound > 0) {
    out += fmt::format(", at {}/s {} at least", flops_text(rates.products), milliseconds_text(bound));
    if (loop.seconds() > 0) out += fmt::format(", {:.0f} % of what was measured", 100 * bound / loop.seconds());
  }
  return out + "\n";
}

}  // namespace

std::string ops_text(const GroupRow& group) {
  if (group.ops.size() <= 6) return fmt::format("{}", fmt::join(group.ops, " "));
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& op : group.ops) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](auto& c) { return c.first == op; });
    if (same == counts.end())
      counts.emplace_back(op, 1);
    else
      ++same->second;
  }
  std::string out;
  for (const auto& [op, n] : counts) out += (out.empty() ? "" : " ") + (n > 1 ? fmt::format("{} x {}", n, op) : op);
  return out;
}

std::string shards_text(const LoopReport& loop) {
  if (loop.shards.empty()) return "the loop did not run";
  if (loop.batch == 0) return "rows of the batch are not independent, so steps run one after the other on all rows";
  const auto [low, high] = std::minmax_element(loop.shards.begin(), loop.shards.end());
  const std::string rows = *low == *high ? fmt::format("{}", *low) : fmt::format("{} or {}", *low, *high);
  if (loop.batch == 1) return "the batch is one row";
  return fmt::format("the {} rows of the batch are {} shard{} of {} row{}", loop.batch, loop.shards.size(),
                     loop.shards.size() == 1 ? "" : "s", rows, *high == 1 ? "" : "s");
}

std::vector<Total> totals(const LoopReport& loop) {
  const auto T = static_cast<double>(loop.signature.length);
  const auto sum = [](const std::vector<double>& times) { return std::accumulate(times.begin(), times.end(), 0.0); };
  const bool measured = loop.body_seconds() >= 0;
  std::vector<Total> out;
  if (!loop.stages.back().prologue.rows.empty())
    out.push_back({"prologue", loop.prologue, 1, loop.prologue_products, measured ? sum(loop.prologue_seconds) : -1});
  out.push_back({"a step", loop.step, 1, loop.step_products, measured && T > 0 ? loop.body_seconds() / T : -1});
  out.push_back(
      {fmt::format("{} steps", loop.signature.length), loop.step, T, loop.step_products, loop.body_seconds()});
  if (!loop.stages.back().epilogue.rows.empty())
    out.push_back({"epilogue", loop.epilogue, 1, loop.epilogue_products, measured ? sum(loop.epilogue_seconds) : -1});
  out.push_back({"in all", loop.whole(), 1, loop.products(), loop.seconds()});
  return out;
}

double bound_seconds(const LoopReport& loop, const Rates& rates) {
  return rates.products > 0 ? loop.products() / rates.products : -1;
}

std::string text(const Explanation& e, const std::string& pass) {
  std::string out = e.title + "\n";
  for (const std::string& fact : e.facts) out += fact + "\n";
  for (const LoopReport& loop : e.loops) {
    out += fmt::format("\n==== {}\n", loop.title);
    for (std::size_t i = 0; i < loop.stages.size(); ++i) {
      const bool before = i + 1 < loop.stages.size() && loop.stages[i + 1].pass == pass;
      if (before) out += stage_text(loop, loop.stages[i], true);
      if (pass.empty() || loop.stages[i].pass == pass) out += stage_text(loop, loop.stages[i], false);
    }
    if (!pass.empty()) continue;
    out += final_text(loop);
    out += kept_text(loop) + groups_text(loop) + buffers_text(loop) + totals_text(loop, e.rates);
  }
  return out;
}

}  // namespace reel::explain
