// Training by the task programs: runs that are killed and resumed with each of the options whose state must be right,
// batches in parts, the best parameters of every task, and what the options refuse. Runs build/bin.
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tasks/app/run_folder.h"
#include "tasks/io/files.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/predictor.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Result go(const TempDir& dir, const std::string& command) {
  const auto all = words(command);
  return run(all[0], {all.begin() + 1, all.end()}, dir.path);
}

std::vector<RunFolder::Row> rows(const std::string& out) {
  auto all = RunFolder::view(out).rows();
  for (auto& row : all) {
    row.seconds = 0;
    if (std::isnan(row.accuracy)) row.accuracy = -1;  // which no accuracy is; NaN equals nothing
  }
  return all;
}

void same_tensors(const std::string& a, const std::string& b) {
  const TensorFile x = load_safetensors(a, backend()), y = load_safetensors(b, backend());
  REQUIRE(x.tensors.size() == y.tensors.size());
  for (const auto& [name, value] : x.tensors) {
    CAPTURE(name);
    CHECK(elements(value) == elements(y.at(name)));
  }
}

/// Runs the command to its end, and again with a kill -9 in between and --resume: both leave the same.
void check_resumed(const std::string& program, const std::string& options) {
  CAPTURE(options);
  const TempDir dir;
  const std::string whole = dir / "whole", cut = dir / "cut";
  const Result first = go(dir, program + " " + options + " --out " + whole);
  REQUIRE_MESSAGE(first.code == 0, first.err);
  const auto expected = rows(whole);
  REQUIRE(expected.size() > 4);
  Child child(program, words(options + " --out " + cut), dir.path);
  const auto started = [&] {
    return std::filesystem::exists(cut + "/checkpoint.safetensors") && std::filesystem::exists(cut + "/metrics.csv") &&
           RunFolder::view(cut).rows().size() >= 2;
  };
  for (int i = 0; i < 3000 && !started(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  child.send(SIGKILL);
  CHECK(child.wait().code == 128 + SIGKILL);
  const Result resumed = go(dir, program + " --resume " + cut);
  CHECK_MESSAGE(resumed.code == 0, resumed.err);
  CHECK(rows(cut) == expected);
  same_tensors(cut + "/checkpoint.safetensors", whole + "/checkpoint.safetensors");
  same_tensors(cut + "/best.safetensors", whole + "/best.safetensors");
}

const std::string small = " --threads 1 --quiet --valid-size 8 ";

}  // namespace

TEST_CASE("kill -9, resume: to the last bit, with weight decay, warm-up, falling rates, parts, zoneout and dropout") {
  const std::string adding = small + "--length 10 --batch 6 --steps 3000 --valid-every 100 ";
  check_resumed("adding", adding +
                              "--cell gru,lstm --hidden 8,6 --optimizer adamw --weight-decay 0.1 --schedule cosine "
                              "--warmup 500 --lr-floor 0.1 --accumulate 3 --clip-norm 1 --dropout 0.2 "
                              "--variational-dropout --zoneout 0.1");
  check_resumed("adding", adding +
                              "--cell rnn --hidden 8 --optimizer sgd --lr 0.01 --momentum 0.9 --weight-decay 0.01 "
                              "--schedule linear --accumulate 2 --bidirectional");
}

TEST_CASE("kill -9, resume: states carry over from window to window in parts of the batch as well") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + i * i % 17);
  write_atomically(dir / "text.txt", text);
  check_resumed("charlm", small + "--text " + dir / "text.txt" +
                              " --batch 4 --unroll 8 --hidden 8 --cell lstm --steps 1500 --valid-every 100 "
                              "--accumulate 2 --optimizer adam --schedule step --lr-every 500 --warmup 100");
}

