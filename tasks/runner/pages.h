// The pages of a folder of results: README.md with the score of each paper, and PAPER.md with its tables, made from the
// stored numbers and the presets alone.
#pragma once
#include "tasks/runner/verdict.h"

namespace reel {

/// What is stored of a paper's tables, and its score.
struct PaperResults {
  std::string file, paper;  // "srnn", "SRNN (Rotman and Wolf 2021)"
  std::vector<Report> tables;
  VerdictCount score;
  double seconds = 0;
  std::size_t runs = 0;
};

/// Reads what is stored of all papers; those without a run are left out. `stale` names runs whose presets have changed
/// or gone.
std::vector<PaperResults> read_papers(const std::vector<PresetTable>& tables, const std::string& folder,
                                      std::vector<std::string>& stale);

/// Score, seconds and runs of all papers together.
PaperResults sum_of(const std::vector<PaperResults>& papers);

/// Which kernels computed how many of the runs, and what that means for who repeats one here: lines for --check.
std::string kernels_text(const std::vector<PaperResults>& papers);

/// The text of PAPER.md and of README.md.
std::string page_of(const PaperResults& paper, const std::string& folder);
std::string index_of(const std::vector<PaperResults>& papers);

/// Writes these pages.
void write_pages(const std::vector<PaperResults>& papers, const std::string& folder);

}  // namespace reel
