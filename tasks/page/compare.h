// A page that compares runs: those that differ in their seed only are a group, with the mean and the range of its
// seeds.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace reel::page {

struct ComparedRun {
  std::string folder, name;
  std::string group = {};               // empty: by the run's options
  std::vector<std::string> cells = {};  // of the group, under Comparison::columns
};

struct Comparison {
  std::string title = {};
  std::string metric = "valid_loss";  // "accuracy", "test.accuracy", ...; by which the best come first
  bool higher_is_better = false;
  bool most_updates_first = false;  // of a sweep with --halving: the best is among the groups with the most updates
  bool must_have_metric = false;    // an error if no run has it; runs that go on may not have it yet
  std::vector<ComparedRun> runs = {};
  std::vector<std::string> columns = {};   // further ones of the table of groups
  std::vector<std::string> facts = {};     // lines below the title
  std::vector<std::string> problems = {};  // the same, as warnings
};

/// What a metric measures: "rmse" of "test.rmse of level".
std::string quantity_of(const std::string& metric);
/// True for metrics of which more is better, such as an accuracy: by a word of what they measure, as in "segsnr_db".
bool higher_is_better(const std::string& metric);

/// True if a run has begun in the folder: one of its files may be lost.
bool holds_run(const std::string& folder);
/// The folder itself, whatever links lead to it; as it is named if it cannot be looked at.
std::filesystem::path real_path(const std::filesystem::path& folder);
/// The runs in a folder: itself, or all below it, in order of their names. Symbolic links are followed, but for those
/// that lead to a folder above; a run to which several lead is there once.
std::vector<ComparedRun> runs_below(const std::string& folder);

/// A line for each run that is not on a page.
struct NotCompared {
  std::vector<std::string> unreadable;
  std::vector<std::string> repeated;  // another run has the same options and seed
};

/// Writes the page to `path`; runs that are left out are named on it. Throws Error if it cannot be written, or no run
/// has the metric.
NotCompared write_comparison(const Comparison& comparison, const std::string& path);

}  // namespace reel::page
