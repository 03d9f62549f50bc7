#include "engine/scan/loop.h"

#include <numeric>

namespace reel {

namespace {

/// A program that returns its inputs, then its consts.
Program identity(std::vector<Spec> values, std::size_t inputs) {
  Program p;
  p.inputs = static_cast<int>(inputs);
  p.consts = static_cast<int>(values.size() - inputs);
  p.outputs.resize(values.size());
  std::iota(p.outputs.begin(), p.outputs.end(), 0);
  p.values = std::move(values);
  return p;
}

}  // namespace

Loop Loop::of(Traced body, const Signature& signature) {
  const auto carries = static_cast<std::size_t>(signature.carries);
  const auto inputs = static_cast<std::size_t>(body.program.inputs);
  const auto own = body.consts.size();  // consts that the traced function made itself; the last ones
  std::vector<Spec> before, after;
  for (std::size_t s = carries; s < inputs; ++s) before.push_back(stacked(body.program.values[s], signature.length));
  const auto consts = body.program.values.begin() + body.program.inputs;
  before.insert(before.end(), consts, consts + body.program.consts);
  for (std::size_t i = 0; i < body.program.outputs.size(); ++i) {
    const Spec& spec = body.program.values[body.program.outputs[i]];
    after.push_back(i < carries ? spec : stacked(spec, signature.length));
  }
  const std::size_t given = before.size() - own;
  Loop loop;
  loop.signature = signature;
  loop.prologue = {identity(std::move(before), given), std::move(body.consts)};
  loop.body = std::move(body.program);
  loop.epilogue = {identity(after, after.size()), {}};
  return loop;
}

Traced then(const Traced& first, const Function& f) {
  const auto inputs = first.program.values.begin();
  return trace({inputs, inputs + first.program.inputs},
               [&](const Tensors& in) { return f(eval(first.program, in, first.consts)); });
}

Traced trace_body(const std::vector<Spec>& inputs, const std::vector<Spec>& consts, const Function& f) {
  std::vector<Spec> all = inputs;
  all.insert(all.end(), consts.begin(), consts.end());
  Traced traced = trace(all, f);
  traced.program.inputs = static_cast<int>(inputs.size());
  traced.program.consts += static_cast<int>(consts.size());
  return traced;
}

std::string Loop::str() const {
  const auto section = [](const std::string& title, const Program& p) {
    return p.nodes.empty() ? std::string() : title + "\n" + p.str(Program::Text::costs);
  };
  std::string text = section("prologue", prologue.program);
  text += fmt::format("body, {} steps{}\n{}", signature.length, signature.reverse ? " from the last to the first" : "",
                      body.str(Program::Text::costs));
  return text + section("epilogue", epilogue.program);
}

}  // namespace reel
