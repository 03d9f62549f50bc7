// Results that are kept: when a run solved its task, campaigns of several tables, what they store, the pages, --check.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "backends/cpu/product_libraries.h"
#include "tasks/app/provenance.h"
#include "tasks/runner/pages.h"
#include "tasks/runner/results.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

const std::string tiny = R"toml(paper = "Tiny (nobody 2000)"
[one]
title = "One"
where = "Figure 1"
task = "adding"
options = "--length 3 --hidden 16 --batch 20 --valid-size 50 --steps 200 --valid-every 10 --lr 1e-2 --solved-below 0.9"
metric = "best.valid_loss"
[one.models]
lstm = "--cell lstm"
gru = "--cell gru"
[one.reported]
lstm = 0.001
[one.expect]
below_share = { lstm = 0.9 }
order = ["gru < lstm * 0.000001"]
[one.columns.solved]
metric = "solved_at.step"
unit = "updates"
expect.below = { all = 200 }
[two]
title = "Two"
where = "Figure 2"
task = "copying"
options = "--delay 3 --hidden 8 --batch 2 --valid-size 2 --steps 20"
metric = "valid_loss"
figure = "bars"
curves = true
models.srnn = "--cell srnn --srnn.width 2"
)toml";

struct Place {
  Place() {
    fs::create_directories(dir / "presets");
    write_atomically(dir / "presets/tiny.toml", tiny);
    write_atomically(
        dir / "presets/other.toml",
        "[a]\ntitle = \"A\"\ntask = \"copying\"\noptions = \"--delay 2 --hidden 8 --batch 2 --valid-size 2 "
        "--steps 20\"\nmetric = \"valid_loss\"\nmodels.gru = \"--cell gru\"\n");
  }
  Result reproduce(std::vector<std::string> words) const {
    words.insert(words.end(), {"--runs", dir / "runs", "--results", dir / "results", "--threads", "1"});
    return run("reproduce", words, dir.path, {"REEL_PRESETS=" + (dir / "presets")});
  }
  Result check() const {
    return run("reproduce", {"--check", dir / "results"}, dir.path, {"REEL_PRESETS=" + (dir / "presets")});
  }
  TempDir dir;
};

std::vector<std::vector<std::string>> lines_of(const std::string& text, char separator) {
  std::vector<std::vector<std::string>> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    out.emplace_back();
    for (std::string field; std::getline(fields, field, separator);) out.back().push_back(field);
  }
  return out;
}

nlohmann::json json_of(const std::string& path) { return nlohmann::json::parse(read_file(path)); }

}  // namespace

TEST_CASE(
    "run.json says at which validation the loss was first below a share of the baseline; a resumed run keeps it") {
  const TempDir dir;
  const std::vector<std::string> words{
      "--cell",        "lstm", "--length",     "3",  "--hidden", "16",   "--batch",   "20", "--steps", "150",
      "--valid-every", "10",   "--valid-size", "50", "--lr",     "1e-2", "--threads", "1",  "--quiet"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return more;
  };
  REQUIRE(run("adding", with({"--solved-below", "0.9", "--out", dir / "a"}), dir.path).code == 0);
  const auto record = json_of(dir / "a/run.json");
  const auto solved = record["solved_at"];
  CHECK(solved["share"] == 0.9);
  const double limit = 0.9 * record["baseline"].get<double>();
  const auto rows = lines_of(read_file(dir / "a/metrics.csv"), ',');
  const auto first = std::find_if(rows.begin() + 1, rows.end(), [&](const auto& r) { return std::stod(r[4]) < limit; });
  REQUIRE(first != rows.end());
  CHECK(solved["step"] == std::stoi((*first)[0]));
  CHECK(solved["examples"] == std::stoi((*first)[1]));
  CHECK(solved["seconds"] == std::stod((*first)[2]));
  double best = 1e9;
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) best = std::min(best, std::stod((*row)[4]));
  CHECK(record["best"]["valid_loss"] == best);

  // stopped after it was solved, and resumed
  const auto step = solved["step"].get<int>();
  REQUIRE(step < 150);
  Child child("adding", with({"--solved-below", "0.9", "--out", dir / "b", "--steps", "100000"}), dir.path);
  for (int i = 0; i < 3000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::error_code error;
    if (fs::exists(dir / "b/metrics.csv", error) &&
        lines_of(read_file(dir / "b/metrics.csv"), ',').size() > static_cast<std::size_t>(step) / 10 + 2)
      break;
  }
  child.send(SIGINT);
  CHECK(child.wait().code == 130);
  const auto stopped = json_of(dir / "b/run.json");
  CHECK(stopped["solved_at"]["step"] == step);
  const auto at = stopped["steps"].get<int>();
  REQUIRE(run("adding", {"--resume", dir / "b", "--steps", fmt::format("{}", at + 20), "--quiet"}, dir.path).code == 0);
  const auto resumed = json_of(dir / "b/run.json");
  CHECK(resumed["steps"] == at + 20);
  CHECK(resumed["solved_at"] == stopped["solved_at"]);

  REQUIRE(run("adding", with({"--solved-below", "1e-9", "--out", dir / "c"}), dir.path).code == 0);
  CHECK(json_of(dir / "c/run.json")["solved_at"]["step"].is_null());
  REQUIRE(run("adding", with({"--solved-below", "0", "--out", dir / "d"}), dir.path).code == 0);
  CHECK_FALSE(json_of(dir / "d/run.json").contains("solved_at"));
}

