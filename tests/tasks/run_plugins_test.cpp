// Cells of other projects in Reel's own programs: REEL_PLUGINS, and what is no plugin.
#include <sys/stat.h>
#include <algorithm>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "reel/version.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

std::string plugin(const std::string& name) {
  return fs::absolute(REEL_BIN_DIR "/../lib/plugin_" + name + ".so").lexically_normal();
}

struct Place {
  TempDir dir;
  std::string plugins = plugin("own_cell");
  Result run(const std::string& program, const Words& arguments) const {
    return test::run(program, arguments, dir.path, {"REEL_PLUGINS=" + plugins});
  }
};

Words training(const std::string& out, const std::string& steps) {
  return {"--cell",       "own_leaky", "--own_leaky.rate", "0.25", "--hidden",  "8",      "--batch",     "4",
          "--valid-size", "4",         "--delay",          "5",    "--steps",   steps,    "--threads",   "1",
          "--out",        out,         "--valid-every",    "10",   "--picture", "states", "--optimizer", "adam"};
}

}  // namespace

TEST_CASE("a cell of a plugin is trained, resumed, applied, explained and exported as Reel's own are") {
  const Place place;
  const std::string out = place.dir / "run";
  CHECK(contains(place.run("copying", {"--list-cells"}).out, "own_leaky"));
  CHECK(contains(place.run("copying", {"--cell", "own_leaky", "--help"}).out, "--own_leaky.rate"));
  const Result trained = place.run("copying", training(out, "20"));
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
  CHECK(record["cell"] == "own_leaky");
  CHECK(record["plugins"] == Words{place.plugins});
  CHECK(place.run("copying", {"--resume", out, "--steps", "30"}).code == 0);
  const std::string whole = place.dir / "whole";
  CHECK(place.run("copying", training(whole, "30")).code == 0);
  const auto weights = [](const std::string& of) { return load_safetensors(of + "/best.safetensors", backend()); };
  const TensorFile a = weights(out), b = weights(whole);
  REQUIRE(a.tensors.size() == 5);
  for (const auto& [name, value] : a.tensors) CHECK_MESSAGE(elements(value) == elements(b.at(name)), name);
  CHECK(contains(place.run("apply", {"--run", out, "--describe"}).out, "cell.A\t(8, 8)\tf32"));
  CHECK(contains(place.run("apply", {"--cell", "own_leaky", "--hidden", "3", "--describe"}).out, "D\t(3, 3)\tf32"));
  CHECK(contains(place.run("explain", {"--cell", "own_leaky", "--hidden", "8", "--length", "5"}).out, "tanh"));
  if (fs::exists(REEL_BIN_DIR "/to_onnx")) {
    CHECK(place.run("to_onnx", {out, "--output", place.dir / "leaky.onnx"}).code == 0);
    CHECK(fs::file_size(place.dir / "leaky.onnx") > 500);
  }
  const Result without = run("copying", {"--resume", out}, place.dir.path);
  CHECK(without.code == 1);
  CHECK(contains(without.err, "expected, got \"own_leaky\""));
  const std::string hint = ". Hint: REEL_PLUGINS=FILE.so loads cells of other projects\n";
  CHECK(without.err.ends_with(hint));
  CHECK(run("explain", {"--cell", "own_leaky"}, place.dir.path).err.ends_with(hint));
  for (const auto& [program, arguments] : {std::pair{"apply", Words{"--run", out, "--describe"}},
                                           {"apply", Words{"--run", out, "--layer", "1", "--describe"}},
                                           {"predict", Words{out, "--input", "x.csv"}},
                                           {"to_onnx", Words{out, "--output", place.dir / "without.onnx"}}}) {
    if (!fs::exists(REEL_BIN_DIR "/" + std::string(program))) continue;
    const std::string said = run(program, arguments, place.dir.path).err;
    CHECK_MESSAGE(said.ends_with("] there is no cell \"own_leaky\"; the run had plugins. Hint: REEL_PLUGINS=" +
                                 place.plugins + ", or load_plugin(FILE) in a program of your own\n"),
                  said);
  }
}

