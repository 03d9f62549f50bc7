// build/bin/apply: every cell from file to file and back, and what it says of bad files.
#include <filesystem>

#include "cells/cell.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> call(const CellType& type, const std::vector<std::string>& more) {
  std::vector<std::string> all{"--cell", type.name, "--input-size", "3", "--hidden", "8", "--dtype", "f64"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The cell as apply makes it, for comparison.
std::unique_ptr<Cell> make(const CellType& type) {
  Init init(1, DType::f64);
  return type.make(3, 8, Settings(type.name, type.settings), init);
}

}  // namespace

TEST_CASE("every cell: weights out, weights in, outputs, last states and gradients as in memory") {
  const TempDir dir;
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W, "--seed", "5"}), dir.path).code == 0);
    const auto cell = make(type);
    const TensorFile weights = load_safetensors(W);
    Tensors wrt;
    std::vector<std::string> names;
    for (const Parameter& p : cell->parameters()) {
      Tensor value = p.value;
      value.assign(weights.at(p.name));
      if (!p.trained) continue;
      wrt.push_back(value);
      names.push_back("grad." + p.name);
    }

    const Tensor x = random({5, 2, 3}, 1), dy = random({5, 2, cell->outputs()}, 2);
    TensorFile in;
    in.tensors = {{"x", x}, {"dy", dy}};
    Tensors state;
    for (const State& s : cell->states()) {
      state.push_back(random({2, s.width}, 3 + state.size(), s.complex ? DType::c128 : DType::f64));
      in.tensors.emplace_back("state." + s.name, state.back());
      wrt.push_back(state.back());
      names.push_back("grad.state." + s.name);
    }
    wrt.push_back(x);
    names.push_back("grad.x");
    save_safetensors(X, in);
    const Result r = run("apply", call(type, {"--weights", W, "--input", X, "--output", Y}), dir.path);
    CAPTURE(r.err);
    REQUIRE(r.code == 0);

    const TensorFile out = load_safetensors(Y);
    Tape tape;
    const Sequence all = scan(*cell, state, x);
    CHECK(difference(out.at("y"), all.hs) < 1e-13);
    for (std::size_t i = 0; i < state.size(); ++i)
      CHECK(difference(out.at("state." + cell->states()[i].name), all.last[i]) < 1e-13);
    const Tensors gradients = grad({all.hs}, wrt, {.cotangents = {dy}});
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      CAPTURE(names[i]);
      CHECK(difference(out.at(names[i]), gradients[i]) < 1e-12);
    }
    CHECK(out.tensors.size() == 1 + state.size() + wrt.size());
  }
}

TEST_CASE("--describe: a line each for parameters and states, and the count") {
  const TempDir dir;
  const Result r = run(
      "apply", {"--cell", "lstm", "--lstm.biases", "1", "--input-size", "3", "--hidden", "5", "--describe"}, dir.path);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "W_i\t(5, 3)\tf32\n"));
  CHECK(contains(r.out, "state.c\t(B, 5)\tf32\ntotal\t180\n"));
}

TEST_CASE("files that do not fit are named, and nothing is written") {
  const TempDir dir;
  const CellType& type = cell_type("gru");
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  const auto answer = [&](const std::vector<std::string>& more, int code) {
    const Result r = run("apply", call(type, more), dir.path);
    CHECK(r.code == code);
    CHECK(!std::filesystem::exists(Y));
    return r.err;
  };
  const auto with_weights = [&] { return answer({"--weights", W, "--input", X, "--output", Y}, 1); };
  save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}}, {}});
  CHECK(contains(answer({"--weights", W, "--input", X, "--output", Y}, 1), W));  // there is none yet
  REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W}), dir.path).code == 0);

  TensorFile weights = load_safetensors(W);
  const TensorFile good = weights;
  weights.tensors.pop_back();
  save_safetensors(W, weights);
  CHECK(contains(with_weights(), "missing: " + good.tensors.back().first));
  weights = good;
  weights.tensors.emplace_back("W_q", random({2}, 1));
  save_safetensors(W, weights);
  CHECK(contains(with_weights(), "the cell has no W_q"));
  weights = good;
  weights.tensors[0].second = random({2, 3}, 1);
  save_safetensors(W, weights);
  CHECK(contains(with_weights(), good.tensors[0].first + " has shape (2, 3)"));
  save_safetensors(W, good);
  save_safetensors(X, {{{"x", random({5, 2, 4}, 1)}}, {}});
  CHECK(contains(with_weights(), "x has shape (5, 2, 4), (5, 2, 3) expected"));
  save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}, {"state.c", random({2, 8}, 1)}}, {}});
  CHECK(contains(with_weights(), "state.c is neither x, dy nor a state of this cell"));
  save_safetensors(X, {{{"dy", random({5, 2, 3}, 1)}}, {}});
  CHECK(contains(with_weights(), "x"));
  CHECK(contains(answer({"--input", X}, 2), "--output"));
  CHECK(contains(answer({"--init-only"}, 2), "--weights-out"));
}
