#include "tasks/runner/ranking.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "tasks/page/compare.h"

namespace reel {

namespace {

struct Place {
  std::string model;
  bool lacking;         // a run diverged, or has no number: behind all models whose runs have one
  double solved, main;  // less is better in both
};

bool before(const Place& a, const Place& b) {
  return std::tuple(a.lacking, a.solved, a.main) < std::tuple(b.lacking, b.solved, b.main);
}

/// The models of a case that have a result, best first.
std::vector<Place> places_of(const Report& report, const std::string& in_case) {
  std::vector<Place> out;
  for (const ReportRow& row : report.rows) {
    const auto& measures = row.preset.measures;
    if (row.preset.task.empty() || row.preset.in_case != in_case || std::isnan(row.mean())) continue;
    const auto solved =
        std::find_if(measures.begin(), measures.end(), [](const Measure& m) { return m.metric == "solved_at.step"; });
    const double main = page::higher_is_better(measures.front().metric) ? -row.mean() : row.mean();
    const double at = solved == measures.end() ? 0 : row.mean(static_cast<std::size_t>(solved - measures.begin()));
    out.push_back({row.preset.model, row.measured().size() < row.runs.size(), std::isnan(at) ? INFINITY : at, main});
  }
  std::stable_sort(out.begin(), out.end(), before);
  return out;
}

struct Count {
  int cases = 0, first = 0, among_two = 0;
};

}  // namespace

std::string ranking(std::span<const Report> reports) {
  std::string text;
  std::map<std::string, Count> counts;
  for (const Report& report : reports) {
    std::map<std::string, std::size_t> cases;  // how many models each has
    for (const Preset& p : report.table.presets) ++cases[p.in_case];
    for (const auto& [in_case, models] : cases) {
      const std::vector<Place> places = places_of(report, in_case);
      std::vector<std::string> names;
      for (const Place& p : places) names.push_back(p.model);
      text += fmt::format("{}{}{}: {} ({} of {} models{})\n", report.table.name, in_case.empty() ? "" : "/", in_case,
                          names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", ")), names.size(), models,
                          names.size() < 2 ? ", not counted" : "");
      if (places.size() < 2) continue;
      for (const Place& place : places) {
        const auto better = std::ranges::count_if(places, [&](const Place& other) { return before(other, place); });
        Count& count = counts[place.model];
        ++count.cases;
        count.first += better == 0;
        count.among_two += better < 2;
      }
    }
  }
  std::vector<std::pair<std::string, Count>> best(counts.begin(), counts.end());
  std::stable_sort(best.begin(), best.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.first, a.second.among_two) > std::pair(b.second.first, b.second.among_two);
  });
  text += fmt::format("\n{:<20} {:>6} {:>6} {:>11}\n", "model", "cases", "first", "first two");
  for (const auto& [model, count] : best)
    text += fmt::format("{:<20} {:>6} {:>6} {:>11}\n", model, count.cases, count.first, count.among_two);
  return text;
}

}  // namespace reel
