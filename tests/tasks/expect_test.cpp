// What presets expect of their rows: how it is read, what is refused, and how rows are judged by it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/app/statistics.h"
#include "tasks/runner/verdict.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();

/// A table of three models in two cases; `more` begins with keys of its section, and may go on with tables.
PresetTable table_of(const std::string& more) {
  const std::size_t table = more.find("\n["), end = more.starts_with('[') ? 0
                                                    : table == more.npos  ? more.size()
                                                                          : table + 1;
  return parse_presets("f.toml", "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n" +
                                     more.substr(0, end) +
                                     "[t.cases]\na = \"\"\nb = \"\"\n[t.models]\nx = \"\"\ny = \"\"\nz = \"\"\n"
                                     "[t.reported]\na = { x = 10, y = \"12.5 ± 0.5\", z = \"failed\" }\n" +
                                     more.substr(end))
      .at(0);
}

/// A report of that table, with a number for each row, in the order a-x, a-y, a-z, b-x, b-y, b-z; NaN: not run.
Report report_of(const PresetTable& table, const std::vector<std::vector<double>>& values) {
  Report report{table, 1, 1, "", {}};
  for (std::size_t r = 0; r < table.presets.size(); ++r) {
    ReportRow row{table.presets[r], {}};
    for (std::size_t s = 0; r < values.size() && s < values[r].size(); ++s) {
      PresetRun run;
      run.seed = s + 1;
      run.folder = "f";
      run.baseline = 2;
      run.measured = {values[r][s]};
      row.runs.push_back(run);
    }
    report.rows.push_back(row);
  }
  return report;
}

Judgement judged(const std::string& more, const std::vector<std::vector<double>>& values, std::size_t row = 0) {
  const Report report = report_of(table_of(more), values);
  return judge(report, report.rows.at(row), 0);
}

Verdict verdict(const std::string& more, const std::vector<std::vector<double>>& values, std::size_t row = 0) {
  return judged(more, values, row).verdict;
}

}  // namespace

TEST_CASE("an order: pairs of neighbours, with factors and offsets") {
  const auto one = parse_order("a-b < c * 2 + 0.5 < d");
  REQUIRE(one.size() == 2);
  CHECK(one[0].left.label == "a-b");
  CHECK(one[0].less);
  CHECK(one[0].right.label == "c");
  CHECK(one[0].right.factor == 2);
  CHECK(one[0].right.offset == 0.5);
  CHECK(one[1].left.label == "c");
  CHECK(one[1].left.factor == 2);
  CHECK(one[1].right.label == "d");
  const Term scaled = parse_order("a < b + 1 * 2")[0].right;  // from left to right
  CHECK(scaled.factor == 2);
  CHECK(scaled.offset == 2);
  const auto two = parse_order("a > b - 3");
  CHECK_FALSE(two[0].less);
  CHECK(two[0].right.offset == -3);
  for (const auto& [text, why] : {std::pair{"", "a name is expected"},
                                  {"a", "two names"},
                                  {"a <", "a name is expected"},
                                  {"a < < b", "a name is expected"},
                                  {"a < b > c", "one of < and >"},
                                  {"a b", "<, >, *, + or - expected, got b"},
                                  {"a < b +", "a number is expected after +"},
                                  {"a < b * x", "a number is expected after *"},
                                  {"a < b * inf", "a number is expected after *"}})
    CHECK_MESSAGE(contains(error_of([&, t = std::string(text)] { parse_order(t); }), why), text);
}

