#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tasks/explain/render.h"

namespace reel::explain {

namespace {

/// The colours of groups; a page has its own, by the class of the node.
constexpr const char* fills[] = {"#cfe3ff", "#d9f2d0", "#ffe3c2", "#f3d6f5",
                                 "#d0f0f0", "#f9d5d5", "#ece6c8", "#dcdcf7"};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

bool is_op(const OpRow& row) { return row.mark != Mark::dropped; }

/// The graph of one stage: a cluster for each program, an edge from each op to those that read its result.
class Graph {
 public:
  /// `runs`: the ops of the body have the colours of the groups in which they run; otherwise what moved is marked.
  Graph(const LoopReport& loop, const StageRows& stage, bool runs, std::string prefix)
      : prefix_(std::move(prefix)), marks_(!runs) {
    for (std::size_t g = 0; runs && g < loop.groups.size(); ++g) {
      for (const int n : loop.groups[g].nodes) group_[n] = static_cast<int>(g);
      fused_.push_back(loop.groups[g].fused);
    }
    const Signature& s = loop.signature;
    cluster("prologue", "prologue: once, before the loop", stage.prologue, 0);
    const std::size_t carries = static_cast<std::size_t>(stage.carries);
    cluster("body", fmt::format("body: {} steps{}", s.length, s.reverse ? ", from the last to the first" : ""),
            stage.body, carries);
    for (std::size_t i = 0; i < carries; ++i) {  // to the next step
      const std::string from = node("body", stage.body.outputs[i]), to = node("body", stage.body.inputs[i]);
      if (from != to) edges_ += fmt::format("  {} -> {} [class=carry style=dashed constraint=false]\n", from, to);
    }
    cluster("epilogue", "epilogue: once, after the loop", stage.epilogue, 0);
    stack(stage);
  }
  std::string text() const { return clusters_ + edges_; }

 private:
  std::string node(const std::string& program, const std::string& value) const {
    return quoted(prefix_ + program + value);
  }

  void cluster(const std::string& program, const std::string& title, const ProgramRows& p, std::size_t carries) {
    if (std::none_of(p.rows.begin(), p.rows.end(), is_op)) return;
    clusters_ += fmt::format("  subgraph {} {{\n    label={} class={} style=rounded color=\"#9aa4b1\"\n",
                             quoted("cluster_" + prefix_ + program), quoted(title), program);
    std::set<std::string> here;  // the values that have a node in this cluster
    for (std::size_t i = 0; i < carries; ++i) {
      const std::string& name = p.inputs[i];
      if (!here.insert(name).second) continue;
      clusters_ += fmt::format("    {} [label={} class=state shape=ellipse style=filled fillcolor=\"#eceff3\"]\n",
                               node(program, name), quoted(name));
    }
    for (const OpRow& row : p.rows) {
      if (is_op(row)) here.insert(row.name);
    }
    for (const OpRow& row : p.rows) {
      if (is_op(row)) op(program, row, here);
    }
    clusters_ += "  }\n";
    for (const OpRow& row : p.rows) {
      if (is_op(row)) home_[row.name] = program;
    }
  }

  /// The body below the prologue, the epilogue below the body.
  void stack(const StageRows& stage) {
    std::set<std::string> read;
    for (const OpRow& row : stage.prologue.rows) read.insert(row.args.begin(), row.args.end());
    for (const OpRow& row : stage.prologue.rows) {
      for (int i = 0; i < stage.carries && is_op(row) && !read.contains(row.name); ++i)
        below(node("prologue", row.name), node("body", stage.body.inputs[static_cast<std::size_t>(i)]));
    }
    if (stage.carries == 0 || !home_.contains(stage.body.outputs[0])) return;
    std::set<std::string> made;
    for (const OpRow& row : stage.epilogue.rows) {
      if (!is_op(row)) continue;
      if (std::none_of(row.args.begin(), row.args.end(), [&](const std::string& a) { return made.contains(a); }))
        below(node("body", stage.body.outputs[0]), node("epilogue", row.name));
      made.insert(row.name);
    }
  }
  void below(const std::string& upper, const std::string& lower) {
    edges_ += fmt::format("  {} -> {} [style=invis]\n", upper, lower);
  }

  void op(const std::string& program, const OpRow& row, const std::set<std::string>& here) {
    std::vector<std::string> besides;  // arguments that have no node: weights, inputs
    for (const std::string& arg : row.args) {
      const std::string value = arg.substr(0, arg.find('.', 1));  // "%7.1" is a result of %7
      const std::string& source = arg.starts_with("%") && !here.contains(arg) ? value : arg;
      if (here.contains(source)) {
        edges_ += fmt::format("  {} -> {}\n", node(program, source), node(program, row.name));
      } else if (home_.contains(source)) {
        edges_ += fmt::format("  {} -> {} [class=across color=\"#8a94a0\"]\n", node(home_.at(source), source),
                              node(program, row.name));
      } else {
        besides.push_back(arg);
      }
    }
    const auto group = program == "body" ? group_.find(row.node) : group_.end();
    const bool grouped = group != group_.end() && fused_[static_cast<std::size_t>(group->second)];
    const char* const fill = grouped ? fills[static_cast<std::size_t>(group->second) % std::size(fills)] : "white";
    std::string classes = "op";
    if (grouped) classes += fmt::format(" g{}", static_cast<std::size_t>(group->second) % std::size(fills));
    const bool moved = marks_ && row.mark == Mark::moved;
    if (moved) classes += " moved";
    if (marks_ && row.mark == Mark::added) classes += " added";
    if (row.kept) classes += " kept";
    if (row.again) classes += " again";
    const std::string label =
        fmt::format("{} {}{}{}", row.name, row.op, besides.empty() ? "" : "\\n", fmt::join(besides, ", "));
    clusters_ += fmt::format(
        "    {} [label=\"{}\" class=\"{}\" fillcolor=\"{}\" color=\"{}\" penwidth={} tooltip={} id={}]\n",
        node(program, row.name), label, classes, fill,
        moved      ? "#c77700"
        : row.kept ? "#b0222a"
                   : "#5b6673",
        moved || row.kept ? 2 : 1, quoted(row.spec.str() + ", " + row.where), quoted(prefix_ + program + row.name));
  }

  std::string prefix_, clusters_, edges_;
  bool marks_;
  std::map<int, int> group_;                 // by node of the body
  std::vector<char> fused_;                  // by group
  std::map<std::string, std::string> home_;  // by value: the program before that makes it
};

constexpr const char* head =
    "digraph step {\n"
    "  graph [fontname=\"DejaVu Sans\" fontsize=12 rankdir=TB nodesep=0.18 ranksep=0.32 bgcolor=transparent]\n"
    "  node [fontname=\"DejaVu Sans\" fontsize=11 shape=box style=\"rounded,filled\" height=0.32 "
    "margin=\"0.09,0.04\"]\n"
    "  edge [color=\"#5b6673\" arrowsize=0.6]\n";

}  // namespace

std::string dot(const LoopReport& loop, const StageRows& stage, bool runs) {
  return head + Graph(loop, stage, runs, loop.title + ":").text() + "}\n";
}

std::string dot(const Explanation& e) {
  std::string out = head;
  for (const LoopReport& loop : e.loops) {
    out += fmt::format("subgraph {} {{\n  label={} style=invis\n", quoted("cluster_" + loop.title), quoted(loop.title));
    out += Graph(loop, loop.stages.back(), true, loop.title + ":").text() + "}\n";
  }
  return out + "}\n";
}

}  // namespace reel::explain
