// report.html of runs, and the program report: what they hold, and in a browser, if there is one, what is seen.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/browser.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/pages.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

std::vector<std::string> small(const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"--delay", "5",  "--hidden",      "8", "--batch",   "2", "--valid-size", "4",
                                 "--steps", "20", "--valid-every", "5", "--threads", "1", "--quiet",      "--out",
                                 out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json data_of(const std::string& path) {
  const std::string page = read_file(path), begin = "id=\"data\">";
  const std::size_t first = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(first, page.find("</script>", first) - first));
}

/// Counts what is drawn and what reacts.
constexpr const char* look = R"js(
seen.charts = everyChart.length; seen.drawn = 0; seen.curves = 0; seen.wrong = 0; seen.bands = 0;
const coloured = chart => {
  const canvas = chart.area.querySelector("canvas");
  const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let found = 0;
  for (let i = 0; i < bytes.length; i += 4) {
    const [r, g, b, a] = bytes.subarray(i, i + 4);
    if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) ++found;
  }
  return found;
};
for (const chart of everyChart) {
  if (coloured(chart) > 100) ++seen.drawn;
  seen.curves += chart.curves.length;
  seen.bands += chart.curves.filter(curve => curve.low).length;
  if (Math.abs(chart.plot.width - chart.area.clientWidth) > 1) ++seen.wrong;
}
seen.tables = 0; seen.sorted = 0; seen.rows = 0; seen.links = document.querySelectorAll("td a").length;
seen.best = document.querySelectorAll("tr.best").length; seen.pictures = 0; seen.titles = 0; seen.broken = 0;
for (const cell of document.querySelectorAll("[data-table] td"))
  if (/^[\w.,+]+$/.test(cell.textContent)) {  // a word or a number is on one line
    const text = document.createRange();
    text.selectNodeContents(cell);
    if (new Set([...text.getClientRects()].map(line => line.top)).size > 1) ++seen.broken;
  }
for (const image of document.images) if (image.naturalWidth > 50) ++seen.pictures;
for (const box of document.querySelectorAll("[data-table]")) {
  ++seen.tables;
  seen.rows += box.querySelectorAll("tbody tr").length;
  box.querySelectorAll("th").forEach((head, c) => {
    ++seen.titles;
    for (const way of [1, -1]) {
      head.querySelector("button").click();
      const texts = [...box.querySelectorAll("tbody tr")].map(row => row.children[c].textContent);
      const there = texts.filter(t => t !== "" && t !== "-");
      const number = t => Number(t.replaceAll(",", "").replace(" s", ""));
      const ordered = there.every((t, i) => i === 0 || way * (Number.isNaN(number(t)) || Number.isNaN(number(there[i - 1]))
        ? inOrder(there[i - 1], t) : number(there[i - 1]) - number(t)) <= 0);
      const last = texts.slice(0, there.length).every(t => t !== "" && t !== "-");
      if (ordered && last && head.getAttribute("aria-sort") === (way > 0 ? "ascending" : "descending")) ++seen.sorted;
    }
  });
}
const press = text => [...document.querySelectorAll(".choice button")].find(b => b.textContent === text).click();
if (everyChart.length) {
  press("examples");
  if (!location.hash.includes("x=examples")) ++seen.wrong;
  const key = document.querySelector(".legend button"), shown = everyChart[0].plot.series.length;
  key.click();
  if (key.getAttribute("aria-pressed") !== "false" || everyChart[0].plot.series.length >= shown) ++seen.wrong;
  key.click();
  everyChart[0].zoom([0, 10]);
  if (everyChart[0].plot.scales.x.max !== undefined && everyChart[0].plot.scales.x.max > 10) ++seen.wrong;
  everyChart[0].zoom(null);
  document.querySelector(".chart .choice button[value=linear]").click();
  if (!location.hash.includes("=linear")) ++seen.wrong;
}
)js";

}  // namespace

