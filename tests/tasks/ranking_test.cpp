// How often models are the best of several tables.
#include <limits>

#include "tasks/runner/ranking.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The rows of a table with these numbers, the column's behind the main one; a row without numbers has no run.
Report report_of(const std::string& toml, const std::vector<std::vector<double>>& numbers) {
  Report report{parse_presets("f.toml", toml).at(0), 1, 1, "", {}};
  for (std::size_t i = 0; i < report.table.presets.size(); ++i) {
    ReportRow row{report.table.presets[i], {}};
    if (!numbers[i].empty()) {
      row.runs.emplace_back();
      row.runs[0].measured = numbers[i];
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

constexpr double never = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE(
    "models are ranked by when they solved a task, then by the loss, or by the accuracy; cases of one do not count") {
  const std::string curves =
      "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"best.valid_loss\"\n[t.cases]\na = \"\"\nb = \"\"\n"
      "[t.models]\nx = \"\"\ny = \"\"\nz = \"\"\n[t.columns.solved]\nmetric = \"solved_at.step\"\n";
  const std::string bars =
      "[u]\ntitle = \"U\"\ntask = \"mnist\"\nmetric = \"test.accuracy\"\n[u.models]\nx = \"\"\ny = \"\"\n";
  const std::vector<Report> reports{
      report_of(curves, {{0.2, 300}, {0.1, 100}, {0.05, never}, {}, {}, {0.3, 10}}), report_of(bars, {{0.91}, {0.92}}),
      report_of(curves, {{0.2, never}, {}, {0.1, never}, {0.4, 50}, {0.5, 40}, {0.6, 60}})};
  CHECK(ranking(reports) ==
        "f/t/a: y, x, z (3 of 3 models)\n"
        "f/t/b: z (1 of 3 models, not counted)\n"
        "f/u: y, x (2 of 2 models)\n"
        "f/t/a: z, x (2 of 3 models)\n"
        "f/t/b: y, x, z (3 of 3 models)\n"
        "\nmodel                 cases  first   first two\n"
        "y                         3      3           3\n"
        "z                         3      1           1\n"
        "x                         4      0           4\n");
}

TEST_CASE("models with equal numbers have the same rank") {
  const std::string bars =
      "[u]\ntitle = \"U\"\ntask = \"mnist\"\nmetric = \"test.accuracy\"\n"
      "[u.models]\nw = \"\"\nx = \"\"\ny = \"\"\nz = \"\"\n";
  const std::vector<Report> reports{report_of(bars, {{0.5}, {0.9}, {0.7}, {0.9}})};
  CHECK(ranking(reports) ==
        "f/u: x, z, y, w (4 of 4 models)\n"
        "\nmodel                 cases  first   first two\n"
        "x                         1      1           1\n"
        "z                         1      1           1\n"
        "w                         1      0           0\n"
        "y                         1      0           0\n");
}

TEST_CASE("a model of which a run diverged is behind those whose runs all have a number") {
  const std::string curves =
      "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"best.valid_loss\"\n[t.models]\nx = \"\"\ny = \"\"\n";
  std::vector<Report> reports{report_of(curves, {{0.1}, {0.5}})};
  CHECK(contains(ranking(reports), "f/t: x, y (2 of 2 models)\n"));
  PresetRun& diverged = reports[0].rows[0].runs.emplace_back();
  diverged.seed = 2;
  diverged.diverged = true;
  diverged.problem = "diverged";
  CHECK(ranking(reports) ==
        "f/t: y, x (2 of 2 models)\n"
        "\nmodel                 cases  first   first two\n"
        "y                         1      1           1\n"
        "x                         1      0           1\n");
}
