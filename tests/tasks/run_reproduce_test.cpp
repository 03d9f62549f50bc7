// reproduce and compare through the real programs, on tables that take a moment.
#include <array>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

const std::string tiny = R"toml(paper = "Tiny (nobody 2000)"
[table1]
title = "Two tasks"
where = "Table 1"
options = "--hidden 8 --batch 2 --valid-size 2 --steps 40"
metric = "valid_loss"
note = "Nothing is established."
[table1.cases]
copying = "--delay 3 --srnn.width 2"
adding = "--length 5 --srnn.width 2"
[table1.tasks]
copying = "copying"
adding = "adding"
[table1.models]
srnn = "--cell srnn"
lstm = "--cell lstm"
[table1.tweaks]
adding-lstm = "--lr 1e30"
[table1.reported]
copying = { srnn = 0.5, lstm = "not solved" }
[table1.unverified]
adding-srnn = 0.25
[table1.parameters]
copying-srnn = 164
copying-lstm = 7
[slow]
title = "Slow"
where = "Figure 1"
task = "copying"
options = "--delay 50 --hidden 32 --steps 3000 --valid-every 10 --valid-size 2"
metric = "valid_loss"
models.srnn = "--cell srnn"
[map]
title = "By hand"
where = "Figure 2"
task = "mechanism"
options = "--delay 20 --symbols 2,4 --lengths 2,3 --draws 25 --planes 16"
metric = "success"
unit = "%"
figure = "map"
models.d16 = ""
[inside]
title = "States"
where = "Figure 3"
task = "adding"
options = "--length 9 --hidden 8 --steps 40 --picture states"
metric = "valid_loss"
figure = "pictures"
models.srnn = "--cell srnn"
models.gru = "--cell gru"
)toml";

struct Place {
  Place() {
    fs::create_directories(dir / "presets");
    write_atomically(dir / "presets/tiny.toml", tiny);
  }
  std::vector<std::string> words(std::vector<std::string> arguments) const {
    for (const std::string& word : {std::string("--runs"), dir / "runs", std::string("--results"), dir / "results",
                                    std::string("--threads"), std::string("1")})
      arguments.push_back(word);
    return arguments;
  }
  Result reproduce(const std::vector<std::string>& arguments) const {
    return run("reproduce", words(arguments), dir.path, {"REEL_PRESETS=" + (dir / "presets")});
  }
  nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(read_file(dir / ("results/" + name + ".json")));
  }
  TempDir dir;
};

}  // namespace

