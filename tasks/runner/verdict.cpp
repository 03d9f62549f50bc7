#include "tasks/runner/verdict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tasks/app/run_json.h"
#include "tasks/app/statistics.h"
#include "tasks/page/compare.h"

namespace reel {

namespace {

struct Check {
  Verdict verdict;
  std::string why;
  bool better = false;  // fails because the number is better than the reported one
  bool open = false;    // another row has no run yet
};

Check compared(bool holds, std::string what, bool better = false) {
  return {holds ? Verdict::pass : Verdict::fail, std::move(what) + (better ? ", better" : ""), better};
}

std::string number(double value) { return std::isinf(value) ? "never" : significant(value, 4); }

Check check_share(const ReportRow& row, const Measure& measure, double mean, double limit, bool below) {
  const auto run = std::find_if(row.runs.begin(), row.runs.end(), [](const PresetRun& r) { return r.done(); });
  if (!(run->baseline > 0)) return {Verdict::not_judged, "the runs have no baseline"};
  const double share = mean / in_unit(measure, run->baseline);
  return compared(below ? share < limit : share > limit,
                  fmt::format("{:.4g} of the baseline, {} {:g} expected", share, below ? "below" : "above", limit));
}

/// "seed 2 is not finished"; empty if the run has a result.
std::string unfinished(const PresetRun& run) {
  if (run.done()) return "";
  return fmt::format("seed {} {}", run.seed,
                     run.diverged      ? "diverged"
                     : run.interrupted ? "is not finished"
                                       : "has no result");
}

/// The first run without a number of this measure, and why: "no number of seed 2"; empty if there is none.
std::string lacking(const ReportRow& row, std::size_t measure) {
  for (const PresetRun& run : row.runs) {
    if (!run.done()) return unfinished(run);
    if (measure >= run.measured.size() || std::isnan(run.measured[measure]))
      return fmt::format("no number of seed {}", run.seed);
  }
  return "";
}

Check check_order(const Report& report, double mean, const Order& order, std::size_t measure) {
  const auto other = std::find_if(report.rows.begin(), report.rows.end(),
                                  [&](const ReportRow& r) { return r.preset.label == order.right.label; });
  const bool chosen = other != report.rows.end();
  const double theirs = chosen ? other->mean(measure) : NAN;
  if (std::isnan(theirs))
    return {.verdict = Verdict::not_judged,
            .why = fmt::format("{} has no number", order.right.label),
            .open = chosen && other->runs.empty()};
  if (const std::string seed = lacking(*other, measure); !seed.empty())
    return {Verdict::not_judged, fmt::format("{}: {}", order.right.label, seed)};
  const double left = mean * order.left.factor + order.left.offset,
               right = theirs * order.right.factor + order.right.offset;
  const auto side = [](const Term& t, double value, double changed) {
    return t.factor == 1 && t.offset == 0 ? number(value) : fmt::format("{} (as {})", number(value), number(changed));
  };
  return compared(order.less ? left < right : left > right,
                  fmt::format("{}, {} {} of {} expected", side(order.left, mean, left), order.less ? "below" : "above",
                              side(order.right, theirs, right), order.right.label));
}

std::vector<Check> checks(const Report& report, const ReportRow& row, std::size_t measure) {
  const Measure& m = row.preset.measures[measure];
  const Expectation& e = m.expect;
  const double mean = row.mean(measure);
  std::vector<Check> out;
  const auto add = [&](bool holds, const std::string& side, double limit, bool better = false) {
    out.push_back(compared(holds, fmt::format("{}, {} {:g} expected", number(mean), side, limit), better));
  };
  if (e.below) add(mean < *e.below, "below", *e.below);
  if (e.above) add(mean > *e.above, "above", *e.above);
  if (e.below_share) out.push_back(check_share(row, m, mean, *e.below_share, true));
  if (e.above_share) out.push_back(check_share(row, m, mean, *e.above_share, false));
  const auto near = [&](double tolerance) {
    // decimal fractions are not exact in binary: 0.02 from 1.461 may come out as 0.0200000001
    const double slack = 1e-9 * std::max(1.0, std::abs(*m.value));
    const bool holds = std::abs(mean - *m.value) <= tolerance + slack;
    const bool better = !holds && (page::higher_is_better(m.metric) ? mean > *m.value : mean < *m.value);
    add(holds, fmt::format("within {:g} of", tolerance), *m.value, better);
  };
  if (e.within) near(*e.within);
  if (e.within_share) near(*e.within_share * std::abs(*m.value));
  for (const Order& o : e.orders) out.push_back(check_order(report, mean, o, measure));
  return out;
}

/// What judge() says of a measure of which something is expected, or which fails whatever is.
Judgement judge_expected(const Report& report, const ReportRow& row, std::size_t measure) {
  const Expectation& expect = row.preset.measures[measure].expect;
  if (report.budget != 1) return {Verdict::not_judged, fmt::format("{:g} of the paper's updates", report.budget)};
  if (row.runs.empty()) return {Verdict::not_judged, "not run"};
  for (const PresetRun& run : row.runs) {
    if (expect.diverges && run.diverged) continue;
    if (!run.done()) return {run.diverged ? Verdict::fail : Verdict::not_judged, unfinished(run)};
    if (measure == 0 && row.preset.parameters && run.parameters >= 0 && run.parameters != *row.preset.parameters)
      return {Verdict::fail, fmt::format("{} parameters, {} expected", run.parameters, *row.preset.parameters)};
  }
  if (expect.empty()) return {Verdict::none, ""};
  if (expect.diverges) {
    const auto other = std::ranges::find_if(row.runs, [](const PresetRun& run) { return !run.diverged; });
    if (other == row.runs.end()) return {Verdict::pass, ""};
    return {Verdict::fail, fmt::format("seed {} did not diverge", other->seed)};
  }
  if (std::isnan(row.mean(measure)))
    return {Verdict::not_judged, fmt::format("the runs have no {}", row.preset.measures[measure].metric)};
  if (const std::string seed = lacking(row, measure); !seed.empty()) return {Verdict::not_judged, seed};
  Judgement all{Verdict::pass, ""};
  for (const Check& check : checks(report, row, measure)) {
    if (check.verdict == Verdict::fail && all.verdict != Verdict::fail) all = {Verdict::fail, "", true};
    if (check.verdict == Verdict::not_judged && all.verdict == Verdict::pass) all = {Verdict::not_judged, ""};
    all.open = all.verdict == Verdict::not_judged && (all.open || check.open);
    if (check.verdict == all.verdict) all.why += (all.why.empty() ? "" : "; ") + check.why, all.better &= check.better;
  }
  return all;
}

}  // namespace

Judgement judge(const Report& report, const ReportRow& row, std::size_t measure) {
  const Judgement judgement = judge_expected(report, row, measure);
  const bool expected = !row.preset.measures[measure].expect.empty();
  if (expected || (measure == 0 && judgement.verdict == Verdict::fail)) return judgement;
  return {Verdict::none, "nothing is expected"};
}

std::string text_of(Verdict verdict) {
  if (verdict == Verdict::none) return "-";
  return verdict == Verdict::pass ? "pass" : verdict == Verdict::fail ? "fail" : "not judged";
}

void VerdictCount::add(const Report& report) {
  for (const ReportRow& row : report.rows)
    for (std::size_t m = 0; m < row.preset.measures.size(); ++m) {
      const Judgement judged = judge(report, row, m);
      const Verdict verdict = judged.verdict;
      if (verdict == Verdict::none) continue;
      ++(verdict == Verdict::pass ? pass : verdict == Verdict::fail ? fail : not_judged);
      better += judged.better;
      if (verdict == Verdict::not_judged && row.runs.empty())
        ++(row.preset.needs.empty() ? not_run : lacking[row.preset.needs]);
    }
}

void VerdictCount::add(const VerdictCount& other) {
  pass += other.pass;
  fail += other.fail;
  better += other.better;
  not_judged += other.not_judged;
  not_run += other.not_run;
  for (const auto& [what, rows] : other.lacking) lacking[what] += rows;
}

std::string VerdictCount::text() const {
  const std::string of_these = better > 0 ? fmt::format(" ({} of them better than the paper)", better) : "";
  return fmt::format("{} pass, {} fail{}, {} not judged", pass, fail, of_these, not_judged);
}

std::string VerdictCount::reasons() const {
  std::vector<std::string> out;
  std::size_t others = not_judged - not_run;
  for (const auto& [what, rows] : lacking) {
    out.push_back(fmt::format("{} need {}", rows, what));
    others -= rows;
  }
  if (not_run > 0) out.push_back(fmt::format("{} have no run", not_run));
  if (others > 0) out.push_back(fmt::format("{} have runs, but not all that they are judged by", others));
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace reel
