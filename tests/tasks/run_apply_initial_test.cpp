// build/bin/apply: gradients of initial states that are parameters.
#include "cells/cell.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("without first states in the file, those that are trained have gradients") {
  const TempDir dir;
  const std::string X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  const Tensor x = random({5, 2, 3}, 1), dy = random({5, 2, 8}, 2), c = random({2, 8}, 3);
  save_safetensors(X, {{{"x", x}, {"dy", dy}, {"state.c", c}}, {}});
  const CellType& type = cell_type("lstm");
  REQUIRE(run("apply",
              {"--cell", "lstm", "--lstm.initial", "trained", "--input-size", "3", "--hidden", "8", "--dtype", "f64",
               "--input", X, "--output", Y},
              dir.path)
              .code == 0);
  Init init(1, DType::f64);
  const auto cell = type.make(3, 8, Settings("lstm", type.settings, {{"initial", "trained"}}), init);
  Tape tape;
  const Tensor h = cell->initial(2)[0];  // c is the file's
  Tensors wrt{h, c};
  std::vector<std::string> names{"state.h", "state.c"};
  for (const Parameter& p : cell->parameters()) wrt.push_back(p.value), names.push_back(p.name);
  const Tensors wanted = grad({scan(*cell, {h, c}, x).hs}, wrt, {.cotangents = {dy}});
  const TensorFile out = load_safetensors(Y);
  for (std::size_t i = 0; i < names.size(); ++i)
    CHECK_MESSAGE(difference(out.at("grad." + names[i]), wanted[i]) < 1e-12, names[i]);
  CHECK(difference(out.at("grad.h_0"), sum(out.at("grad.state.h"), {0})) < 1e-12);
}