TEST_CASE("bounds of the number, of its share of the baseline, and of its distance from what is reported") {
  CHECK(verdict("expect.below.x = 3\n", {{2.5}}) == Verdict::pass);
  CHECK(verdict("expect.below.x = 3\n", {{3.5}}) == Verdict::fail);
  CHECK(verdict("expect.below.x = 3\n", {{2, 3.9}}) == Verdict::pass);  // the mean over seeds
  CHECK(verdict("expect.below.x = 3\n", {{2, 4.1}}) == Verdict::fail);
  CHECK(verdict("expect.above.x = 3\n", {{3.5}}) == Verdict::pass);
  CHECK(verdict("expect.above.x = 3\n", {{2.5}}) == Verdict::fail);
  CHECK(verdict("expect.below_share.x = 0.5\n", {{0.9}}) == Verdict::pass);  // of a baseline of 2
  CHECK(verdict("expect.below_share.x = 0.5\n", {{1.1}}) == Verdict::fail);
  CHECK(verdict("expect.above_share.all = 0.5\n", {{1.1}}) == Verdict::pass);
  CHECK(verdict("expect.above_share.all = 0.5\n", {{0.9}}) == Verdict::fail);
  CHECK(verdict("expect.within.all = 0.5\n", {{10.5}}) == Verdict::pass);
  CHECK(verdict("expect.within.all = 0.5\n", {{9.5}}) == Verdict::pass);
  CHECK(verdict("expect.within.all = 0.5\n", {{10.6}}) == Verdict::fail);
  CHECK(verdict("expect.within.all = 0.5\n", {{10}, {12.9}}, 1) == Verdict::pass);  // of 12.5, told with a deviation
  CHECK(verdict("expect.within.all = 0.5\n", {{10}, {13.1}}, 1) == Verdict::fail);
  CHECK(verdict("expect.within.all = 0.5\n", {{10}, {12.5}, {1}}, 2) == Verdict::none);  // "failed" is no number
  CHECK(verdict("expect.within.all = 0.3\n", {{10.3}}) == Verdict::pass);  // though 10.3 - 10 > 0.3 in binary
  CHECK(verdict("expect.within_share.x = 0.1\n", {{11}}) == Verdict::pass);
  CHECK(verdict("expect.within_share.x = 0.1\n", {{11.1}}) == Verdict::fail);
  for (const char* bound : {"below.x = 3", "above.x = 3"})  // the bound itself is neither below nor above
    CHECK(verdict(fmt::format("expect.{}\n", bound), {{3}}) == Verdict::fail);
  for (const char* bound : {"below_share.x = 0.5", "above_share.x = 0.5"})
    CHECK(verdict(fmt::format("expect.{}\n", bound), {{1}}) == Verdict::fail);
  const Report bits = report_of(table_of("unit = \"bits\"\nexpect.below_share.x = 0.5\n"), {{1.1}});  // 2 is in nats
  CHECK(judge(bits, bits.rows[0], 0).verdict == Verdict::pass);
  CHECK(measured_text(bits.rows[0], 0) == "1.1 (0.381 of baseline)");
  const PresetTable decibels = parse_presets("f.toml",
                                             "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"loss_db\"\n"
                                             "expect.within_share.x = 0.1\n[t.cases]\na = \"\"\n[t.models]\nx = \"\"\n"
                                             "[t.reported]\na = { x = -40 }\n")
                                   .at(0);
  for (const auto& [value, wanted] : {std::pair{-43.9, Verdict::pass}, {-36.1, Verdict::pass}, {-44.1, Verdict::fail}})
    CHECK(judge(report_of(decibels, {{value}}), report_of(decibels, {{value}}).rows[0], 0).verdict == wanted);
  CHECK(verdict("expect = { below = { x = 3 }, above = { x = 2 } }\n", {{2.5}}) == Verdict::pass);  // both
  const Judgement both = judged("expect = { below = { x = 3 }, above = { x = 2 } }\n", {{1.5}});
  CHECK(both.verdict == Verdict::fail);
  CHECK(both.why == "1.5, above 2 expected");
  CHECK(!both.better);
}

TEST_CASE("a number beyond what is reported fails, and is called better") {
  const auto of = [](const char* rules, double value) { return judged(rules, {{value}}); };
  CHECK(of("expect.within.all = 0.5\n", 9).why == "9, within 0.5 of 10 expected, better");  // a loss
  CHECK(of("expect.within.all = 0.5\n", 9).better);
  CHECK(!of("expect.within.all = 0.5\n", 11).better);
  CHECK(!of("expect.within.all = 0.5\n", 10).better);                                // passes
  CHECK(!of("expect = { within = { x = 0.5 }, above = { x = 9.5 } }\n", 9).better);  // fails for another reason, too
}