TEST_CASE("a run writes its page; --no-report leaves it out, also of a resumed run") {
  const TempDir dir;
  REQUIRE(run("copying", small(dir / "a", {"--picture", "states"}), dir.path).code == 0);
  const auto data = data_of(dir / "a/report.html");
  CHECK(data["state"] == "finished");
  CHECK(data["title"] == "copying, T = 5 with srnn");
  CHECK(data["rows"]["step"] == std::vector<int>{5, 10, 15, 20});
  CHECK(data["rows"]["examples"] == std::vector<int>{10, 20, 30, 40});
  CHECK(data["record"]["steps"] == 20);
  CHECK(data["steps"] == 20);
  CHECK(data["left"].is_null());
  CHECK(data["preset"].is_null());
  CHECK(data["parameters"][0][0] == "embedding");
  CHECK(data["parameters"][0][1] == "10 x 8");
  CHECK(contains(data["options"].dump(), "[\"hidden\",\"8\"]"));
  REQUIRE(data["pictures"].size() == 1);
  CHECK(data["pictures"][0]["name"] == "states-h");
  CHECK(data["pictures"][0]["source"].get<std::string>().starts_with("data:image/"));
  const auto json = nlohmann::json::parse(read_file(dir / "a/run.json"));
  CHECK(data["record"]["best"]["step"] == json["best"]["step"]);

  REQUIRE(run("copying", small(dir / "b", {"--no-report"}), dir.path).code == 0);
  CHECK(!fs::exists(dir / "b/report.html"));
  REQUIRE(run("copying", {"--resume", dir / "b", "--steps", "25", "--quiet"}, dir.path).code == 0);
  CHECK(!fs::exists(dir / "b/report.html"));
  REQUIRE(run("copying", {"--resume", dir / "b", "--no-report=false", "--quiet", "--steps", "30"}, dir.path).code == 0);
  CHECK(data_of(dir / "b/report.html")["rows"]["step"].size() == 6);
}

TEST_CASE("the page of a run that goes on, and of one that was interrupted") {
  const TempDir dir;
  Child child("copying", small(dir / "a", {"--steps", "100000000"}), dir.path);
  nlohmann::json data;
  for (int i = 0; i < 3000; ++i) {  // the first page has no validation, the next one comes after two seconds
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!fs::exists(dir / "a/report.html")) continue;
    data = data_of(dir / "a/report.html");
    if (!data["rows"]["step"].empty()) break;
  }
  CHECK(data["state"] == "running");
  CHECK(!data["rows"]["step"].empty());
  CHECK(data["left"] > 0);
  CHECK(data["refresh"] >= 5);
  if (has_browser()) {
    const auto seen = in_browser(dir, read_file(dir / "a/report.html"),
                                 "seen.left = [...document.querySelectorAll('.cards span')].filter(s => s.textContent "
                                 "=== 'left').length; seen.bars = document.querySelectorAll('progress').length;",
                                 800, false);
    CHECK(seen.at("errors") == 0);
    CHECK(seen.at("left") == 1);
    CHECK(seen.at("bars") == 1);
  }
  child.send(SIGINT);
  CHECK(child.wait().code == 130);
  const auto last = data_of(dir / "a/report.html");
  CHECK(last["state"] == "interrupted");
  CHECK(last["record"]["steps"] == nlohmann::json::parse(read_file(dir / "a/run.json"))["steps"]);
}

TEST_CASE("the page of a run that diverged") {
  const TempDir dir;
  const Result r = run("copying", small(dir / "a", {"--lr", "1e38"}), dir.path);
  REQUIRE(r.code == 1);
  REQUIRE(contains(r.err, "at step"));
  const auto data = data_of(dir / "a/report.html");
  CHECK(data["state"] == "diverged");
  CHECK(data["record"].contains("diverged_at_step"));
}

TEST_CASE("a preset's number beside the run's, also after --resume") {
  const TempDir dir;
  const auto words = [&](const std::string& steps) {
    return std::vector<std::string>{"--preset",      "srnn/table5/adding-srnn",
                                    "--steps",       steps,
                                    "--hidden",      "4",
                                    "--valid-every", "2",
                                    "--valid-size",  "4",
                                    "--batch",       "2",
                                    "--length",      "10",
                                    "--quiet",       "--out",
                                    dir / "a"};
  };
  REQUIRE(run("adding", words("2"), dir.path).code == 0);
  const auto first = data_of(dir / "a/report.html")["preset"];
  CHECK(first["name"] == "srnn/table5/adding-srnn");
  CHECK(!first["reported"].get<std::string>().empty());
  REQUIRE(run("adding", {"--resume", dir / "a", "--steps", "4", "--quiet"}, dir.path).code == 0);
  CHECK(data_of(dir / "a/report.html")["preset"]["reported"] == first["reported"]);
}