TEST_CASE(
    "a paper with several seeds: numbers, curves and a page are stored, whose tables are the data's, and judged") {
  const Place place;
  const Result r = place.reproduce({"tiny", "--seeds", "2", "--jobs", "2"});
  CAPTURE(r.out);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "fail: gru: "));
  CHECK(contains(r.out, "tiny/one: 3 pass, 1 fail, 0 not judged"));
  CHECK(contains(r.out, "results/tiny.md: 3 pass, 1 fail, 0 not judged"));

  // the table of the page: means over the seeds in the CSV, as the runs themselves have them
  const auto csv = lines_of(read_file(place.dir / "results/tiny/one.csv"), ',');
  REQUIRE(csv.size() == 1 + 2 * 2 * 2);  // models, seeds, measures
  const auto mean_of = [&](const std::string& preset, const std::string& metric) {
    double total = 0;
    int seeds = 0;
    for (const auto& line : csv)
      if (line[0] == preset && line[2] == metric) total += std::stod(line[4]), ++seeds;
    REQUIRE(seeds == 2);
    return total / seeds;
  };
  const auto page = lines_of(read_file(place.dir / "results/tiny.md"), '|');
  const auto cell = [&](const std::string& label, std::size_t column) -> std::string {
    for (const auto& line : page)
      if (line.size() > column && line[1] == " " + label + " ") return line[column].substr(1, line[column].size() - 2);
    return "no such row";
  };
  for (const std::string model : {"lstm", "gru"}) {
    CHECK(cell(model, 3).starts_with(fmt::format("{:.4g} ±", mean_of("tiny/one/" + model, "best.valid_loss"))));
    CHECK(
        cell(model + ": solved", 3).starts_with(fmt::format("{:.4g}", mean_of("tiny/one/" + model, "solved_at.step"))));
    CHECK(cell(model + ": solved", 4) == "pass");
    CHECK(cell(model, 7) == "1, 2");
    CHECK(cell(model, 9) == fmt::format("`adding --preset tiny/one/{} --seed SEED --threads 1`", model));
  }
  CHECK(cell("lstm", 2) == "0.001");
  CHECK(cell("lstm", 4) == "pass");
  CHECK(cell("gru", 4) == "fail");
  CHECK(cell("srnn", 4) == "-");
  const std::string text = read_file(place.dir / "results/tiny.md");
  CHECK(contains(text, "Not as the paper has it:\n\n- gru: "));
  CHECK(contains(text, "Reel 0"));
  CHECK(contains(read_file(place.dir / "results/README.md"), "| [Tiny (nobody 2000)](tiny.md) | 3 | 1 | 0 | 0 | 6 | "));
  if (has_gnuplot())
    for (const char* figure : {"(tiny/one.svg)", "(tiny/two.svg)", "(tiny/two-curves.svg)"})
      CHECK_MESSAGE(contains(text, figure), figure);

  // a stored command, typed again, gives the same number
  std::istringstream command(csv[1].back());
  std::vector<std::string> typed{std::istream_iterator<std::string>(command), {}};
  typed.insert(typed.end(), {"--out", place.dir / "again", "--quiet"});
  const std::vector<std::string> environment{"REEL_PRESETS=" + (place.dir / "presets")};
  REQUIRE(run(typed[0], {typed.begin() + 1, typed.end()}, place.dir.path, environment).code == 0);
  CHECK(fmt::format("{}", json_of(place.dir / "again/run.json")["best"]["valid_loss"].get<double>()) == csv[1][4]);

  SUBCASE("--check judges without running, and finds a page or data that were changed") {
    fs::remove_all(place.dir / "runs");
    const Result checked = place.check();
    CAPTURE(checked.err);
    CHECK(checked.code == 0);
    CHECK(contains(checked.out, "tiny: 3 pass, 1 fail, 0 not judged; 6 runs"));
    CHECK(contains(checked.out, "pass        tiny/one/lstm: "));
    CHECK(contains(checked.out, "fail        tiny/one/gru: "));
    CHECK(contains(checked.out, "\nall: 3 pass, 1 fail, 0 not judged; 6 runs"));
    CHECK(contains(checked.out, "\nkernels: " + cpu::product_libraries() + " (6 runs)\n"));
    CHECK(contains(text, processor() + ", " + cpu::product_libraries() + ", 1 thread; "));
    CHECK_FALSE(fs::exists(place.dir / "runs"));
    write_atomically(place.dir / "results/tiny.md", text + "more\n");
    CHECK(place.check().code == 1);
    CHECK(contains(place.check().err, "tiny.md: is not what the data say. Hint: reproduce --pages "));
    CHECK(run("reproduce", {"--pages", place.dir / "results"}, place.dir.path, environment).code == 0);
    CHECK(read_file(place.dir / "results/tiny.md") == text);
    if (const fs::path svg = place.dir / "results/tiny/one.svg"; fs::exists(svg)) {  // drawn from the data, by gnuplot
      const std::string drawn = read_file(svg);
      write_atomically(svg, "old");
      CHECK(run("reproduce", {"--pages", place.dir / "results"}, place.dir.path, environment).code == 0);
      CHECK(read_file(svg) == drawn);
      fs::remove(svg);
      fs::create_directory(svg);
      const Result unwritten = run("reproduce", {"--pages", place.dir / "results"}, place.dir.path, environment);
      CHECK(unwritten.code == 1);
      CHECK_MESSAGE(contains(unwritten.err, "reproduce: [" + svg.string() + "] cannot be written: "), unwritten.err);
      CHECK(std::count(unwritten.err.begin(), unwritten.err.end(), '\n') == 1);
      fs::remove(svg);
    }
    const std::string numbers = read_file(place.dir / "results/tiny/one.csv");
    write_atomically(place.dir / "results/tiny/one.csv", numbers + "tiny/one/lstm,3\n");
    CHECK(place.check().code == 1);
    CHECK(contains(place.check().err, "one.csv:10] 20 fields expected, got 2"));
    write_atomically(place.dir / "results/tiny/one.csv", "a,b\n");
    CHECK(contains(place.check().err, "one.csv] the head preset,seed,"));
    CHECK(run("reproduce", {"--check", place.dir / "nowhere"}, place.dir.path, environment).code == 2);
  }
  SUBCASE("results from before kernels were recorded are read, and get them from run folders that have them") {
    std::string before = read_file(place.dir / "results/tiny/one.csv");
    for (const std::string& field : {std::string(",kernels"), "," + cpu::product_libraries()})
      for (std::size_t at = before.find(field); at != before.npos; at = before.find(field))
        before.erase(at, field.size());
    write_atomically(place.dir / "results/tiny/one.csv", before);
    REQUIRE(run("reproduce", {"--pages", place.dir / "results"}, place.dir.path, environment).code == 0);
    const Result checked = place.check();
    CHECK(checked.code == 0);
    CHECK(contains(checked.out, "(2 runs), not recorded (4 runs)\n"));
    REQUIRE(place.reproduce({"tiny/one", "--seeds", "3"}).code == 0);
    CHECK(contains(place.check().out, "\nkernels: " + cpu::product_libraries() + " (8 runs)\n"));  // of run.json
  }
  SUBCASE("numbers that are missing, lines that contradict each other, and tables without presets are found") {
    const std::string path = place.dir / "results/tiny/one.csv", numbers = read_file(path);
    const auto with = [&](std::size_t line, std::size_t field, const std::string& value) {
      auto all = csv;
      all.at(line).at(field) = value;
      all.at(0).resize(csv[0].size());
      std::string out;
      for (const auto& fields : all) {
        std::string joined;
        for (const std::string& f : fields) joined += (joined.empty() ? "" : ",") + f;
        out += joined + (&fields == &all.front() ? "\n" : ",\n");  // none of these has data, the last field
      }
      write_atomically(path, out);
      return place.check();
    };
    // The lines: lstm with seeds 1 and 2, then gru, each with two measures. The name of the processor has a comma.
    for (const char* gone : {"", "nan"}) {
      const Result r = with(3, 4, gone);
      CHECK_MESSAGE(contains(r.out, "not judged  tiny/one/lstm: no number of seed 2\n"), r.out, r.err);
      CHECK_MESSAGE(contains(r.out, "not judged  tiny/one/gru: lstm: no number of seed 2\n"), r.out);
      CHECK(r.code == 1);
    }
    CHECK(contains(with(4, 4, "inf").out, "fail        tiny/one/lstm, solved: never"));
    for (const auto& [field, name] : {std::pair{5, "baseline"}, {6, "parameters"}, {7, "updates"}}) {
      const Result r = with(4, static_cast<std::size_t>(field), "77");
      CHECK(r.code == 1);
      CHECK_MESSAGE(contains(r.err, fmt::format("one.csv:5] {}: \"{}\" expected, as in the first line of this run, got "
                                                "\"77\"",
                                                name, csv[4][static_cast<std::size_t>(field)])),
                    r.err);
    }
    write_atomically(path, numbers);
    CHECK(place.check().code == 0);

    std::string renamed = tiny;
    renamed.replace(renamed.find("[two]"), 5, "[three]");
    write_atomically(place.dir / "presets/tiny.toml", renamed);
    for (int i = 0; i < 2; ++i) {
      const Result r = place.check();
      CHECK(r.code == 1);
      CHECK(contains(r.err, "results/tiny/two.csv: there is no preset of this table\n"));
      CHECK_FALSE(contains(r.err, "one.csv"));
      CHECK_FALSE(contains(r.err, "two-curves.csv"));
      const Result pages = run("reproduce", {"--pages", place.dir / "results"}, place.dir.path, environment);
      CHECK(pages.code == 0);
      CHECK(contains(pages.err, "results/tiny/two.csv: there is no preset of this table\n"));
    }
  }
  SUBCASE("a row whose seeds have different commands lists each of them") {
    REQUIRE(place.reproduce({"tiny/one/lstm", "--seeds", "3", "--stop-below", "100"}).code == 0);
    CHECK(contains(read_file(place.dir / "results/tiny.md"),
                   "| `adding --preset tiny/one/lstm --seed SEED --threads 1 --stop-below 100` |"));
    fs::remove_all(place.dir / "results");
    REQUIRE(place.reproduce({"tiny/one/lstm", "--seeds", "1", "--stop-below", "100"}).code == 0);
    const std::string one = read_file(place.dir / "results/tiny/one.csv");
    fs::remove_all(place.dir / "results");
    REQUIRE(place.reproduce({"tiny/one/lstm", "--seeds", "3"}).code == 0);
    std::string mixed = read_file(place.dir / "results/tiny/one.csv");
    const std::size_t first = mixed.find('\n') + 1, second = mixed.find("tiny/one/lstm,2,");
    mixed.replace(first, second - first, one.substr(one.find('\n') + 1));
    write_atomically(place.dir / "results/tiny/one.csv", mixed);
    REQUIRE(run("reproduce", {"--pages", place.dir / "results"}, place.dir.path, environment).code == 0);
    CHECK(contains(read_file(place.dir / "results/tiny.md"),
                   "| `adding --preset tiny/one/lstm --seed 1 --threads 1 --stop-below 100` (seed 1), `adding --preset "
                   "tiny/one/lstm --seed SEED --threads 1` (seeds 2, 3) |"));
  }
  SUBCASE("what the results have is not run again, even if its folder is gone") {
    fs::remove_all(place.dir / "runs");
    const std::string numbers = read_file(place.dir / "results/tiny/one.csv");
    const Result again = place.reproduce({"tiny", "--seeds", "2"});
    CHECK(again.code == 0);
    CHECK(contains(again.out, "(kept)"));
    CHECK_FALSE(fs::exists(place.dir / "runs/tiny"));
    CHECK(read_file(place.dir / "results/tiny/one.csv") == numbers);
    CHECK(read_file(place.dir / "results/tiny.md") == text);
  }
  SUBCASE("more seeds are added to what is stored; a change of options makes stored runs stale") {
    REQUIRE(place.reproduce({"tiny/one/lstm", "--seeds", "3"}).code == 0);
    CHECK(lines_of(read_file(place.dir / "results/tiny/one.csv"), ',').size() == 1 + 5 * 2);
    CHECK(contains(read_file(place.dir / "results/tiny.md"), "| 1, 2, 3 | "));
    CHECK(place.check().code == 0);
    std::string changed = tiny;
    changed.replace(changed.find("--hidden 16"), 11, "--hidden 17");
    write_atomically(place.dir / "presets/tiny.toml", changed);
    const Result stale = place.check();
    CHECK(stale.code == 1);
    CHECK(contains(stale.err, "tiny/one/lstm, seed 1: the preset has changed since, or is gone"));
  }
}