TEST_CASE("an order judges the row on its left, in each case that has both models") {
  const std::string order = "expect.order = [\"x < y * 2 < z\"]\n";
  const Report report = report_of(table_of(order), {{3}, {2}, {3.9}, {4.1}, {2}, {9}});
  CHECK(judge(report, report.rows[0], 0).verdict == Verdict::pass);
  CHECK(judge(report, report.rows[1], 0).verdict == Verdict::fail);  // 2 * 2 < 3.9 does not hold
  CHECK(judge(report, report.rows[2], 0).verdict == Verdict::none);
  CHECK(judge(report, report.rows[3], 0).verdict == Verdict::fail);
  CHECK(judge(report, report.rows[3], 0).why == "4.1, below 2 (as 4) of b-y expected");
  CHECK(judge(report, report.rows[4], 0).verdict == Verdict::pass);
  CHECK(verdict("expect.order = [\"a-x < b-x\"]\n", {{1}, {}, {}, {2}}) == Verdict::pass);
  CHECK(verdict("expect.order = [\"a-x > b-x + 1\"]\n", {{2}, {}, {}, {1.5}}) == Verdict::fail);
  CHECK(verdict("expect.order = [\"a-x < b-x\"]\n", {{1}}) == Verdict::not_judged);  // the other has not run
  CHECK(verdict("expect = { order = [\"a-x < b-x\"], below = { x = 0.5 } }\n", {{1}}) == Verdict::fail);
  CHECK(verdict("expect.order = [\"a-x < b-x\"]\n", {{300}, {}, {}, {inf}}) == Verdict::pass);  // never solved
  CHECK(verdict("expect.order = [\"a-x < b-x\"]\n", {{inf}, {}, {}, {300}}) == Verdict::fail);
}

TEST_CASE("a verdict is open while the row to compare with has no run yet") {
  Report report = report_of(table_of("expect = { order = [\"x < y\"], below.x = 3 }\n"), {{1}});
  const auto shown = [&](bool ended) {
    const std::string line = report_line(report, report.rows[0], 8, ended);
    return contains(line, "  open ") ? "open" : contains(line, "  not judged ") ? "not judged" : "pass or fail";
  };
  CHECK(shown(false) == std::string("open"));
  CHECK(shown(true) == std::string("not judged"));
  report.budget = 0.5;
  CHECK(shown(false) == std::string("not judged"));
  report.budget = 1;
  report.rows[1].runs = report.rows[0].runs;
  CHECK(shown(false) == std::string("pass or fail"));
  report.rows[1].runs.clear();
  report.rows[0].runs[0].measured = {4};
  CHECK(shown(false) == std::string("pass or fail"));  // it fails, whatever y has
}

TEST_CASE("columns stay in line beside a long text of what is reported") {
  Report report = report_of(table_of(""), {{1}, {}, {2}});
  report.rows[0].preset.measures[0].reported = "stays at the baseline for all runs";
  const std::string head = report_head(report, 8);
  const std::size_t column = head.find("measured") - head.rfind('\n', head.find("measured")) - 1;
  CHECK(report_line(report, report.rows[0], 8).find("1 (0.5 of baseline)") == column);
  CHECK(report_line(report, report.rows[2], 8).find("2 (1 of baseline)") == column);
}

TEST_CASE("rows that are not judged, and those that fail whatever they measured") {
  const std::string below = "expect.below.all = 3\n";
  CHECK(verdict("", {{1}}) == Verdict::none);
  CHECK(verdict("", std::vector<std::vector<double>>{}) == Verdict::none);
  CHECK(text_of(Verdict::none) == "-");
  CHECK(verdict(below, std::vector<std::vector<double>>{}) == Verdict::not_judged);
  CHECK(judged(below, std::vector<std::vector<double>>{}).why == "not run");
  CHECK(verdict(below, {{none, none}}) == Verdict::not_judged);
  Report report = report_of(table_of(below + "[t.parameters]\na-y = 7\n"), {{1}, {1}});
  const auto& row = report.rows;
  report.rows[1].runs[0].parameters = 8;
  CHECK(judge(report, row[1], 0).verdict == Verdict::fail);  // has no 7 parameters
  report.rows[1].runs[0].parameters = 7;
  CHECK(judge(report, row[1], 0).verdict == Verdict::pass);
  report.rows[0].runs[0].interrupted = true;
  CHECK(judge(report, row[0], 0).verdict == Verdict::not_judged);
  report.rows[0].runs[0].interrupted = false;
  report.rows[0].runs[0].problem = "no data";
  CHECK(judge(report, row[0], 0).verdict == Verdict::not_judged);
  report.rows[0].runs[0].diverged = true;
  CHECK(judge(report, row[0], 0).verdict == Verdict::fail);
  for (const double budget : {0.5, 2.0}) {
    report.budget = budget;
    CHECK(judge(report, row[1], 0).verdict == Verdict::not_judged);
  }
}