TEST_CASE("a model of a table with a cell of a plugin answers new rows") {
  const Place place;
  std::string csv = "t,x,y\n";
  for (int t = 0; t < 200; ++t) csv += fmt::format("{},{},{}\n", t, t % 7, (t + 3) % 7);
  write_atomically(place.dir / "d.csv", csv);
  const Result trained = place.run(
      "table", {"--data", place.dir / "d.csv", "--time", "t", "--target", "y", "--cell", "own_leaky", "--hidden", "4",
                "--steps", "20", "--window", "10", "--out", place.dir / "run", "--threads", "1"});
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  const Result answers = place.run("predict", {place.dir / "run", "--input", place.dir / "d.csv"});
  CHECK(answers.code == 0);
  CHECK(std::count(answers.out.begin(), answers.out.end(), '\n') == 192);  // a header, and each row with a whole window
}

TEST_CASE("programs that are started by another one have its plugins, also by a relative path") {
  Place place;
  fs::copy(place.plugins, place.dir / "leaky.so");
  place.plugins = ":leaky.so::./leaky.so";
  const fs::path before = fs::current_path();
  fs::current_path(place.dir.path);
  const Result swept =
      place.run("sweep", {"copying", "--grid", "cell=lstm,own_leaky", "--out", place.dir / "s", "--", "--delay", "5",
                          "--hidden", "8", "--batch", "2", "--valid-size", "4", "--steps", "4"});
  fs::current_path(before);
  CAPTURE(swept.err);
  CHECK(swept.code == 0);
  CHECK(contains(swept.out, "2 of 2 runs done\n"));
}

TEST_CASE("what is no plugin: one line, and exit 2") {
  Place place;
  fs::copy(place.plugins, place.dir / "second.so");
  write_atomically(place.dir / "text.so", "not a library");
  const std::string whole = read_file(place.plugins);
  write_atomically(place.dir / "half.so", whole.substr(0, whole.size() / 2));
  REQUIRE(mkfifo((place.dir / "pipe.so").c_str(), 0600) == 0);
  const auto said = [&](const std::string& paths) {
    place.plugins = paths;
    const Result r = place.run("copying", {"--list-cells"});
    CHECK(r.code == 2);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    return r.err;
  };
  const auto refused = [](const std::string& path) { return "copying: REEL_PLUGINS: [" + path + "] "; };
  const std::string gone = place.dir / "gone.so", text = place.dir / "text.so", half = place.dir / "half.so",
                    pipe = place.dir / "pipe.so", second = place.dir / "second.so";
  CHECK(said(gone) == refused(gone) + "there is no such file\n");
  CHECK(said(place.dir.path) == refused(place.dir.path) + "a shared library is expected, this is no file\n");
  CHECK(said(pipe) == refused(pipe) + "a shared library is expected, this is no file\n");
  CHECK(said(text) == refused(text) + "is not a shared library\n");
  CHECK(said(half).starts_with(refused(half) + "is truncated: "));
  CHECK(said(plugin("no_cell")) ==
        refused(plugin("no_cell")) + "[cell] there is no new one. Hint: REEL_CELL registers it\n");
  CHECK(said(plugin("other_version")) ==
        refused(plugin("other_version")) +
            fmt::format("was compiled with other headers than those of this Reel, {}. Hint: compile it again\n",
                        REEL_VERSION));
  const std::string unresolved = said(plugin("no_symbol"));
  CHECK(unresolved.starts_with(refused(plugin("no_symbol")) + "cannot be loaded: "));
  CHECK(
      unresolved.ends_with("undefined symbol: _ZN4reel7missingEv. Hint: a program that Reel is linked into exports its "
                           "symbols to plugins: ENABLE_EXPORTS in CMake, otherwise -rdynamic\n"));
  const std::string folder = place.dir / "a:b", colon = folder + "/c.so",
                    rule = "the path of a plugin must not contain ':', ";
  fs::create_directory(folder);
  fs::copy(plugin("own_cell"), colon);
  CHECK(said(colon).starts_with(refused(colon) + rule));
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  CHECK(said("c.so").starts_with(refused(fs::canonical(colon)) + rule));
  fs::current_path(before);
  const std::string twice = said(plugin("own_cell") + ":" + second);
  CHECK(twice.starts_with(refused(second) + "[cell] two cells are called \"own_leaky\""));
}

TEST_CASE("a plugin whose variable throws as it is loaded is named") {
  Place place;
  place.plugins = plugin("throws");
  const Result r = place.run("copying", {"--list-cells"});
  CHECK(r.code != 0);
  CHECK(r.err == "[" + place.plugins + "] an initial value of a variable throws: too few elements\n");
}