TEST_CASE("kill -9, resume: padded sequences of a table, with everything between layers; in parts as well") {
  const TempDir dir;
  std::string text = "id,x,z,y\n";
  for (int i = 0; i < 60; ++i)
    for (int t = 0; t < 3 + i % 5; ++t)
      text += fmt::format("{},{},{},{}\n", i, (i * 7 + t * 3) % 11, (i + t) % 4, (i * 7 + t * 3) % 11 + t);
  write_atomically(dir / "rows.csv", text);
  const std::string table =
      "--threads 1 --quiet --data " + dir / "rows.csv" + " --group id --target y --at each --batch 6 --dtype f64 ";
  check_resumed("table", table +
                             "--steps 1200 --valid-every 100 --cell gru,lstm --hidden 6,6 --bidirectional "
                             "--layer-norm --residual --dropout 0.2 "
                             "--variational-dropout --zoneout 0.1 --optimizer adamw --accumulate 2 --warmup 50");
  const std::string whole = dir / "whole", cut = dir / "cut",
                    short_run = "table " + table + "--steps 40 --valid-every 20";
  REQUIRE(go(dir, short_run + " --cell gru --hidden 6 --out " + whole).code == 0);
  REQUIRE(go(dir, short_run + " --cell gru --hidden 6 --accumulate 3 --out " + cut).code == 0);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(rows(cut)[i].valid_loss == doctest::Approx(rows(whole)[i].valid_loss).epsilon(1e-9));
}

TEST_CASE("a batch in parts makes the run of the whole batch, up to rounding; updates count as before") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i * i % 17);
  write_atomically(dir / "text.txt", text);
  const std::vector<std::string> commands{
      "adding" + small + "--length 10 --batch 6 --hidden 8 --cell gru --steps 60 --valid-every 10 --dtype f64",
      "adding" + small + "--length 10 --batch 6 --hidden 8 --examples 30 --steps 60 --valid-every 10 --dtype f64",
      "charlm" + small + "--text " + dir / "text.txt" +
          " --batch 6 --valid-size 6 --unroll 8 --hidden 8 --cell lstm --epochs 2 --dtype f64"};
  for (const std::string& command : commands) {
    CAPTURE(command);
    static int n = 0;
    const std::string whole = dir / fmt::format("whole{}", ++n), cut = dir / fmt::format("cut{}", n);
    REQUIRE(go(dir, command + " --out " + whole).code == 0);
    const Result r = go(dir, command + " --accumulate 3 --out " + cut);
    REQUIRE_MESSAGE(r.code == 0, r.err);
    const auto a = rows(whole), b = rows(cut);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i].step == b[i].step);
      CHECK(a[i].examples == b[i].examples);
      CHECK(a[i].train_loss == doctest::Approx(b[i].train_loss).epsilon(1e-9));
      CHECK(a[i].valid_loss == doctest::Approx(b[i].valid_loss).epsilon(1e-9));
      CHECK(a[i].grad_norm == doctest::Approx(b[i].grad_norm).epsilon(1e-9));
    }
  }
}

TEST_CASE("every task keeps its best parameters: run.json says of which update, and predict takes them") {
  const TempDir dir;
  const std::string out = dir / "run";
  const std::string command =
      "adding" + small + "--length 10 --batch 4 --hidden 8 --cell gru --lr 0.3 --valid-every 10 ";
  REQUIRE(go(dir, command + "--steps 100 --out " + out).code == 0);
  const auto check = [&] {
    const auto all = rows(out);
    const auto best = std::min_element(all.begin(), all.end(),
                                       [](const auto& a, const auto& b) { return a.valid_loss < b.valid_loss; });
    const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
    CHECK(record["best"]["step"] == best->step);
    CHECK(record["best"]["valid_loss"] == best->valid_loss);
    CHECK_FALSE(record.contains("test"));
    CHECK(best_of(out + "/best.safetensors").step == best->step);
    return best->step;
  };
  REQUIRE(check() < 100);  // at this rate the last update is not the best one
  CHECK(Predictor(out).weights() == out + "/best.safetensors");
  REQUIRE(go(dir, "adding --resume " + out + " --steps 200").code == 0);
  check();

  // A run folder of an older version has no such file: its checkpoint is taken, and the best of what follows is kept.
  std::filesystem::remove(out + "/best.safetensors");
  CHECK(Predictor(out).weights() == out + "/checkpoint.safetensors");
  REQUIRE(go(dir, "adding --resume " + out + " --steps 200").code == 0);
  CHECK_FALSE(nlohmann::json::parse(read_file(out + "/run.json")).contains("best"));
  REQUIRE(go(dir, "adding --resume " + out + " --steps 210").code == 0);
  CHECK(best_of(out + "/best.safetensors").step == 210);
}