TEST_CASE("reproduce: reported beside measured, counts compared, a failure told in its row while the rest goes on") {
  const Place place;
  const Result r = place.reproduce({"tiny/table1", "--seeds", "2"});
  CAPTURE(r.out);
  CAPTURE(r.err);
  CHECK(r.code == 1);  // one row failed
  CHECK(contains(r.out, "tiny/table1: Two tasks (Tiny (nobody 2000), Table 1)"));
  CHECK(contains(r.out, "note: Nothing is established."));
  CHECK(contains(r.out, "164 (exact)"));
  CHECK(contains(r.out, "(NOT 7)"));
  CHECK(contains(r.out, "0.25 (unverified)"));
  CHECK(contains(r.out, "failed: adding: [train]"));
  const auto json = place.json("tiny/table1");
  REQUIRE(json["rows"].size() == 4);
  CHECK(json["rows"][0]["preset"] == "tiny/table1/copying-srnn");
  CHECK(json["rows"][0]["runs"].size() == 2);
  CHECK(json["rows"][0]["reported_value"] == 0.5);
  CHECK(json["rows"][0]["runs"][0]["updates"] == 40);
  // the mean of what the runs themselves say
  double total = 0;
  for (const auto& one : json["rows"][0]["runs"]) {
    const auto record = nlohmann::json::parse(read_file(one["folder"].get<std::string>() + "/run.json"));
    CHECK(one["measured"] == record["valid_loss"]);
    CHECK(one["parameters"] == record["parameters"]);
    total += record["valid_loss"].get<double>();
  }
  CHECK(json["rows"][0]["mean"].get<double>() == doctest::Approx(total / 2));
  CHECK(json["rows"][0]["spread"].get<double>() > 0);
  CHECK(json["rows"][3]["mean"].is_null());
  const std::string md = read_file(place.dir / "results/tiny/table1.md");
  CHECK(contains(md, "| copying-srnn | 0.5 | "));
  CHECK(contains(md, "- adding-lstm: "));
  const std::string page = read_file(place.dir / "results/tiny/table1.html");
  for (const char* part : {"{\"cells\":[\"copying-srnn\",\"0.5\",\"", "\"seeds\",\"count\""})
    CHECK_MESSAGE(contains(page, part), part);
  if (has_gnuplot())
    for (const char* figure : {"copying.svg", "copying.png", "adding.svg"})
      CHECK_MESSAGE(fs::exists(place.dir / (std::string("results/tiny/table1-") + figure)), figure);

  SUBCASE("what is done is kept") {
    const auto before = fs::last_write_time(json["rows"][0]["runs"][0]["folder"].get<std::string>() + "/run.json");
    const Result again = place.reproduce({"tiny/table1", "--seeds", "2", "--cells", "srnn"});
    CHECK(again.code == 0);
    CHECK(contains(again.out, "(kept)"));
    const auto after = place.json("tiny/table1-srnn");
    CHECK(after["rows"].size() == 2);
    CHECK(after["rows"][0]["mean"] == json["rows"][0]["mean"]);
    CHECK(fs::last_write_time(after["rows"][0]["runs"][0]["folder"].get<std::string>() + "/run.json") == before);
  }
  SUBCASE("compare draws runs into one figure") {
    const std::string a = json["rows"][0]["runs"][0]["folder"], b = json["rows"][1]["runs"][0]["folder"];
    const Result drawn = run("compare", {a, b, "--out", place.dir / "both.svg", "--log", "on"}, place.dir.path);
    if (has_gnuplot()) {
      CHECK(drawn.code == 0);
      const std::string svg = read_file(place.dir / "both.svg");
      for (const char* text : {"srnn", "lstm", "baseline", "validation loss"}) CHECK_MESSAGE(contains(svg, text), text);
    }
    const std::string empty = place.dir / "empty";
    fs::create_directory(empty);
    fs::copy_file(a + "/config.toml", empty + "/config.toml");
    write_atomically(empty + "/run.json", R"({"diverged_at_step": 3})");
    const Result left = run("compare", {a, empty, "--out", place.dir / "one.svg"}, place.dir.path);
    CHECK(contains(left.err, "compare: left out: " + empty + ": has no validation; it diverged at step 3\n"));
    if (has_gnuplot()) CHECK(left.code == 0);
    CHECK(run("compare", {place.dir / "nowhere"}, place.dir.path).code == 1);
    CHECK(run("compare", {}, place.dir.path).code == 2);
    CHECK(run("compare", {a, "--names", "x,y"}, place.dir.path).code == 2);
  }
}