TEST_CASE("a page that cannot be written does not end the run, but makes the program fail") {
  if (!fs::exists("/dev/full")) return;
  const TempDir dir;
  fs::create_directory(dir / "a");
  fs::create_symlink("/dev/full", dir / "a/report.html");
  const Result r = run("copying", small(dir / "a", {"--quiet=false"}), dir.path);
  CHECK(r.code == 1);
  CHECK(contains(r.err, "report.html] cannot be written: No space left on device; the run goes on"));
  CHECK(contains(r.out, "20 steps"));
  CHECK(nlohmann::json::parse(read_file(dir / "a/run.json"))["finished"] == true);
  fs::create_directory(dir / "b");
  write_atomically(dir / "file", "");
  const Result tb = run("copying", small(dir / "b", {"--tensorboard", dir / "file"}), dir.path);
  CHECK(tb.code == 1);
  CHECK(contains(tb.err, "lacks 4 validations"));
  CHECK(nlohmann::json::parse(read_file(dir / "b/run.json"))["finished"] == true);
}

TEST_CASE("--tensorboard: runs of the same name keep apart, and each resumed one goes on with its own events") {
  const TempDir dir;
  const auto files = [&](const std::string& name) {  // of events
    std::ptrdiff_t count = 0;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(dir / ("events/" + name), error))
      count += file.path().filename().string().starts_with("events.out") ? 1 : 0;
    return count;
  };
  const auto resume = [&](const std::string& folder, const std::string& steps) {
    return run("copying", {"--resume", folder, "--steps", steps, "--quiet", "--tensorboard", dir / "events"}, dir.path);
  };
  for (const std::string folder : {"a/s1", "b/s1", "c/s1"})
    REQUIRE(run("copying", small(dir / folder, {"--tensorboard", dir / "events"}), dir.path).code == 0);
  for (const std::string name : {"s1", "s1-2", "s1-3"}) CHECK(files(name) == 1);
  REQUIRE(resume(dir / "b/s1", "25").code == 0);
  REQUIRE(resume(dir / "b/../b/s1/", "30").code == 0);
  CHECK(files("s1") == 1);
  CHECK(files("s1-2") == 3);
  fs::rename(dir / "a", dir / "moved");
  REQUIRE(resume(dir / "moved/s1", "25").code == 0);
  CHECK(files("s1") == 2);
  fs::remove(dir / "events/s1/run-folder.txt");  // as an older version left it
  REQUIRE(resume(dir / "moved/s1", "30").code == 0);
  CHECK(files("s1") == 3);
  fs::remove_all(dir / "c");
  REQUIRE(run("copying", small(dir / "d/s1", {"--tensorboard", dir / "events"}), dir.path).code == 0);
  CHECK(files("s1-3") == 1);  // a new run takes nothing over
  CHECK(files("s1-4") == 1);
}

