// --init-from: parameters that a model has no place for, settings that are others, what is said when quiet; and runs
// that have done no update, whose parameters nobody takes for trained ones.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Runs adding for two updates.
Result adding(const TempDir& dir, const std::string& more) {
  std::istringstream in("--length 5 --batch 2 --hidden 4 --steps 2 --valid-size 4 --threads 1 --quiet --no-report " +
                        more);
  return run("adding", {std::istream_iterator<std::string>(in), {}}, dir.path);
}

std::string trained(const TempDir& dir, const std::string& name, const std::string& options) {
  const Result r = adding(dir, options + " --out " + dir / name);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  return dir / name;
}

/// The checkpoint as it was before the first update, and no best parameters.
void forget_updates(const std::string& run) {
  std::filesystem::remove(run + "/best.safetensors");
  TensorFile file = load_safetensors(run + "/checkpoint.safetensors");
  file.metadata["step"] = "0";
  save_safetensors(run + "/checkpoint.safetensors", file);
}

}  // namespace

TEST_CASE("--init-from: parameters that the model lacks are refused, with their names and the option") {
  const TempDir dir;
  const auto refused = [&](const std::string& from, const std::string& options) {
    const Result r = adding(dir, "--dry-run --init-from " + from + " " + options);
    CHECK(r.code == 2);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    return r.err;
  };
  const std::string lstm = trained(dir, "lstm", "--cell lstm --lstm.peephole diagonal");
  std::string said = refused(lstm, "--cell lstm");
  CHECK_MESSAGE(contains(said, "adding: --init-from: [checkpoint] " + lstm +
                                   "/best.safetensors: the model has no cell.p_i, cell.p_f, cell.p_o, which a "
                                   "setting of the cell adds. Hint: "),
                said);
  CHECK_MESSAGE(contains(said, "as in that run: --lstm.peephole was diagonal and is none"), said);

  const std::string deep = trained(dir, "deep", "--cell gru --layers 3 --layer-norm --optimizer adam");
  CHECK(adding(dir, "--cell gru --layers 3 --layer-norm --dry-run --init-from " + deep + "/checkpoint.safetensors")
            .code == 0);  // with the optimiser's state
  said = refused(deep, "--cell gru --layers 3");
  CHECK_MESSAGE(contains(said, "the model has no norm2.gain, norm2.bias, norm3.gain, norm3.bias, which --layer-norm"),
                said);
  said = refused(deep, "--cell gru --layers 2 --layer-norm");
  CHECK_MESSAGE(contains(said, " more, which --layers adds. Hint: "), said);
  CHECK_MESSAGE(contains(said, "as in that run: --layers was 3 and is 2"), said);

  // a file that is no run's: the names alone say what it is of
  TensorFile plain = load_safetensors(deep + "/best.safetensors");
  plain.metadata.clear();
  std::erase_if(plain.tensors, [](const auto& t) { return t.first.starts_with("norm"); });
  const std::string file = dir / "plain.safetensors";
  save_safetensors(file, plain);
  CHECK(adding(dir, "--cell gru --layers 3 --dry-run --init-from " + file).err.empty());
  said = refused(file, "--cell gru --layers 2");
  CHECK_MESSAGE(contains(said, " more, which --layers adds. Hint: "), said);
  plain.tensors.emplace_back("scale", Tensor::zeros({2}));
  save_safetensors(file, plain);
  said = refused(file, "--cell gru --layers 3");
  CHECK_MESSAGE(contains(said, "plain.safetensors: the model has no scale. Hint: "), said);
}

TEST_CASE("--init-from: a note says which settings of the model are others, also when quiet") {
  const TempDir dir;
  const std::string first = trained(dir, "first", "--cell gru --gru.biases 1 --gru.reset before --layers 2 --residual"),
                    why = "; the parameters were trained with the model as it was\n";
  const auto said = [&](const std::string& options) {
    const Result r = adding(
        dir, "--cell gru --gru.biases 1 --layers 2 --init-from " + first + " " + options + " --out " + dir / "new");
    CHECK_MESSAGE(r.code == 0, r.err);
    std::filesystem::remove_all(dir / "new");
    return r.err;
  };
  CHECK(said("--gru.reset before --residual").empty());
  CHECK(said("--gru.reset before --residual --zoneout 0.1") ==
        "note: --init-from " + first + ": --zoneout was 0 and is 0.1" + why);
  CHECK(said("--gru.reset after") ==
        "note: --init-from " + first + ": --gru.reset was before and is after, --residual was on and is off" + why);
  std::filesystem::remove(first + "/model.json");  // as in folders of older versions
  CHECK(said("--gru.reset after").empty());
}

