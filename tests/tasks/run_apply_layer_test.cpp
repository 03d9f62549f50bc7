// build/bin/apply --run RUN --layer N: where the layer's settings come from, and what goes over them.
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// A run of one layer of 4 units in `folder`.
std::string run_of(const TempDir& dir, const std::string& folder, const std::vector<std::string>& more) {
  std::vector<std::string> all{"--delay", "5",         "--length", "3",       "--hidden", "4",    "--batch",
                               "2",       "--steps",   "2",        "--quiet", "--out",    folder, "--valid-size",
                               "2",       "--threads", "1"};
  all.insert(all.end(), more.begin(), more.end());
  const Result r = run("copying", all, dir.path);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  return folder;
}

/// An input file for its layer.
std::string input_of(const TempDir& dir, const std::string& run) {
  const Tensor table = load_safetensors(run + "/best.safetensors").at("embedding");
  std::vector<float> x(static_cast<std::size_t>(3 * 2 * table.dim(1)));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  save_safetensors(dir / "X.safetensors", {{{"x", Tensor::from<float>(x, {3, 2, table.dim(1)})}}, {}});
  return dir / "X.safetensors";
}

}  // namespace

TEST_CASE("a run and a layer in a file, or typed twice: the settings are of the run whose weights they are") {
  const TempDir dir;
  const std::string tanh = run_of(dir, dir / "tanh", {"--cell", "srnn", "--srnn.activation", "tanh"});
  const std::string relu = run_of(dir, dir / "relu", {"--cell", "srnn", "--srnn.activation", "relu"});
  const std::string X = input_of(dir, tanh), Y = dir / "Y.safetensors";
  const auto y = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--input", X, "--output", Y};
    all.insert(all.end(), more.begin(), more.end());
    const Result r = run("apply", all, dir.path);
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return load_safetensors(Y).at("y").values<float>();
  };
  const auto of_tanh = y({"--run", tanh, "--layer", "1"}), of_relu = y({"--run", relu, "--layer", "1"});
  CHECK(of_tanh != of_relu);
  CHECK(of_tanh == y({"--run", relu, "--layer=1", "--run=" + tanh}));
  const std::string file = dir / "apply.toml";
  write_atomically(file, fmt::format("run = \"{}\"\nlayer = 1\n", tanh));
  CHECK(of_tanh == y({"--config", file}));
  CHECK(of_relu == y({"--config", file, "--run", relu}));
  write_atomically(file, fmt::format("run = \"{}\"\nlayer = 1\n[srnn]\nactivation = \"relu\"\n", tanh));
  const auto other = y({"--config", file});
  CHECK(other != of_tanh);
  CHECK(other == y({"--run", tanh, "--layer", "1", "--srnn.activation", "relu"}));
  CHECK(of_tanh == y({"--config", file, "--srnn.activation", "tanh"}));
}

TEST_CASE("another cell than that of the run: errors name only what was typed") {
  const TempDir dir;
  const std::string gru = run_of(dir, dir / "gru", {"--cell", "gru", "--gru.biases", "1", "--gru.reset", "before"});
  const auto describe = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--run", gru, "--layer", "1", "--describe"};
    all.insert(all.end(), more.begin(), more.end());
    return run("apply", all, dir.path);
  };
  CHECK(describe({"--gru.reset", "before"}).code == 0);
  CHECK(contains(describe({"--cell", "lstm"}).err, "fits lstm at no size"));
  const Result other = describe({"--lstm.biases", "1"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "--lstm.biases: is not a setting of --cell gru"));
  const std::string config = dir / "gru/apply.toml";  // beside a checkpoint, but not of a run
  write_atomically(config, fmt::format("run = \"{}\"\nlayer = 1\n", gru));
  CHECK(run("apply", {"--config", config, "--describe"}, dir.path).code == 0);
}
