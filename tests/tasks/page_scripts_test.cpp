// The scripts of pages, in a browser: the order of tables, the ticks of charts, and when their axes are logarithmic.
#include <tuple>

#include "tasks/page/page.h"
#include "tests/support/browser.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Json = nlohmann::ordered_json;

/// What `script` sees on a page that compares groups with these validation losses.
std::map<std::string, int> seen_of(const std::vector<std::vector<double>>& groups, const std::string& script) {
  const TempDir dir;
  Json data{{"kind", "comparison"},      {"version", "1"},         {"title", "t"},        {"facts", Json::array()},
            {"problems", Json::array()}, {"differing", {"lr"}},    {"baseline", nullptr}, {"running", false},
            {"groups", Json::array()},   {"tables", Json::array()}};
  for (const std::vector<double>& losses : groups) {
    const std::string name = fmt::format("lr {}", data["groups"].size());
    Json group{{"name", name}, {"values", {name}}, {"seeds", 1}}, none = Json::array(), steps = none;
    for (std::size_t i = 0; i < losses.size(); ++i) none.push_back(nullptr), steps.push_back(i);
    if (!losses.empty())
      group["curve"]["mean"] = {{"step", steps},      {"examples", steps}, {"seconds", steps}, {"valid_loss", losses},
                                {"train_loss", none}, {"accuracy", none},  {"grad_norm", none}};
    data["groups"].push_back(group);
  }
  auto seen = in_browser(dir, page::html("t", data), script, 900, false);
  REQUIRE(seen.contains("overflow"));
  CHECK(seen["errors"] == 0);
  return seen;
}

}  // namespace

TEST_CASE("tables are sorted by the numbers within texts, with their units, fractions, exponents and signs") {
  if (!has_browser()) return;
  auto seen = seen_of({{1, 2}}, R"js(
const sorted = (...texts) => {
  const table = sortedTable("k" + Math.random(), [{name: "a"}], [...texts].reverse().map(text => [text]));
  const rows = () => [...table.querySelectorAll("td")].map(cell => cell.textContent).join("|");
  table.querySelector("button").click();
  const up = rows() === texts.join("|");
  table.querySelector("button").click();
  return up && rows() === [...texts].reverse().join("|") ? 1 : 0;
};
seen.units = sorted("3.451 s", "3.5 s", "10 s"); seen.rates = sorted("lr 0.001", "lr 0.01", "lr 0.02");
seen.signs = sorted("-10", "-2.5", "0.5 ± 3", "2"); seen.exponents = sorted("lr=1e-3,s2", "lr=2e-3,s1", "lr=2e-3,s10");
seen.dashes = sorted("run-2", "run-10", "run-b"); seen.numbers = sorted(-1e-7, 0.5, 1e21, "never");
seen.points = sorted(".25", "0.3", "gru");
)js");
  for (const char* what : {"units", "rates", "signs", "exponents", "dashes", "numbers", "points"})
    CHECK_MESSAGE(seen[what] == 1, what);
}

TEST_CASE("a chart has ticks that can be told apart, however wide or narrow its range is") {
  if (!has_browser()) return;
  std::vector<double> plateau;
  for (int i = 0; i < 45; ++i) plateau.push_back(0.95 + 0.01 * i);  // around 1
  for (const std::vector<double>& losses : {std::vector<double>{1e-32, 1, 1e30},
                                            {0.9988, 0.99885, 0.9991},
                                            {1.0000001, 1.0000003},
                                            {-1.23456e6, -1.23458e6},
                                            {3, 1, -1},
                                            {1e34, -2e35},
                                            {1e-200, 1e200},
                                            {7, 7},
                                            {0.001, 0.5, 2},
                                            plateau}) {
    CAPTURE(losses[0]);
    auto seen = seen_of({losses}, R"js(
const {_splits, _values, _size} = everyChart[0].plot.axes[1], pen = document.createElement("canvas").getContext("2d");
pen.font = "12px system-ui, sans-serif";
seen.cut = _values.filter(text => pen.measureText(text).width > _size - 10).length;
seen.ticks = _splits.length; seen.texts = new Set(_values).size;
const apart = _splits.slice(1).map((tick, i) => tick - _splits[i]);
seen.uneven = Math.max(...apart) > 1.01 * Math.min(...apart) ? 1 : 0;
)js");
    CHECK(seen["ticks"] >= 3);
    CHECK(seen["ticks"] <= 10);
    CHECK(seen["texts"] == seen["ticks"]);
    CHECK(seen["cut"] == 0);
    if (losses == plateau || losses[0] == 0.9988) CHECK(seen["uneven"] == 0);
  }
}

TEST_CASE("losses of which some are below 0 have a linear axis, on which each is seen") {
  if (!has_browser()) return;
  const char* look = R"js(const {min, max} = everyChart[0].plot.scales.y, seenY = everyChart[0].plot.data[1];
seen.log = everyChart[0].log === "log" ? 1 : 0; seen.shown = seenY.filter(y => y !== null && y >= min && y <= max).length;
)js";
  for (const auto& [losses, log, shown] : {std::tuple{std::vector<double>{3, 2, 0.1}, 1, 3},
                                           {std::vector<double>{-9, -9.5, -10}, 0, 3},
                                           {std::vector<double>{3, 1, -1}, 0, 3},
                                           {std::vector<double>{0, 0, 0}, 0, 3},
                                           {std::vector<double>{1, 0.1, 0}, 1, 2}}) {  // solved to the last bit
    CAPTURE(losses[2]);
    auto seen = seen_of({losses}, look);
    CHECK(seen["log"] == log);
    CHECK(seen["shown"] == shown);
  }
}

TEST_CASE("a page whose groups have not all a curve counts those that have one, and calls them no best") {
  if (!has_browser()) return;
  const char* look = R"js(const text = document.querySelector("main").textContent;
seen.count = text.includes("Curves of 2 of 3 groups; the table has all.") ? 1 : 0;
)js";
  CHECK(seen_of({{1, 2}, {}, {3, 4}}, look)["count"] == 1);
  CHECK(seen_of({{1, 2}, {3, 4}}, look)["count"] == 0);
}