TEST_CASE("report compares runs: groups, seeds, what differs, the best") {
  const TempDir dir;
  const std::string hostile = "x</script><script>seen.errors += 100</script><img src=x onerror=seen.errors+=100>\"'|";
  for (const char* cell : {"gru", "lstm"})
    for (const char* seed : {"1", "2"})
      REQUIRE(
          run("copying", small(dir / (std::string("runs/") + cell + seed), {"--cell", cell, "--seed", seed}), dir.path)
              .code == 0);
  REQUIRE(run("copying", small(dir / ("runs/" + hostile), {"--cell", "rnn"}), dir.path).code == 0);
  const Result r = run("report", {dir / "runs", "--out", dir / "page.html", "--title", hostile}, dir.path);
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(contains(r.out, "page.html, 5 runs"));
  const auto data = data_of(dir / "page.html");
  CHECK(data["differing"] == std::vector<std::string>{"cell"});
  REQUIRE(data["groups"].size() == 3);
  const auto& rows = data["tables"][1]["rows"];
  REQUIRE(rows.size() == 5);
  CHECK(data["title"] == hostile);
  int best = 0;
  double lowest = 1e9;
  for (const auto& row : rows) lowest = std::min(lowest, row["cells"][4].get<double>());
  for (const auto& row : rows)
    if (row["best"] == true) {
      ++best;
      CHECK(row["cells"][4] == lowest);
    }
  CHECK(best >= 1);
  for (const auto& group : data["groups"]) {
    if (group["name"] == "rnn") continue;
    CHECK(group["seeds"] == 2);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& curve = group["curve"];
      const double low = curve["low"]["valid_loss"][i], mean = curve["mean"]["valid_loss"][i],
                   high = curve["high"]["valid_loss"][i];
      CHECK(low <= mean);
      CHECK(mean == doctest::Approx((low + high) / 2).epsilon(1e-4));
    }
  }

  write_atomically(dir / "runs/gru1/metrics.csv", read_file(dir / "runs/gru1/metrics.csv") + "nonsense\n");
  const Result damaged = run("report", {dir / "runs", "--out", dir / "other.html", "--metric", "accuracy"}, dir.path);
  CHECK(damaged.code == 1);
  CHECK(contains(damaged.err, "left out: "));
  CHECK(data_of(dir / "other.html")["tables"][1]["rows"].size() == 4);

  fs::create_directory(dir / "two");
  fs::copy(dir / "runs/lstm1", dir / "two/again");
  const Result twice = run("report", {dir / "runs", dir / "two", "--out", dir / "twice.html"}, dir.path);
  CHECK(contains(twice.err, "left out: again: has the options and the seed of "));
  CHECK(contains(twice.err, "/lstm1, which alone counts\n"));
  CHECK(contains(twice.out, "twice.html, 4 runs"));
  fs::create_directory_symlink(dir / "runs", dir / "link");
  const Result linked = run("report", {dir / "runs", dir / "link", "--out", dir / "twice.html"}, dir.path);
  CHECK_MESSAGE(!contains(linked.err, "lstm1"), linked.err);  // it is no other run
  CHECK(contains(linked.out, "twice.html, 4 runs"));
  fs::create_directory(dir / "three");
  fs::copy(dir / "runs/lstm1", dir / "three/lstm1");
  if (has_gnuplot()) {
    const std::string first = dir / "runs/lstm1";
    const Result drawn = run("compare", {first, first, dir / "three/lstm1", "--out", dir / "c.svg"}, dir.path);
    CHECK(drawn.code == 0);
    CHECK(contains(drawn.err, "lstm1: has the options and the seed of " + first + "\n"));
    CHECK(std::count(drawn.err.begin(), drawn.err.end(), '\n') == 2);
    CHECK(!contains(read_file(dir / "c.svg"), "runs)"));
  }

  if (!has_browser()) return;
  for (const auto& [width, dark] : {std::pair{400, true}, {1600, false}}) {
    CAPTURE(width);
    auto seen = in_browser(dir, read_file(dir / "page.html"), look, width, dark);
    REQUIRE(seen.contains("overflow"));
    CHECK(seen["errors"] == 0);
    CHECK(seen["charts"] == 4);
    CHECK(seen["drawn"] == 4);
    CHECK(seen["curves"] == 14);  // three groups in each, and the baseline of the losses
    CHECK(seen["bands"] == 8);
    CHECK(seen["tables"] == 2);
    CHECK(seen["rows"] == 8);
    CHECK(seen["best"] >= 2);
    CHECK(seen["links"] == 5);
    CHECK(seen["titles"] > 12);
    CHECK(seen["sorted"] == 2 * seen["titles"]);
    CHECK(seen["wrong"] == 0);
    CHECK(seen["overflow"] == 0);
    CHECK(seen["broken"] == 0);
    CHECK(seen["dark"] == (dark ? 1 : 0));
    auto own = in_browser(dir, read_file(dir / "runs/lstm2/report.html"), look, width, dark);
    REQUIRE(own.contains("overflow"));
    CHECK(own["errors"] == 0);
    CHECK(own["charts"] == 3);
    CHECK(own["drawn"] == 3);
    CHECK(own["sorted"] == 2 * own["titles"]);
    CHECK(own["wrong"] == 0);
    CHECK(own["overflow"] == 0);
  }
}