TEST_CASE("names, papers and --all; nothing, both, or an unknown one is refused; a part of the updates is not stored") {
  const Place place;
  CHECK(place.reproduce({}).code == 2);
  CHECK(place.reproduce({"tiny", "--all"}).code == 2);
  const Result unknown = place.reproduce({"tiny/two", "tiny/tow"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "tiny/tow: there is no such paper, table, figure or preset, near ones are tiny/two"));
  CHECK(place.reproduce({"tiny", "--cells", "nru"}).code == 2);
  const Result two = place.reproduce({"tiny/two", "other/a", "--budget", "1"});
  CHECK(two.code == 0);
  CHECK(contains(two.out, "tiny/two: Two"));
  CHECK(contains(two.out, "other/a: A"));
  CHECK(place.reproduce({"tiny/one/gru", "tiny/one/lstm", "--budget", "0.1"}).code == 0);
  CHECK(fs::exists(place.dir / "results/tiny/one-lstm+gru.md"));
  CHECK_FALSE(contains(two.out, "tiny/one"));
  CHECK(fs::exists(place.dir / "results/other.md"));
  CHECK(place.reproduce({"tiny/one", "--budget", "0.2", "--cells", "gru"}).code == 0);
  CHECK_FALSE(fs::exists(place.dir / "results/tiny/one.csv"));
  const Result all = place.reproduce({"--all", "--cells", "gru,srnn", "--stop-below", "100"});
  CHECK(all.code == 0);
  CHECK(contains(read_file(place.dir / "results/tiny/one.csv"),
                 "adding --preset tiny/one/gru --seed 1 --threads 1 --stop-below 100"));
  CHECK(contains(all.out, "10 of 200"));  // the first validation is low enough
}