TEST_CASE("reproduce: runs and results of other data are not taken for these") {
  const Place place;
  write_atomically(place.dir / "presets/letters.toml",
                   "[t]\ntitle = \"T\"\ntask = \"charlm\"\noptions = \"--hidden 4 --batch 2 --unroll 5 --steps 20\"\n"
                   "metric = \"valid_loss\"\nmodels.gru = \"--cell gru\"\n");
  for (const auto& [data, text] : {std::pair{"a", "abcdefghij"}, {"b", "jihgfedcba"}}) {
    fs::create_directories(place.dir / (std::string(data) + "/ptb"));
    for (const char* part : {"train", "valid", "test"})
      write_atomically(place.dir / fmt::format("{}/ptb/ptb.{}.txt", data, part), std::string(text) + text + text);
  }
  const std::string a = place.dir / "a", b = place.dir / "b";
  const auto with = [&](const std::string& data) { return place.reproduce({"letters/t", "--data", data}); };
  REQUIRE(with(a).code == 0);
  const std::string csv = read_file(place.dir / "results/letters/t.csv");
  CHECK(contains(csv, "," + a + "\n"));
  CHECK(contains(with(a + "/../a/").out, "(kept)"));
  const auto refused = [&](const std::string& data, const std::string& where) {
    const Result r = with(data);
    CHECK(r.code == 1);
    CHECK_MESSAGE(contains(r.out, fmt::format("failed: {}: has a run of the data in {}, got {}. Hint: --data {}, or "
                                              "other folders for --runs and --results\n",
                                              where, a, data, a)),
                  r.out, r.err);
    CHECK_FALSE(contains(r.out, "(kept)"));
    CHECK(read_file(place.dir / "results/letters/t.csv") == csv);
  };
  refused(b, place.dir / "results");
  const std::string folder = place.json("letters/t")["rows"][0]["runs"][0]["folder"];
  CHECK(folder.empty());
  fs::rename(place.dir / "results", place.dir / "kept");
  std::string run_folder;
  for (const auto& entry : fs::directory_iterator(place.dir / "runs/letters/t")) run_folder = entry.path();
  const Result of_run = with(b);
  CHECK(of_run.code == 1);
  CHECK_MESSAGE(contains(of_run.out, "failed: " + run_folder + ": has a run of the data in " + a + ", got " + b),
                of_run.out);
  CHECK_FALSE(fs::exists(place.dir / "results/letters/t.csv"));
  CHECK(fs::exists(run_folder + "/run.json"));
  fs::remove_all(place.dir / "results");
  fs::rename(place.dir / "kept", place.dir / "results");
  fs::remove_all(place.dir / "runs");
  refused(b, place.dir / "results");
  refused(place.dir / "nowhere", place.dir / "results");
  CHECK(contains(with(a).out, "(kept)"));
  CHECK_FALSE(fs::exists(place.dir / "runs/letters"));
  std::string old = csv;  // of an older version, which did not record the data
  old.replace(old.find(",data\n"), 6, "\n");
  old.replace(old.find("," + a + "\n"), a.size() + 2, "\n");
  write_atomically(place.dir / "results/letters/t.csv", old);
  CHECK(contains(with(b).out, "(kept)"));
}

TEST_CASE("reproduce: a budget is a share of the updates, 20 at least") {
  const Place place;
  const Result r = place.reproduce({"tiny/table1", "--budget", "0.75", "--cells", "srnn", "--cases", "copying"});
  CHECK(r.code == 0);
  CHECK(contains(r.out, "30 of 40"));
  CHECK(place.reproduce({"tiny/table1/copying-srnn", "--budget", "0.01"}).code == 0);
  CHECK(place.json("tiny/table1/copying-srnn")["rows"][0]["runs"][0]["updates"] == 20);
}

TEST_CASE("reproduce: after Ctrl-C the same command goes on with the run that it stopped") {
  const Place place;
  Child child("reproduce", place.words({"tiny/slow"}), place.dir.path, {"REEL_PRESETS=" + (place.dir / "presets")});
  std::string folder;
  for (int i = 0; i < 3000 && folder.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(place.dir / "runs", error))
      if (entry.path().filename() == "checkpoint.safetensors") folder = entry.path().parent_path();
  }
  REQUIRE(!folder.empty());
  child.send(SIGINT);
  const Result stopped = child.wait();
  CHECK(stopped.code == 130);
  CHECK(contains(stopped.out, "interrupted"));
  const auto steps = nlohmann::json::parse(read_file(folder + "/run.json"))["steps"].get<int>();
  CHECK(steps < 3000);
  const Result rest = place.reproduce({"tiny/slow"});
  CHECK(rest.code == 0);
  const auto run = place.json("tiny/slow")["rows"][0]["runs"][0];
  CHECK(run["folder"] == folder);
  CHECK(run["updates"] == 3000);
}

TEST_CASE("reproduce: a run that could not put all its files in place is not kept") {
  if (!has_gnuplot()) return;
  const Place place;
  const std::vector<std::string> words{"tiny/table1", "--cells", "srnn", "--cases", "copying"};
  REQUIRE(place.reproduce(words).code == 0);
  const std::string folder = place.json("tiny/table1-copying-srnn")["rows"][0]["runs"][0]["folder"];
  fs::remove(folder + "/run.json");
  fs::remove(folder + "/curve.svg");
  fs::create_directory(folder + "/curve.svg");  // where no picture can be written
  CHECK(contains(place.reproduce(words).out, "failed: copying: [" + folder + "/curve.svg]"));
  fs::remove(folder + "/curve.svg");
  CHECK(place.reproduce(words).code == 0);
  CHECK(fs::is_regular_file(folder + "/curve.svg"));
}