TEST_CASE("rows without a number, and many rows") {
  const TempDir dir;
  REQUIRE(run("copying", small(dir / "a", {"--picture", "states"}), dir.path).code == 0);
  std::string text = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n";
  for (int i = 1; i <= 100'000; ++i)
    text += fmt::format("{},{},{},{},{},,{}\n", i, 2 * i, 0.125 * i, 1.0 / i, i % 7 ? "inf" : "0.5", i % 3 ? "" : "2");
  write_atomically(dir / "a/metrics.csv", text);
  REQUIRE(run("report", {dir / "a", "--out", dir / "page.html"}, dir.path).code == 0);
  CHECK(fs::file_size(dir / "page.html") < 2'000'000);
  REQUIRE(run("copying", {"--resume", dir / "a", "--picture", "states", "--quiet"}, dir.path).code == 0);
  CHECK(fs::file_size(dir / "a/report.html") < 2'000'000);
  if (!has_browser()) return;
  for (const char* page : {"page.html", "a/report.html"}) {
    auto seen = in_browser(dir, read_file(dir / page), look, 900, false);
    REQUIRE(seen.contains("overflow"));
    CHECK(seen["errors"] == 0);
    CHECK(seen["drawn"] == seen["charts"]);
    CHECK(seen["wrong"] == 0);
  }
}

TEST_CASE("reports.md: every command does what the page says") {
  const TempDir dir;
  make_tree(dir);
  const auto blocks = commands_of(REEL_SOURCE_DIR "/docs/reports.md");
  REQUIRE(blocks.size() == 3);
  CHECK(contains(run_block(dir, blocks[0]), "picture: runs/copying/states-h.svg"));
  CHECK(data_of(dir / "runs/copying/report.html")["pictures"].size() == 1);
  const std::string pages = run_block(dir, blocks[1]);
  CHECK(contains(pages, "24 of 24 runs done\n"));
  CHECK(contains(pages, "page: cells.html, 24 runs\n"));
  CHECK(contains(pages, "page: today.html, 9 runs\n"));
  for (const char* page : {"sweeps/cells/report.html", "cells.html"}) {
    const auto data = data_of(dir / page);
    CHECK(data["differing"] == std::vector<std::string>{"cell", "lr"});
    CHECK(data["groups"].size() == 6);
    CHECK(data["groups"][0]["seeds"] == 4);
    CHECK(data["tables"][1]["rows"].size() == 24);
    CHECK(data["tables"][1]["rows"][0]["href"].get<std::string>().ends_with("/report.html"));
  }
  run_block(dir, blocks[2]);
  CHECK(std::distance(fs::directory_iterator(dir / "events/watched"), {}) == 2);  // with run-folder.txt
}

TEST_CASE("bad usage is told in a line") {
  const TempDir dir;
  const auto wrong = [&](const std::vector<std::string>& words, int code, const char* part) {
    const Result r = run("report", words, dir.path);
    CHECK(r.code == code);
    CHECK_MESSAGE(contains(r.err, part), r.err);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  };
  wrong({}, 2, "folders of runs expected");
  wrong({dir / "none"}, 1, "does not exist");
  wrong({dir.path}, 1, "holds no run");
  wrong({dir.path, "--out", "page.txt"}, 2, "ends with .html");
  wrong({dir.path, "--best", "first"}, 2, "--best");
  REQUIRE(run("copying", small(dir / "a"), dir.path).code == 0);
  wrong({dir / "a", "--metric", "nosuch", "--out", dir / "page.html"}, 1,
        "no run has \"nosuch\"; they have valid_loss");
  CHECK_FALSE(fs::exists(dir / "page.html"));
  wrong({dir / "a", "--out", dir / "no/page.html"}, 1, "cannot be written");
}