TEST_CASE("--hours: the cheapest runs first, as many as fit; the same command goes on") {
  const Place place;
  const Result none = place.reproduce({"--all", "--hours", "0.0000001"});
  CHECK(none.code == 0);
  CHECK_MESSAGE(contains(none.err, "0 of 4 runs fit in --hours 1e-07; the next one takes about "), none.err);
  CHECK_FALSE(fs::exists(place.dir / "results/tiny/one.csv"));
  const auto costs = json_of(place.dir / "runs/costs.json");
  CHECK(costs.size() == 4);  // measured once for each preset
  for (const auto& [name, cost] : costs.items()) CHECK_MESSAGE(cost.get<double>() > 0, name);
  const Result all = place.reproduce({"--all", "--hours", "1"});
  CHECK(all.code == 0);
  CHECK_FALSE(contains(all.err, "stopped"));
  CHECK(fs::exists(place.dir / "results/tiny/one.csv"));
  CHECK(fs::exists(place.dir / "results/other/a.csv"));
}

TEST_CASE("the results in the source tree are what their pages say") {
  const std::string folder = REEL_SOURCE_DIR "/docs/results";
  REQUIRE(fs::is_directory(folder));
  std::vector<std::string> stale;
  const auto papers = read_papers(read_presets(REEL_SOURCE_DIR "/presets"), folder, stale);
  CHECK(stale.empty());
  CHECK(foreign_numbers(read_presets(REEL_SOURCE_DIR "/presets"), folder).empty());
  CHECK_FALSE(papers.empty());
  for (const PaperResults& paper : papers)
    CHECK(read_file(folder + "/" + paper.file + ".md") == page_of(paper, folder));
  CHECK(read_file(folder + "/README.md") == index_of(papers));
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder))
    if (file.path().extension() == ".svg")
      CHECK_MESSAGE(!contains(read_file(file.path()), "<title>Gnuplot</title>"), file.path());
  VerdictCount all;
  for (const PaperResults& paper : papers) all.add(paper.score);
  CHECK(contains(read_file(REEL_SOURCE_DIR "/README.md"),
                 fmt::format("{} rows pass, {} fail ({} of them better than the paper): [docs/results]", all.pass,
                             all.fail, all.better)));
}
