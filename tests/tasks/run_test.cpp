// The task programs as a person meets them: runs, interruption, resumption, errors. Runs build/bin/copying and adding.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cells/cell.h"
#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> small(const std::string& out, const std::string& steps = "60") {
  return {"--delay", "5",   "--hidden",      "16", "--batch",   "4", "--valid-size", "8",
          "--steps", steps, "--valid-every", "10", "--threads", "1", "--out",        out};
}

/// metrics.csv without its column of seconds.
std::string metrics(const std::string& run) {
  std::istringstream in(read_file(run + "/metrics.csv"));
  std::string line, text;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; std::getline(fields, field, ','); ++i) text += i == 2 ? "" : field + " ";
    text += "\n";
  }
  return text;
}

void same_checkpoint(const std::string& a, const std::string& b) {
  const TensorFile x = load_safetensors(a + "/checkpoint.safetensors", backend()),
                   y = load_safetensors(b + "/checkpoint.safetensors", backend());
  REQUIRE(x.tensors.size() == y.tensors.size());
  for (std::size_t i = 0; i < x.tensors.size(); ++i) {
    CAPTURE(x.tensors[i].first);
    CHECK(elements(x.tensors[i].second) == elements(y.at(x.tensors[i].first)));
  }
}

/// Waits until the run has written that many rows.
void wait_for_rows(const std::string& run, int rows) {
  for (int i = 0; i < 3000; ++i) {
    std::error_code e;
    if (std::filesystem::exists(run + "/checkpoint.safetensors", e)) {
      const std::string text = read_file(run + "/metrics.csv");
      if (std::count(text.begin(), text.end(), '\n') > rows) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL("the run wrote no rows");
}

}  // namespace

TEST_CASE(
    "a run leaves its folder: config, metrics, curve, checkpoint, record; the config repeats it to the last bit") {
  const TempDir dir;
  const std::string a = dir.path + "/a", b = dir.path + "/b";
  const Result first = run("copying", small(a), dir.path);
  CHECK(first.code == 0);
  CHECK(contains(first.out, "valid_loss "));
  CHECK(contains(first.out, "of the baseline 0.8318"));  // 10 ln 8 / 25
  for (const char* file : {"config.toml", "metrics.csv", "checkpoint.safetensors", "run.json"})
    CHECK(std::filesystem::exists(a + "/" + file));
  const auto record = nlohmann::json::parse(read_file(a + "/run.json"));
  for (const char* key :
       {"task", "cell", "parameters", "seed", "steps", "baseline", "train_loss", "valid_loss", "accuracy", "seconds",
        "steps_per_second", "device", "threads", "finished", "version", "processor", "date", "command"})
    CHECK_MESSAGE(record.contains(key), key);
  CHECK(contains(record["command"].get<std::string>(), "--steps 60"));
  CHECK(record["finished"] == true);
  CHECK(record["steps"] == 60);
  CHECK(record["cell"] == "srnn");
  const std::string table = metrics(a);
  CHECK(contains(table, "step examples train_loss valid_loss accuracy grad_norm"));
  CHECK(contains(table, "\n60 240 "));

  const Result second = run("copying", {"--config", a + "/config.toml", "--out", b}, dir.path);
  CHECK(second.code == 0);
  CHECK(metrics(b) == table);
  same_checkpoint(a, b);
  const Result taken = run("copying", small(a), dir.path);
  CHECK(taken.code != 0);
  CHECK(contains(taken.err, "--resume"));
  CHECK(metrics(a) == table);
}

TEST_CASE("kill -9, resume: as if nothing had happened; for every optimiser and the plateau schedule") {
  for (const std::string kind : {"rmsprop", "amsgrad"}) {
    const TempDir dir;
    const std::string whole = dir.path + "/whole", cut = dir.path + "/cut";
    auto arguments = small(whole, "3000");
    for (const char* a : {"--schedule", "plateau", "--lr-patience", "1", "--cell", "gru", "--optimizer"})
      arguments.push_back(a);
    arguments.push_back(kind);
    CHECK(run("copying", arguments, dir.path).code == 0);
    *std::find(arguments.begin(), arguments.end(), whole) = cut;
    Child child("copying", arguments, dir.path);
    wait_for_rows(cut, 3);
    child.send(SIGKILL);
    CHECK(child.wait().code == 128 + SIGKILL);
    const Result resumed = run("copying", {"--resume", cut}, dir.path);
    CHECK(resumed.code == 0);
    CHECK(metrics(cut) == metrics(whole));
    same_checkpoint(cut, whole);
  }
}

TEST_CASE(
    "Ctrl-C and SIGTERM: the step is finished, all is saved between validations too, exit 130, and resuming is exact") {
  for (int signal : {SIGINT, SIGTERM}) {
    const TempDir dir;
    const std::string whole = dir.path + "/whole", cut = dir.path + "/cut";
    const auto arguments = [](const std::string& out) {
      auto a = small(out, "8000");
      *(std::find(a.begin(), a.end(), "--valid-every") + 1) = "700";
      return a;
    };
    CHECK(run("copying", arguments(whole), dir.path).code == 0);
    Child child("copying", arguments(cut), dir.path);
    wait_for_rows(cut, 1);
    child.send(signal);
    if (signal == SIGTERM) {  // once more, as timeout(1) does
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      child.send(signal);
    }
    const Result stopped = child.wait();
    CHECK(stopped.code == 130);
    CHECK(contains(stopped.err, "--resume " + cut));
    CHECK(nlohmann::json::parse(read_file(cut + "/run.json"))["finished"] == false);
    CHECK(run("copying", {"--resume", cut, "--quiet", "--no-graph"}, dir.path).code == 0);
    CHECK(metrics(cut) == metrics(whole));
    same_checkpoint(cut, whole);
  }
}

TEST_CASE("a loss that is not finite stops the run, says so, and keeps the last good checkpoint") {
  const TempDir dir;
  const std::string out = dir.path + "/r";
  auto arguments = small(out);
  CHECK(run("copying", arguments, dir.path).code == 0);
  const std::string good = read_file(out + "/checkpoint.safetensors");
  std::string config = read_file(out + "/config.toml");
  const auto lr = config.find("\nlr = ");
  REQUIRE(lr != std::string::npos);
  config.replace(lr, config.find('\n', lr + 1) - lr, "\nlr = 1e38");
  write_atomically(out + "/config.toml", config);
  const Result r = run("copying", {"--resume", out, "--steps", "200"}, dir.path);
  CHECK(r.code == 1);
  CHECK(contains(r.err, "became"));
  CHECK(contains(r.err, "the last good checkpoint is in " + out));
  CHECK(contains(r.err, "Hint: a lower --lr, or --clip-norm 1\n"));
  CHECK(read_file(out + "/checkpoint.safetensors") == good);
  const auto clip = config.find("\nclip-norm = ");
  REQUIRE(clip != std::string::npos);
  config.replace(clip, config.find('\n', clip + 1) - clip, "\nclip-norm = 1e6");
  write_atomically(out + "/config.toml", config);
  const Result clipped = run("copying", {"--resume", out, "--steps", "200"}, dir.path);
  CHECK(contains(clipped.err, "Hint: a lower --lr\n"));
  const auto epsilon = config.find("\nepsilon = ");
  REQUIRE(epsilon != std::string::npos);
  config.replace(epsilon, config.find('\n', epsilon + 1) - epsilon, "\nepsilon = 1e-50");  // 0 in f32
  write_atomically(out + "/config.toml", config);
  const Result divides = run("copying", {"--resume", out, "--steps", "200"}, dir.path);
  CHECK(contains(divides.err, "Hint: --epsilon 1e-8, or a lower --lr\n"));
  const Result decays = run("copying",
                            {"--weight-decay", "1e30", "--hidden", "4", "--delay", "5", "--batch", "2", "--valid-size",
                             "2", "--steps", "50", "--valid-every", "1", "--out", dir.path + "/decays"},
                            dir.path);
  CHECK_MESSAGE(contains(decays.err, "Hint: a lower --lr or --weight-decay, or --clip-norm 1\n"), decays.err);
}

TEST_CASE("bad input: one clear line, exit 2 for usage and 1 for failure, nothing half written") {
  const TempDir dir;
  const auto refuse = [&](std::vector<std::string> arguments, int code, const std::string& part) {
    const Result r = run("copying", arguments, dir.path);
    CAPTURE(r.err);
    CHECK(r.code == code);
    CHECK(contains(r.err, part));
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  };
  refuse({"--cell", "lstmm"}, 2, "lstm");
  refuse({"--hidden", "-1"}, 2, "--hidden");
  refuse({"--batch", "0"}, 2, "--batch");
  refuse({"--srnn.width", "0"}, 2, "--srnn.width");
  refuse({"--cell", "gru", "--gru.reset", "before"}, 2, "Hint: --gru.biases 1");
  refuse({"--classes", "4"}, 2, "--classes");
  refuse({"--group-lr", "tail=1"}, 2, "tail");
  refuse({"--group-lr", "head=1e-4x"}, 2, "head=1e-4x");
  refuse({"--group-lr", "head=inf"}, 2, "head=inf");
  refuse({"--device", "tpu"}, 2, "--device");
  refuse({"--lr", "nan"}, 2, "--lr");
  refuse({"--out", "/dev/null/x", "--steps", "1"}, 1, "/dev/null/x");
  refuse({"--resume", dir.path + "/nowhere"}, 2, "nowhere");
  write_atomically(dir.path + "/bad.toml", "hidden = 16\nhiddne = 3\n");
  refuse({"--config", dir.path + "/bad.toml"}, 2, "hiddne");

  const std::string out = dir.path + "/r";
  CHECK(run("copying", small(out), dir.path).code == 0);
  const std::string good = read_file(out + "/checkpoint.safetensors"), rows = read_file(out + "/metrics.csv");
  for (const std::string& damaged : {good.substr(0, good.size() / 2), std::string("not a checkpoint"), std::string()}) {
    write_atomically(out + "/checkpoint.safetensors", damaged);
    const Result r = run("copying", {"--resume", out, "--steps", "100"}, dir.path);
    CHECK(r.code == 1);
    CHECK(contains(r.err, "checkpoint.safetensors"));
    CHECK(read_file(out + "/metrics.csv") == rows);
  }
}

TEST_CASE("--dry-run prints the model; counts are those of the reference sheet") {
  const TempDir dir;
  const auto total = [&](const std::string& program, std::vector<std::string> arguments) {
    arguments.push_back("--dry-run");
    const Result r = run(program, arguments, dir.path);
    CHECK(r.code == 0);
    return std::stoll(r.out.substr(r.out.find("total") + 5));
  };
  CHECK(total("adding", {"--cell", "rnn"}) == 17025);
  CHECK(total("adding", {"--cell", "lstm"}) == 67713);
  CHECK(total("adding", {"--cell", "gru"}) == 50817);
  CHECK(total("adding", {"--cell", "srnn", "--srnn.width", "32"}) == 4833);
  CHECK(total("adding", {"--cell", "srnn"}) == 1689);
  CHECK(total("adding", {"--cell", "lstm", "--lstm.biases", "1", "--hidden", "60"}) == 15181);
  CHECK(total("copying", {"--cell", "srnn"}) == 3746);
  CHECK(total("copying", {"--cell", "lstm", "--input", "one-hot", "--classes", "9", "--lstm.biases", "1", "--hidden",
                          "68"}) == 22109);
  CHECK(total("copying", {"--cell", "gru", "--input", "one-hot", "--classes", "9", "--gru.reset", "before",
                          "--gru.biases", "1", "--hidden", "82"}) == 23625);
  CHECK(std::filesystem::is_empty(dir.path) == false);  // stdout and stderr of this test, and
  CHECK(!std::filesystem::exists(dir.path + "/runs"));  // no run
}

TEST_CASE("every cell trains on every task, in both precisions, stacked, on a fixed set") {
  const TempDir dir;
  int n = 0;
  for (const CellType& type : cell_registry()) {
    for (const std::string task : {"copying", "adding"}) {
      CAPTURE(type.name);
      CAPTURE(task);
      const std::string out = fmt::format("{}/{}", dir.path, n++);
      const Result r = run(task, {"--cell",     type.name,  task == "copying" ? "--delay" : "--length",
                                  "6",          "--hidden", "8",
                                  "--layers",   "2",        "--batch",
                                  "5",          "--steps",  "20",
                                  "--examples", "30",       "--valid-size",
                                  "7",          "--dtype",  n % 2 ? "f32" : "f64",
                                  "--out",      out},
                           dir.path);
      CAPTURE(r.err);
      CHECK(r.code == 0);
      const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
      CHECK(record["valid_loss"].is_number());
    }
  }
}

TEST_CASE("without gnuplot a run ends well, with a note") {
  const TempDir dir;
  const Result r = run("copying", small(dir.path + "/r"), dir.path, {"PATH=" + dir.path});
  CHECK(r.code == 0);
  CHECK(contains(r.err, "gnuplot"));
  CHECK(!std::filesystem::exists(dir.path + "/r/curve.svg"));
}

TEST_CASE("a picture that is named twice is drawn once; one step is no plural") {
  const TempDir dir;
  const Result r = run("copying",
                       {"--cell", "gru", "--hidden", "4", "--delay", "5", "--batch", "2", "--valid-size", "2",
                        "--steps", "1", "--picture", "states,states", "--quiet", "--out", dir / "r"},
                       dir.path);
  CHECK(r.code == 0);
  CHECK(contains(r.out, " 1 step in "));
  const std::size_t first = r.out.find("states-h.svg");
  REQUIRE(first != std::string::npos);
  CHECK(r.out.find("states-h.svg", first + 1) == std::string::npos);
  for (const char* names : {",", "states,", "states,,changes"})
    CHECK(run("copying", {"--dry-run", "--picture", names}, dir.path).err ==
          fmt::format("copying: --picture {}: names expected, got an empty one\n", names));
}