TEST_CASE("a row that must diverge passes if every run does, and fails if one does not") {
  const std::string rule = "expect.diverges.x = true\n";
  Report report = report_of(table_of(rule), {{none, none}});
  const ReportRow& row = report.rows[0];
  const auto judged_with = [&](int diverged) {
    for (int i = 0; i < 2; ++i) {
      PresetRun& run = report.rows[0].runs[static_cast<std::size_t>(i)];
      run.diverged = i < diverged;
      run.problem = run.diverged ? "diverged" : "";
      run.measured = {run.diverged ? none : 1};
    }
    return judge(report, row, 0);
  };
  CHECK(judged_with(2).verdict == Verdict::pass);
  CHECK(judged_with(1).verdict == Verdict::fail);
  CHECK(judged_with(1).why == "seed 2 did not diverge");
  CHECK(judged_with(0).verdict == Verdict::fail);
  report.rows[0].runs[1].interrupted = true;
  CHECK(judge(report, row, 0).why == "seed 2 is not finished");
  CHECK(judge(report, row, 0).verdict == Verdict::not_judged);
  CHECK(verdict(rule, std::vector<std::vector<double>>{}) == Verdict::not_judged);
  CHECK(verdict("expect = { diverges = { all = true, x = false }, below = { x = 3 } }\n", {{1}}) == Verdict::pass);
}

TEST_CASE("runs that diverged or are not finished: of the other row of an order, of a mean, of a row without a rule") {
  Report report = report_of(table_of("expect.order = [\"x < y\"]\n[t.mean]\n"), {{1, 1, 1}, {2, 2, 2}, {}, {1}, {2}});
  CHECK(judge(report, report.rows[0], 0).verdict == Verdict::pass);
  PresetRun& third = report.rows[1].runs[2];
  third.interrupted = true;
  CHECK(judge(report, report.rows[0], 0).verdict == Verdict::not_judged);
  CHECK(judge(report, report.rows[0], 0).why == "a-y: seed 3 is not finished");
  third.interrupted = false;
  third.diverged = true;
  third.problem = "diverged";
  CHECK(judge(report, report.rows[0], 0).why == "a-y: seed 3 diverged");
  for (PresetRun& run : report.rows[1].runs) {
    run.updates = 10 * static_cast<std::int64_t>(run.seed);
    run.whole = 20;
  }
  CHECK(updates_text(report.rows[1]) == "10 to 20 of 20");
  report.rows[1].runs[0].updates = 20;
  CHECK(updates_text(report.rows[1]) == "20");
  CHECK(measured_text(report.rows[1], 0) == "2 ± 0 (1 of baseline), 1 of 3 diverged");
  CHECK(judge(report, report.rows[1], 0).verdict == Verdict::fail);  // although nothing is expected of it
  VerdictCount count;
  count.add(report);
  CHECK(count.text() == "1 pass, 1 fail, 1 not judged");
  add_means(report, report.table);
  const auto mean = std::find_if(report.rows.begin(), report.rows.end(),
                                 [](const ReportRow& r) { return r.preset.label == "mean-y"; });
  REQUIRE(mean != report.rows.end());
  REQUIRE(mean->runs.size() == 2);  // the second seed is not in all cases
  CHECK(mean->measured() == std::vector<double>{2});
  CHECK(mean->runs[1].seed == 3);
  CHECK(judge(report, *mean, 0).verdict == Verdict::fail);
  CHECK(judge(report, *mean, 0).why == "seed 3 diverged");
}

TEST_CASE("a further column is judged by its own numbers, not by the count of parameters; verdicts are counted") {
  Report report = report_of(table_of("expect.below.x = 3\n[t.parameters]\na-x = 7\n[t.columns.c]\nmetric = \"m\"\n"
                                     "expect.order = [\"x < y\"]\n"),
                            {{1}, {2}, {}, {4}});
  report.rows[0].runs[0].measured = {1, 3};
  report.rows[1].runs[0].measured = {2, 4};
  report.rows[3].runs[0].measured = {4, none};
  CHECK(judge(report, report.rows[0], 1).verdict == Verdict::pass);
  report.rows[0].runs[0].parameters = 8;
  CHECK(judge(report, report.rows[0], 0).verdict == Verdict::fail);
  CHECK(judge(report, report.rows[0], 1).verdict == Verdict::pass);
  VerdictCount count;
  count.add(report);
  CHECK(count.text() == "1 pass, 2 fail, 1 not judged");
}

