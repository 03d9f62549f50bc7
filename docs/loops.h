// What chapters 3 to 5 share: a cell as a step, and what the passes made of the loops on a tape.
#pragma once
#include <memory>
#include <vector>

#include "docs/prelude.h"
#include "engine/scan/lower/fuse.h"

namespace book {

/// The bodies of the loops on a tape, in order: forward loops, then those of gradients.
inline std::vector<Program> loops_on(const Tape& tape) {
  std::vector<Program> found;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (tape.node(i).op == &op_of<Scan>()) found.push_back(tape.node(i).attrs.as<Scan>().loop().body);
  }
  return found;
}

/// The bodies of a step's loop and of its gradient's loop, after the passes that are on.
inline std::vector<Program> bodies(const Step& step, const Tensors& h0, const Tensors& xs, const Tensors& wrt, ScanPasses on) {
  Tape tape;
  const ScanResult r = scan(step, h0, xs, {.passes = on});
  grad({sum(r.ys[0])}, wrt, {.create_graph = true});  // so that the gradient's loop is on the tape, too
  return loops_on(tape);
}

/// Which ops' results the forward loop keeps for the gradient, besides its outputs.
inline std::string kept(const Program& body) {
  std::string names;
  for (int id : choose_residuals(body)) names += std::string(" ") + body.nodes[body.producer(id)].op->traits.name;
  return names;
}

/// The groups in which a body's ops run, a line each.
inline std::string groups(const Program& body, int carries) {
  std::string text;
  for (const FusionGroup& group : fuse(body, shard_batch(body, carries, 0), &backend())) {
    text += group.fused ? "fused:" : "alone:";
    for (int n : group.nodes) text += fmt::format(" {}", body.nodes[n].op->traits.name);
    text += "\n";
  }
  return text;
}

/// A cell of the registry as a step, and the tensors that it trains.
struct Model {
  std::shared_ptr<Cell> cell;
  Step step;
  Tensors weights;
  Model(const char* name, std::int64_t inputs, std::int64_t hidden, const std::map<std::string, std::string>& given = {}) {
    Init init(1, DType::f64);
    const CellType& type = cell_type(name);
    cell = type.make(inputs, hidden, Settings(name, type.settings, given), init);
    step = [cell = cell](const Tensors& state, const Tensors& x) -> Next {
      const Tensors next = cell->step(state, x[0]);
      return {next, next};
    };
    for (const Parameter& p : cell->parameters()) weights.push_back(p.value);
  }
};

}  // namespace book

using book::bodies, book::groups, book::kept, book::loops_on, book::Model;
