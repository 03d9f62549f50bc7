// What pages of runs say where there is nothing to draw, and how they write numbers beside an axis.
#include "tests/support/browser.h"
#include "tests/support/check.h"
#include "tests/support/child.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> small(const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"--delay", "5",  "--hidden",      "8", "--batch",   "2", "--valid-size", "4",
                                 "--steps", "20", "--valid-every", "5", "--threads", "1", "--quiet",      "--out",
                                 out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("a run that diverged before its first validation: no run has one, and there is no count of curves") {
  const TempDir dir;
  REQUIRE(run("copying", small(dir / "a", {"--lr", "1e38"}), dir.path).code == 1);
  const Result r = run("report", {dir / "a", "--out", dir / "page.html"}, dir.path);
  CHECK(r.code == 0);
  CHECK(r.out == "page: " + (dir / "page.html") + ", 1 run\n");
  if (!has_browser()) return;
  const char* look = R"js(const text = document.querySelector("main").textContent;
seen.none = text.includes("No run has a validation.") ? 1 : 0; seen.lone = text.includes("The run has no validation.") ? 1 : 0;
seen.yet = text.includes("validation yet") ? 1 : 0; seen.best = text.includes("Curves of") ? 1 : 0;)js";
  auto seen = in_browser(dir, read_file(dir / "page.html"), look, 900, false);
  REQUIRE(seen.contains("overflow"));
  CHECK(seen["errors"] == 0);
  CHECK(seen["none"] == 1);
  CHECK(seen["yet"] == 0);
  CHECK(seen["best"] == 0);
  auto own = in_browser(dir, read_file(dir / "a/report.html"), look, 900, false);
  CHECK(own["lone"] == 1);
  CHECK(own["yet"] == 0);
}

TEST_CASE("numbers from a million up have an exponent beside an axis and separators in a table; a baseline is dashed") {
  if (!has_browser()) return;
  const TempDir dir;
  REQUIRE(run("copying", small(dir / "a"), dir.path).code == 0);
  std::string text = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n";
  for (int i = 1; i <= 8; ++i) text += fmt::format("{0}000000,{0}000000,{0},{0}000000,{0}000000,,\n", i);
  write_atomically(dir / "a/metrics.csv", text);
  REQUIRE(run("report", {dir / "a", "--out", dir / "page.html"}, dir.path).code == 0);
  auto seen = in_browser(dir, read_file(dir / "page.html"), R"js(
const same = (a, b) => a === b ? 1 : 0;
seen.small = same(numberText(999999), "999,999"); seen.large = same(numberText(1000000), "1e+6");
seen.negative = same(numberText(-12345678), "-1.235e+7"); seen.count = same(countText(12345678), "12,345,678");
const chart = everyChart[0], axis = chart.plot.axes[1];
seen.wide = axis.values(chart.plot, axis._splits).filter(text => text.length > 8).length;
seen.ticks = axis._splits.length;
seen.table = document.body.textContent.includes("8,000,000") ? 1 : 0;
seen.dashed = [...document.querySelectorAll(".legend button")].filter(b => b.textContent.startsWith("baseline"))
  .filter(b => b.querySelector("i").style.background.includes("gradient")).length;
seen.solid = [...document.querySelectorAll(".legend button i")].filter(i => !i.style.background.includes("gradient")).length;
)js",
                         900, false);
  REQUIRE(seen.contains("overflow"));
  CHECK(seen["errors"] == 0);
  for (const char* name : {"small", "large", "negative", "count", "table"}) CHECK_MESSAGE(seen[name] == 1, name);
  CHECK(seen["ticks"] > 2);
  CHECK(seen["wide"] == 0);
  CHECK(seen["dashed"] > 0);
  CHECK(seen["solid"] > 0);
}