TEST_CASE("rows that are not judged are counted by the reason: what they need, no run, or no run to compare with") {
  VerdictCount count;
  const std::string more = "[t.needs]\na = \"a license\"\nb-z = \"a GPU\"\n[t.expect]\nbelow = { all = 5 }\n";
  count.add(report_of(table_of(more), {{1}, {}, {}, {}, {}, {}}));
  CHECK(count.text() == "1 pass, 0 fail, 5 not judged");
  CHECK(count.reasons() == "1 need a GPU, 2 need a license, 2 have no run");
  VerdictCount other;
  other.add(report_of(table_of("[t.expect]\norder = [\"x < y\"]\n"), {{1}, {}, {}, {1}, {2}, {}}));
  CHECK(other.text() == "1 pass, 0 fail, 1 not judged");
  CHECK(other.reasons() == "1 have runs, but not all that they are judged by");
  count.add(other);
  CHECK(count.text() == "2 pass, 0 fail, 6 not judged");
  CHECK(count.reasons() ==
        "1 need a GPU, 2 need a license, 2 have no run, 1 have runs, but not all that they are judged by");
  CHECK(VerdictCount{}.reasons().empty());
}

TEST_CASE("the mean over cases: of all, or of nine tenths, then beside the mean of what is reported for the same") {
  std::string toml = "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"accuracy\"\n[t.cases]\n";
  for (int i = 1; i <= 10; ++i) toml += fmt::format("c{} = \"\"\n", i);
  toml += "[t.models]\nm = \"\"\nn = \"\"\n[t.reported]\n";
  for (int i = 1; i <= 10; ++i) toml += fmt::format("c{} = {{ m = {} }}\n", i, i);
  toml += "[t.mean]\nreported = { m = 5.5 }\nexpect = { within = { m = 0.1 }, order = [\"m > n\"] }\n";
  const PresetTable table = parse_presets("f.toml", toml).at(0);
  REQUIRE(table.means.size() == 2);
  const auto report = [&](int cases) {
    std::vector<std::vector<double>> values;
    for (int i = 1; i <= cases; ++i) values.push_back({i + 0.05, i + 0.05}), values.push_back({1, 1});
    Report r = report_of(table, values);
    add_means(r, r.table);
    return r;
  };
  const Report whole = report(10);
  REQUIRE(whole.rows.size() == 22);
  CHECK(whole.rows[20].mean() == doctest::Approx(5.55));
  CHECK(whole.rows[20].measured().size() == 2);
  CHECK(*whole.rows[20].preset.main().value == 5.5);
  CHECK(judge(whole, whole.rows[20], 0).verdict == Verdict::pass);
  const Report nine = report(9);
  REQUIRE(nine.rows.size() == 22);
  CHECK(*nine.rows[20].preset.main().value == doctest::Approx(5));
  CHECK(judge(nine, nine.rows[20], 0).verdict == Verdict::pass);
  CHECK(contains(nine.rows[20].preset.notes.at(0), "Over 9 of 10 cases"));
  CHECK(report(8).rows.size() == 20);
  Report uneven = report_of(table, std::vector<std::vector<double>>(20, {1, 3}));
  uneven.rows[4].runs.pop_back();  // its second seed has not run
  add_means(uneven, uneven.table);
  REQUIRE(uneven.rows.size() == 22);
  CHECK(uneven.rows[20].measured() == std::vector<double>{1});
  Report part = report_of(table, {{1, 3}, {1, 3}});  // of --cases: one of ten is no mean over all
  part.rows.resize(2);
  part.table.presets.resize(2);
  add_means(part, table);
  CHECK(part.rows.size() == 2);
  std::string unknown = toml;  // no number is reported for one of nine cases: what is known is the mean over all
  unknown.erase(unknown.find("c3 = { m"), std::string("c3 = { m = 3 }\n").size());
  Report eight = report_of(parse_presets("f.toml", unknown).at(0), std::vector<std::vector<double>>(18, {5}));
  add_means(eight, eight.table);
  REQUIRE(eight.rows.size() == 22);
  CHECK(*eight.rows[20].preset.main().value == 5.5);
}

