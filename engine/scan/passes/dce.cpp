// Dead code elimination: drops ys, xs, consts and passed values that nothing reads, and with them the nodes behind
// them. A value that the body returns twice is returned once.
#include <algorithm>
#include <numeric>

#include "engine/scan/passes/passes.h"

namespace reel {

namespace {

/// By id: is it an output, or does an output depend on it? The first `inputs` inputs count as needed.
std::vector<char> needed(const Program& p, int inputs) {
  std::vector<char> marks(p.values.size(), 0);
  std::fill_n(marks.begin(), inputs, 1);
  for (int s : p.outputs) marks[s] = 1;
  mark_ancestors(p, marks);
  return marks;
}

void drop_unmarked(Traced& t, const std::vector<char>& marks) {
  Tensors consts;
  for (std::size_t k = 0; k < t.consts.size(); ++k)
    if (marks[static_cast<std::size_t>(t.program.inputs) + k]) consts.push_back(t.consts[k]);
  t.program = subset(t.program, marks);
  t.consts = std::move(consts);
}

}  // namespace

Loop dce(Loop loop, const ScanPasses&) {
  Program &before = loop.prologue.program, &body = loop.body, &after = loop.epilogue.program;
  const int carries = loop.signature.carries, xs = loop.xs(), passed = loop.passed(), first_y = carries + passed,
            ys = after.inputs - first_y;  // first_y: among the epilogue's inputs

  std::vector<int> same(after.values.size());
  std::iota(same.begin(), same.end(), 0);
  const auto y = body.outputs.begin() + carries;
  for (int j = 0; j < ys; ++j) same[first_y + j] = first_y + static_cast<int>(std::find(y, y + j, y[j]) - y);
  for (Program::Node& node : after.nodes)
    for (int& s : node.in) s = same[s];
  for (int& s : after.outputs) s = same[s];

  // From the end to the beginning: what the epilogue needs, then the body, then the prologue.
  const std::vector<char> in_after = needed(after, carries);
  std::vector<int> outputs(body.outputs.begin(), y);
  for (int j = 0; j < ys; ++j)
    if (in_after[first_y + j]) outputs.push_back(y[j]);
  body.outputs = std::move(outputs);
  const std::vector<char> in_body = needed(body, carries);
  std::vector<int> results;
  for (int k = 0; k < xs + body.consts; ++k)
    if (in_body[carries + k]) results.push_back(before.outputs[k]);
  for (int k = 0; k < passed; ++k)
    if (in_after[carries + k]) results.push_back(before.outputs[xs + body.consts + k]);
  before.outputs = std::move(results);

  drop_unmarked(loop.prologue, needed(before, before.inputs));
  body = subset(body, in_body);
  drop_unmarked(loop.epilogue, in_after);
  return loop;
}

}  // namespace reel
