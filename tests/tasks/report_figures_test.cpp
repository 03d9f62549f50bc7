// Figures of a table: which rows a bar chart shows.
#include <cstdlib>
#include <filesystem>

#include "tasks/io/files.h"
#include "tasks/runner/report.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("bars: of many rows only those with a result, of few all") {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) return;
  for (const int count : {4, 30}) {
    std::string toml =
        "[t]\ntitle = \"T\"\ntask = \"mnist\"\nmetric = \"test.accuracy\"\nfigure = \"bars\"\n[t.models]\n";
    for (int i = 0; i < count; ++i) toml += fmt::format("model{} = \"\"\n", i);
    Report report{parse_presets("f.toml", toml + "[t.reported]\nall = 0.5\n").at(0), 1, 1, "", {}};
    for (const Preset& p : report.table.presets) report.rows.push_back({p, {}});
    for (const std::size_t measured : {1U, 3U}) {
      report.rows[measured].runs.emplace_back();
      report.rows[measured].runs[0].measured = {0.75};
    }
    const TempDir dir;
    std::filesystem::create_directory(dir / "f");
    const ReportFigures drawn = draw_report(report, dir.path);
    CHECK(drawn.problems.empty());
    CHECK(drawn.unwritten.empty());
    REQUIRE(drawn.names.size() == 1);
    const std::string svg = read_file(dir / "f" + "/" + drawn.names[0]);
    for (int i = 0; i < count; ++i)
      CHECK(contains(svg, fmt::format(">model{}<", i)) == (count == 4 || i == 1 || i == 3));
  }
}