TEST_CASE(
    "run.json: a resumed session that trains nothing leaves it alone; one of one update keeps the time of an update") {
  const TempDir dir;
  const std::string out = dir / "run", file = out + "/run.json";
  REQUIRE(go(dir, "adding" + small + "--length 5 --hidden 4 --steps 20 --valid-every 10 --out " + out).code == 0);
  const std::string before = read_file(file);
  const auto written = std::filesystem::last_write_time(file);
  REQUIRE(go(dir, "adding --resume " + out + " --quiet --picture states").code == 0);
  CHECK(read_file(file) == before);
  CHECK(std::filesystem::last_write_time(file) > written);  // sweep asks whether the session came to its end
  REQUIRE(go(dir, "adding --resume " + out + " --quiet --steps 21").code == 0);
  const auto first = nlohmann::json::parse(before), after = nlohmann::json::parse(read_file(file));
  CHECK(first["update_seconds"].is_number());
  CHECK(after["update_seconds"] == first["update_seconds"]);
  CHECK(after["steps"] == 21);
  CHECK(contains(after["command"].get<std::string>(), "--steps 21"));
  REQUIRE(go(dir, "adding --resume " + out + " --quiet --steps 30").code == 0);
  CHECK(nlohmann::json::parse(read_file(file))["update_seconds"] != first["update_seconds"]);
}

TEST_CASE("a run that --patience or --stop-below has ended says so when it is resumed, and goes on without them") {
  const TempDir dir;
  const std::string adding = "adding" + small + "--length 5 --hidden 4 --lr 0 --steps 100 --valid-every 10 --out ";
  for (const auto& [option, value, step] :
       {std::tuple{"--patience", "2", 30}, {"--stop-below", "100", 10}}) {  // the loss of one is the first
    const std::string out = dir / option;
    REQUIRE(go(dir, adding + out + " " + option + " " + value).code == 0);
    const auto steps = [&] { return nlohmann::json::parse(read_file(out + "/run.json"))["steps"]; };
    CHECK(steps() == step);
    const auto by = [&] { return nlohmann::json::parse(read_file(out + "/run.json")).value("stopped_by", ""); };
    CHECK(by() == fmt::format("{} {}", option, value));
    const Result none = go(dir, "adding --resume " + out + " --steps 200");
    CHECK(none.code == 0);
    CHECK_MESSAGE(
        contains(none.err, fmt::format("stopped by {} {} at step {}; there is nothing to train. Hint: another "
                                       "value, or {} 0\n",
                                       option, value, step, option)),
        none.err);
    CHECK(steps() == step);
    const Result more = go(dir, "adding --resume " + out + " " + option + " 0");
    CHECK(more.code == 0);
    CHECK_FALSE(contains(more.err, "stopped by"));
    CHECK(steps() == 200);
    CHECK(by().empty());
  }
}

TEST_CASE("a run that its last validation would have ended says by which option once it is resumed for more") {
  const TempDir dir;
  const std::string out = dir / "run";
  const auto by = [&] { return nlohmann::json::parse(read_file(out + "/run.json")).value("stopped_by", ""); };
  REQUIRE(go(dir, "adding" + small + "--length 5 --hidden 4 --valid-every 3 --stop-below 100 --steps 3 --out " + out)
              .code == 0);
  CHECK(by().empty());
  REQUIRE(go(dir, "adding --quiet --resume " + out + " --steps 27").code == 0);
  CHECK(by() == "--stop-below 100");
}

TEST_CASE("adamw's decay is PyTorch's unless it is given, and the folder says which") {
  const TempDir dir;
  for (const auto& [options, expected] :
       std::vector<std::pair<std::string, std::string>>{{"--optimizer adamw", "weight-decay = 0.01\n"},
                                                        {"--optimizer adamw --weight-decay 0", "weight-decay = 0.0\n"},
                                                        {"--optimizer adam", "weight-decay = 0.0\n"}}) {
    CAPTURE(options);
    static int n = 0;
    const std::string out = dir / fmt::format("run{}", ++n);
    REQUIRE(go(dir, "adding" + small + "--length 5 --hidden 4 --steps 2 " + options + " --out " + out).code == 0);
    CHECK(contains(read_file(out + "/config.toml"), expected));
  }
}