TEST_CASE("--init-from: notes on columns and their scale are printed when quiet, too") {
  const TempDir dir;
  const auto data = [&](const std::string& name, const std::string& header) {
    std::string rows = header + "\n";
    for (int i = 0; i < 60; ++i) rows += fmt::format("{},{},{}\n", i % 7, i % 5, i % 3);
    write_atomically(dir / name, rows);
    return dir / name;
  };
  const auto go = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words{"--target",  "y",   "--at",     "each",        "--window", "6",
                                   "--cell",    "gru", "--hidden", "4",           "--steps",  "2",
                                   "--threads", "1",   "--quiet",  "--no-report", "--data",   file};
    words.insert(words.end(), more.begin(), more.end());
    const Result r = run("table", words, dir.path);
    CHECK_MESSAGE(r.code == 0, r.err);
    return r.err;
  };
  const std::string first = dir / "first", note = "note: --init-from " + first;
  go(data("a.csv", "a,b,y"), {"--out", first});
  CHECK(go(dir / "a.csv", {"--init-from", first, "--out", dir / "same"}).empty());
  CHECK(go(data("b.csv", "b,a,y"), {"--init-from", first, "--out", dir / "swapped"}) ==
        note + ": input 1 was \"a\" and is \"b\"; parameters go by place, not by name\n");
  CHECK(go(dir / "a.csv", {"--init-from", first, "--standardize", "off", "--out", dir / "raw"}) ==
        note + ": --standardize was on and is off; the parameters were trained with columns as they were\n");
  const Result resumed = run("table", {"--resume", dir / "swapped", "--steps", "3", "--quiet"}, dir.path);
  CHECK(resumed.code == 0);
  CHECK(resumed.err.empty());  // it has its own parameters by now
}

TEST_CASE("a run that has done no update is no model, and none to start from; apply describes it") {
  const TempDir dir;
  const std::string none = trained(dir, "none", "--cell lstm"), X = dir / "X.safetensors", Y = dir / "Y.safetensors";
  const std::string checkpoint = none + "/checkpoint.safetensors";
  write_atomically(dir / "x.csv", "value,marked\n0.5,1\n");
  save_safetensors(X, {{{"x", Tensor::zeros({3, 1, 2})}}, {}});
  const std::vector<std::pair<std::string, std::vector<std::string>>> uses{
      {"predict", {none, "--input", dir / "x.csv"}},
      {"apply", {"--run", none, "--input", X, "--output", Y}},
      {"apply", {"--run", none, "--layer", "1", "--input", X, "--output", Y}},
      {"adding", {"--cell", "lstm", "--hidden", "4", "--dry-run", "--init-from", none}},
      {"apply", {"--cell", "lstm", "--weights", checkpoint, "--input", X, "--output", Y}},
      {"to_onnx", {none, "--output", dir / "none.onnx"}},
      {"to_onnx", {"--cell", "lstm", "--weights", checkpoint, "--output", dir / "none.onnx"}}};
  const auto each = [&](const auto& check) {
    for (const auto& [program, words] : uses) {
      if (!std::filesystem::exists(REEL_BIN_DIR "/" + program)) continue;
      CAPTURE(program);
      const Result r = run(program, words, dir.path);
      CAPTURE(r.err);
      check(r);
    }
  };
  each([](const Result& r) { CHECK(r.code == 0); });
  forget_updates(none);
  each([&](const Result& r) {
    CHECK(r.code == 1);
    CHECK(contains(r.err, "[" + none + "/checkpoint.safetensors] its run has done no update, so the parameters are "));
  });
  for (const std::string layer : {"", "1"}) {
    std::vector<std::string> words{"--run", none, "--describe"};
    if (!layer.empty()) words.insert(words.end(), {"--layer", layer});
    CHECK(run("apply", words, dir.path).code == 0);
  }
}

TEST_CASE("--picture eigenvalues of a run whose --init-from is gone: no picture, with the reason, and no failure") {
  const TempDir dir;
  const std::string first = trained(dir, "first", "--cell gru"),
                    second = trained(dir, "second", "--cell gru --init-from " + first);
  std::filesystem::remove_all(first);
  for (const char* more : {"--picture=eigenvalues", "--quiet"}) {  // the name is in config.toml from then on
    const Result r = run("adding", {"--resume", second, more}, dir.path, {"PATH=" + dir.path});
    CHECK_MESSAGE(r.code == 0, r.err);
    CHECK_MESSAGE(contains(r.out, "no picture " + second + "/eigenvalues.svg: --init-from " + first +
                                      ", whose values are the state before training: [" + first + "] "),
                  r.out);
  }
}

TEST_CASE("--init-from: an empty name is refused; over one in a file, it means without") {
  const TempDir dir;
  const Result r = run("adding", {"--init-from", "", "--dry-run"}, dir.path);
  CHECK(r.code == 2);
  CHECK(r.err == "adding: --init-from: the name of the run or file is empty\n");
  const std::string first = trained(dir, "first", "--cell gru"),
                    second = trained(dir, "second", "--cell gru --init-from " + first);
  std::filesystem::remove_all(first);
  CHECK(run("adding", {"--config", second + "/config.toml", "--init-from", "", "--dry-run"}, dir.path).code == 0);
}
