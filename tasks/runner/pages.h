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

/// The lines of README.md for papers with results that these presets do not know: whoever has their presets made them.
std::vector<PaperResults> other_papers(const std::vector<PresetTable>& tables, const std::string& folder);

/// The text of PAPER.md and of README.md.
std::string page_of(const PaperResults& paper, const std::string& folder);
std::string index_of(const std::vector<PaperResults>& papers, const std::vector<PaperResults>& others = {});

/// Throws Usage if README.md, or PAPER.md of one of these tables, is there and is not such a page.
void refuse_foreign_pages(const std::vector<std::string>& tables, const std::string& folder);

/// Writes these pages. Throws Usage, before the first one, if a file of another kind is in the place of one.
void write_pages(const std::vector<PresetTable>& tables, const std::vector<PaperResults>& papers,
                 const std::string& folder);

}  // namespace reel