TEST_CASE("what does not fit is refused, and other programs' names have hints") {
  const TempDir dir;
  const auto said = [&](const std::string& options) {
    const Result r = go(dir, "adding --dry-run " + options);
    CHECK(r.code == 2);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    return r.err;
  };
  CHECK(said("--batch 20 --accumulate 21") == "adding: --accumulate: a batch of 20 cannot be cut into 21 parts\n");
  CHECK(contains(said("--accumulate 0"), "--accumulate"));
  CHECK(said("--steps 10 --warmup 11") == "adding: --warmup: the run has 10 updates, got 11\n");
  CHECK(contains(said("--lr-floor 1.5"), "--lr-floor"));
  CHECK(contains(said("--weight-decay -1"), "--weight-decay"));
  for (const auto& [habit, hint] : std::vector<std::pair<std::string, std::string>>{
           {"lr-decay 0.9", "--schedule step, with --lr-every and --lr-factor"},
           {"wd 0.1", "--weight-decay"},
           {"warmup-steps 5", "--warmup, in updates"},
           {"min-lr 0.1", "--lr-floor, a share of --lr"},
           {"gradient-accumulation-steps 2", "--accumulate, which cuts --batch into parts"}}) {
    CAPTURE(habit);
    CHECK(said("--" + habit) ==
          fmt::format("adding: --{}: there is no such option. Hint: {}.\n", words(habit)[0], hint));
  }
  CHECK(contains(said("--schedule cosin"), "Hint: cosine"));
  CHECK(contains(said("--optimizer AdamW"), "Hint: adamw"));
  const Result vary = go(dir, "copying --dry-run --vary batch --accumulate 2");
  CHECK(vary.err == "copying: --vary: batch draws one delay for a whole batch, which --accumulate would cut\n");
  CHECK(go(dir, "copying --dry-run --vary batch --examples 40").err ==
        "copying: --vary: batch draws one delay for a whole batch, so an example has none of its own: --examples 0 "
        "expected\n");
  CHECK(contains(go(dir, "adding --dry-run --batch 20 --accumulate 4").out, "batch 20 in 4 parts"));
}

TEST_CASE("--init-from: a run's best parameters or those of a file; a resumed run has its own") {
  const TempDir dir;
  const std::string start = "adding" + small + "--length 5 --hidden 4 --cell enrnn --enrnn.short 2 ";
  REQUIRE(go(dir, start + "--steps 12 --out " + (dir / "first")).code == 0);
  const TensorFile best = load_safetensors(dir / "first/best.safetensors");
  for (const std::string& from :
       {dir / "first", dir / "first/best.safetensors", dir / "first/checkpoint.safetensors"}) {
    const std::string out = dir / "again";
    const std::string rest = "--steps 1 --lr 0 --out " + out + " --init-from " + from;
    REQUIRE(go(dir, start + rest).code == 0);
    const TensorFile given = load_safetensors(from == dir / "first" ? dir / "first/best.safetensors" : from),
                     now = load_safetensors(out + "/checkpoint.safetensors");
    for (const auto& [name, value] : best.tensors) CHECK(elements(now.at(name)) == elements(given.at(name)));
    std::filesystem::remove_all(out);
  }
  REQUIRE(go(dir, start + "--steps 2 --out " + (dir / "second") + " --init-from " + (dir / "first")).code == 0);
  std::filesystem::remove_all(dir / "first");
  CHECK(go(dir, "adding --quiet --steps 4 --resume " + (dir / "second")).code == 0);  // it has its checkpoint

  const Result other = go(dir, "adding --dry-run --hidden 5 --cell enrnn --init-from " + (dir / "second"));
  CHECK(other.code == 2);
  CHECK_MESSAGE(contains(other.err, "adding: --init-from: [checkpoint] " + (dir / "second/best.safetensors")),
                other.err);
  CHECK_MESSAGE(contains(other.err, "Hint: --cell, --hidden, --dtype and the like must be as in that run"), other.err);
  CHECK_MESSAGE(contains(other.err, ", --hidden was 4 and is 5\n"), other.err);
  CHECK(std::count(other.err.begin(), other.err.end(), '\n') == 1);
  const Result nowhere = go(dir, "adding --dry-run --init-from " + (dir / "nowhere"));
  CHECK(nowhere.code == 2);
  CHECK_MESSAGE(contains(nowhere.err, "nowhere"), nowhere.err);
}