TEST_CASE(
    "reproduce: validations that or options that cannot be read are told; the lock of a worker that was killed goes") {
  const Place place;
  const std::vector<std::string> words{"tiny/table1", "--cells", "srnn", "--cases", "copying"};
  REQUIRE(place.reproduce(words).code == 0);
  const std::string folder = place.json("tiny/table1-copying-srnn")["rows"][0]["runs"][0]["folder"];
  const std::string metrics = read_file(folder + "/metrics.csv"), curves = "results/tiny/table1-curves.csv";
  const std::string kept = read_file(place.dir / curves);
  write_atomically(folder + "/metrics.csv", "damaged\n");
  write_atomically(folder + "/worker.lock", "a worker that was killed\n");
  fs::last_write_time(folder + "/worker.lock", fs::file_time_type::clock::now() - std::chrono::hours(1));
  const Result damaged = place.reproduce(words);
  CHECK(damaged.code == 1);
  CHECK_MESSAGE(contains(damaged.out, "failed: [" + folder + "/metrics.csv"), damaged.out);
  CHECK(read_file(place.dir / curves) == kept);
  CHECK_FALSE(fs::exists(folder + "/worker.lock"));
  write_atomically(folder + "/metrics.csv", metrics);
  const std::string config = read_file(folder + "/config.toml");
  write_atomically(folder + "/config.toml", "steps = \n");
  const Result unread = place.reproduce(words);
  CHECK(unread.code == 1);
  CHECK_MESSAGE(contains(unread.err, "reproduce: left out of " + place.dir / "results/tiny/table1-copying-srnn.html: "),
                unread.err);
  write_atomically(folder + "/config.toml", config);
  const Result again = place.reproduce(words);
  CHECK(again.code == 0);
  CHECK(contains(again.out, "(kept)"));
}

TEST_CASE("reproduce: pictures of runs lie beside the table; a part of a table has a file of its own") {
  const Place place;
  const Result r = place.reproduce({"tiny/inside", "--cells", "srnn"});
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK_FALSE(fs::exists(place.dir / "results/tiny/inside.json"));
  CHECK(place.json("tiny/inside-srnn")["rows"].size() == 1);
  CHECK(place.reproduce({"tiny/inside"}).code == 0);
  CHECK(place.json("tiny/inside")["rows"].size() == 2);
  if (!has_gnuplot()) return;
  CHECK(place.json("tiny/inside")["figures"] ==
        std::vector<std::string>{"inside-srnn-states-h.svg", "inside-gru-states-h.svg"});
  for (const std::string name : {"inside-srnn-srnn-states-h", "inside-srnn-states-h", "inside-gru-states-h"}) {
    CHECK(fs::exists(place.dir / ("results/tiny/" + name + ".svg")));
    CHECK(fs::exists(place.dir / ("results/tiny/" + name + ".png")));
  }
}