TEST_CASE("tables of expectations that break the rules are refused, with file, line, key and rule") {
  const auto why = [](const std::string& more) { return error_of([&] { table_of(more); }); };
  CHECK(contains(why("expect = 3\n"), "f.toml:1] [t]: expect must be a table"));
  CHECK(contains(why("[t.expect]\nbelwo.x = 3\n"), "f.toml:15] [t.expect]: belwo is no key of t.expect"));
  CHECK(contains(why("[t.expect]\nbelow.x = \"3\"\n"), "[t.expect]: below: a number expected"));
  CHECK(contains(why("[t.expect]\ndiverges.x = 1\n"), "f.toml:15] [t.expect]: diverges: true or false expected"));
  CHECK(contains(why("[t.expect]\ndiverges.w = true\n"), "diverges.w: there is no such preset, model or case"));
  CHECK(contains(why("[t.expect]\ndiverges.x = true\nbelow.a-x = 1\n"), "leave out the others that a-x is judged by"));
  CHECK(contains(why("[t.expect]\nbelow.x = inf\n"), "f.toml:15] [t.expect]: below: a number expected, got inf"));
  CHECK(contains(why("[t.expect]\nbelow_share.x = -1\n"), "below_share: a positive number expected, got -1"));
  CHECK(contains(why("[t.expect]\nwithin.x = 0\n"), "within: a positive number expected, got 0"));
  CHECK(contains(why("[t.expect]\nbelow.w = 1\n"), "below.w: there is no such preset, model or case"));
  CHECK(contains(why("[t.expect]\nbelow.a = { w = 1 }\n"), "below.a.w: there is no such model in this case"));
  CHECK(contains(why("[t.expect]\nwithin.b = 1\n"), "within.b: no number is reported there"));
  CHECK(contains(why("[t.expect]\norder = \"x < y\"\n"), "order = [\"A < B\", ...] expected"));
  CHECK(contains(why("[t.expect]\norder = [3]\n"), "order = [\"A < B\", ...] expected"));
  CHECK(contains(why("[t.expect]\norder = [\"x < w\"]\n"), "there is no such preset or model as w"));
  CHECK(contains(why("[t.expect]\norder = [\"x y\"]\n"), "order \"x y\": <, >, *, + or - expected, got y"));
  CHECK(contains(why("[t.columns]\nc = 3\n"), "columns.c must be a table"));
  CHECK(contains(why("[t.columns.c]\nunit = \"s\"\n"), "[t.columns.c]: metric = \"TEXT\" expected"));
  CHECK(contains(why("[t.columns.c]\nmetric = \"m\"\nmodels = 3\n"), "models is no key of t.columns.c"));
  CHECK(contains(why("[t.columns.c]\nmetric = \"m\"\nexpect.below.w = 3\n"), "[t.columns.c.expect]: below.w: "));
  CHECK(contains(why("[t.mean]\nreported = { w = 3 }\n"), "[t.mean]: reported.w: there is no such"));
}

TEST_CASE("every row of the five papers that has a number of its paper's own is judged by something") {
  std::size_t judged = 0;
  for (const PresetTable& table : read_presets(REEL_SOURCE_DIR "/presets")) {
    const bool orders_only = table.name == "srnn/table5";  // seconds of another machine: their order is judged
    for (const auto* presets : {&table.presets, &table.means})
      for (const Preset& p : *presets)
        for (const Measure& m : p.measures) {
          CAPTURE(p.name);
          CAPTURE(m.name);
          if (m.value) CHECK_FALSE(m.expect.empty());
          if (m.value && orders_only) CHECK_FALSE(m.expect.orders.empty());
          judged += !m.expect.empty();
        }
  }
  CHECK(judged > 500);
}

TEST_CASE("significant digits: large numbers of updates are integers") {
  CHECK(significant(0.012345, 4) == "0.01235");
  CHECK(significant(123.46, 2) == "123");
  CHECK(significant(21400, 4) == "21400");
  CHECK(significant(-21400.4, 4) == "-21400");
  CHECK(significant(3e7, 4) == "3e+07");
  CHECK(with_deviation(633.33, 115.9) == "633.3 ± 116");
  CHECK(with_deviation(21400, none) == "21400");
}
