// report.html in the folder of a sweep: its runs compared.
#include "engine/core/error.h"
#include "tasks/app/provenance.h"
#include "tasks/page/compare.h"
#include "tasks/sweep/results.h"

namespace reel {

void write_page(const Sweep& sweep, const Results& results) {
  page::Comparison page{.title = "sweep of " + sweep.task,
                        .metric = sweep.metric,
                        .higher_is_better = sweep.higher_is_better(),
                        .most_updates_first = sweep.halving > 0};
  if (!sweep.fixed.empty()) page.facts.push_back(fmt::format("All with {}.", shell_words(sweep.fixed)));
  page.facts.push_back(text_of(results.counts) + ".");
  for (const SweepRun& run : sweep.runs) {
    const std::string folder = sweep.folder_of(run);
    if (page::holds_run(folder)) page.runs.push_back({folder, run.name});
  }
  for (const ResultRow& row : results.rows)
    for (const auto& [run, problem] : row.problems) page.problems.push_back(fmt::format("{}: {}", run, problem));
  const auto left_out = page::write_comparison(page, sweep.folder + "/report.html").unreadable;
  if (!left_out.empty()) throw Error(left_out.front());
}

}  // namespace reel