TEST_CASE("reproduce: two at once keep apart; names of presets lead nowhere else; a result that cannot be written") {
  const Place place;
  const std::vector<std::string> environment{"REEL_PRESETS=" + (place.dir / "presets")};
  const TempDir other;
  Child first("reproduce", place.words({"tiny/slow"}), place.dir.path, environment);
  std::error_code error;
  for (int i = 0; i < 3000 && !fs::exists(place.dir / "results/tiny/slow.lock", error); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Result second = run("reproduce", place.words({"tiny/slow"}), other.path, environment);
  CHECK(second.code == 1);
  CHECK(contains(second.err, "results/tiny/slow] is in use by reproduce (process "));
  first.send(SIGTERM);
  CHECK(first.wait().code == 130);
  CHECK_FALSE(fs::exists(place.dir / "results/tiny/slow.lock"));

  for (const std::string bad : {"../../../x", "a/b", ".x", "a\\nb"}) {
    for (const std::string& section :
         {fmt::format(
              "[\"{}\"]\ntitle = \"t\"\nwhere = \"w\"\ntask = \"copying\"\nmetric = \"valid_loss\"\nmodels.a = \"\"\n",
              bad),
          fmt::format(
              "[t]\ntitle = \"t\"\nwhere = \"w\"\ntask = \"copying\"\nmetric = \"valid_loss\"\nmodels.\"{}\" = \"\"\n",
              bad),
          fmt::format("[t]\ntitle = \"t\"\nwhere = \"w\"\ntask = \"{}\"\nmetric = \"valid_loss\"\nmodels.a = \"\"\n",
                      bad)}) {
      write_atomically(place.dir / "presets/evil.toml", "paper = \"E\"\n" + section);
      const Result r = place.reproduce({"--list"});
      CHECK(r.code == 1);
      CHECK(contains(r.err, "cannot be a name"));
    }
  }
  fs::remove(place.dir / "presets/evil.toml");

  const std::string runs = place.dir / "|touch PWNED; $(touch PWNED)", results = place.dir / "it's `touch PWNED`";
  const auto map = [&](const std::string& into) {
    return run(
        "reproduce",
        {"tiny/inside", "--cells", "srnn", "--budget", "0.5", "--threads", "1", "--runs", runs, "--results", into},
        place.dir.path, environment);
  };
  CHECK(map(results).code == 0);
  CHECK(fs::exists(results + "/tiny/inside-srnn.md"));
  CHECK_FALSE(fs::exists("PWNED"));
  if (!has_gnuplot()) return;
  const std::string figure = results + "/tiny/inside-srnn-budget-0.5-srnn-states-h.svg";
  REQUIRE(fs::remove(figure));
  fs::create_directory(figure);
  const Result full = map(results);
  CHECK(full.code == 1);
  CHECK(contains(full.err, "inside-srnn-budget-0.5-srnn-states-h.svg] cannot be written: Is a directory"));
  CHECK(contains(read_file(results + "/tiny/inside-srnn.md"), "cannot be written: Is a directory"));
}

TEST_CASE("reproduce: maps of solutions by hand; names, lists, errors") {
  const Place place;
  const Result map = place.reproduce({"tiny/map"});
  CAPTURE(map.err);
  CHECK(map.code == 0);
  CHECK(place.json("tiny/map")["rows"][0]["mean"].get<double>() > 50);
  if (has_gnuplot()) CHECK(fs::exists(place.dir / "results/tiny/map-d16.svg"));
  CHECK(contains(place.reproduce({"--list"}).out, "tiny/table1"));
  const Result wrong = place.reproduce({"tiny/tabel1"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "tiny/tabel1: there is no such paper, table, figure or preset, near ones are tiny/table1"));
  CHECK(place.reproduce({}).code == 2);
  const Result cells = place.reproduce({"tiny/table1", "--cells", "gru"});
  CHECK(cells.code == 2);
  CHECK(contains(cells.err, "--cells: gru is not in tiny/table1"));
}

TEST_CASE("reproduce --check: a lowest loss that solved_at or the curve contradicts") {
  const TempDir dir;
  for (const auto& [table, model, loss, says] : std::vector<std::array<std::string, 4>>{
           {"srnn/fig2", "T100-rnn", "0.001", "by solved_at.step the loss was never below 0.00866"},
           {"srnn/fig2", "T100-srnn", "0.5", "the lowest one of its curve is 0"},
           {"enrnn/fig2", "enrnn", "1e-09", "the lowest one of its curve is 5.97"}}) {
    const std::string stored = REEL_SOURCE_DIR "/docs/results/" + table, copy = dir / table, name = table + "/" + model;
    fs::create_directories(fs::path(copy).parent_path());
    fs::copy_file(stored + "-curves.csv", copy + "-curves.csv", fs::copy_options::overwrite_existing);
    const std::string text = read_file(stored + ".csv"), before = name + ",1,best.valid_loss,,";
    const std::size_t at = text.find(before) + before.size();
    write_atomically(copy + ".csv", text.substr(0, at) + loss + text.substr(text.find(',', at)));
    const Result r = run("reproduce", {"--check", dir.path}, dir.path, {"REEL_PRESETS=" REEL_SOURCE_DIR "/presets"});
    CHECK(r.code == 1);
    CHECK_MESSAGE(contains(r.err, "reproduce: " + name + ", seed 1: best.valid_loss is " + loss + ", but " + says),
                  r.err);
  }
}