TEST_CASE("--init-from: a note says where columns or classes are others, which parameters do not know") {
  const TempDir dir;
  const auto data = [&](const std::string& name, const std::string& header, const std::string& kind) {
    std::string rows = header + "\n";
    for (int i = 0; i < 60; ++i) rows += fmt::format("{},{},{}\n", i % 7, i % 5, i % 2 ? "down" : kind);
    write_atomically(dir / name, rows);
    return dir / name;
  };
  const std::string start =
      "table --target kind --at each --window 6 --cell gru --hidden 4 --threads 1 --steps 2 --data ";
  REQUIRE(go(dir, start + data("a.csv", "a,b,kind", "up") + " --quiet --out " + (dir / "first")).code == 0);
  const auto notes = [&](const std::string& file, const std::string& more = "", const std::string& from = "first") {
    const Result r = go(dir, start + file + " --dry-run --init-from " + (dir / from) + more);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    return r.err;
  };
  CHECK(notes(dir / "a.csv").empty());
  CHECK(notes(dir / "a.csv", "", "first/best.safetensors").empty());
  const std::string exchanged = notes(data("b.csv", "b,a,kind", "up"));
  CHECK_MESSAGE(contains(exchanged, "note: --init-from " + (dir / "first") +
                                        ": input 1 was \"a\" and is \"b\"; parameters go by place, not by name\n"),
                exchanged);
  CHECK(std::count(exchanged.begin(), exchanged.end(), '\n') == 1);
  CHECK(contains(notes(dir / "b.csv", "", "first/best.safetensors"), "input 1 was"));
  CHECK(contains(notes(data("c.csv", "a,b,kind", "Up")), ": class 1 was \"down\" and is \"Up\";"));
  CHECK(contains(notes(data("d.csv", "a,b,sort", "up"), " --target sort"), ": target 1 was \"kind\" and is \"sort\";"));
}

TEST_CASE("--head-init is kept by a run, which starts again by it; runs of before the option go on as linear") {
  const TempDir dir;
  const std::string options =
      "adding" + small + "--length 10 --batch 6 --hidden 8 --cell gru --steps 4 --valid-every 2";
  const auto trained = [&](const std::string& name, const std::string& more) {
    const Result r = go(dir, options + more + " --out " + dir / name);
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return rows(dir / name);
  };
  const auto resumed = [&](const std::string& name) {
    for (const char* file : {"/checkpoint.safetensors", "/metrics.csv"})  // so that it begins from the initial values
      std::filesystem::remove(dir / name + file);
    const Result r = go(dir, "adding --quiet --resume " + dir / name);
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return rows(dir / name);
  };
  const auto linear = trained("linear", ""), eunn = trained("eunn", " --head-init eunn");
  CHECK(linear != eunn);
  CHECK(contains(read_file(dir / "eunn/config.toml"), "head-init = \"eunn\""));
  CHECK(resumed("eunn") == eunn);
  CHECK(contains(read_file(dir / "eunn/config.toml"), "head-init = \"eunn\""));
  std::string config = read_file(dir / "linear/config.toml");
  const std::string line = "head-init = \"linear\"\n";
  REQUIRE(contains(config, line));
  write_atomically(dir / "linear/config.toml", config.erase(config.find(line), line.size()));
  CHECK(resumed("linear") == linear);
  const Result unknown = go(dir, options + " --head-init glorot --out " + dir / "none");
  CHECK(unknown.code == 2);
  CHECK_MESSAGE(contains(unknown.err,
                         "--head-init: one of linear, glorot-normal, glorot-uniform, eunn expected, got "
                         "\"glorot\""),
                unknown.err);
}
