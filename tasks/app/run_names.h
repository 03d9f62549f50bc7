// Names for runs in a legend: what tells them apart.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// Options that decide what a run shows of itself, not what it computes.
bool only_shows(const std::string& option);

/// These, and options that change nothing in what a run learns, such as --threads.
bool changes_nothing(const std::string& option);

/// A name for each run folder: its cell and the options in which the runs differ, "lstm, lr 0.003", with `seeds` also
/// the seed. Runs that differ in their seeds alone so have one name without it. Where not even the seed differs, or
/// config.toml cannot be read, the folder's name stands in for the options.
std::vector<std::string> names_of_runs(const std::vector<std::string>& folders, bool seeds);

/// The options of a run, the seed included, but for those that only show, as one text: runs of the same one are the
/// same. Empty if config.toml cannot be read.
std::string options_text(const std::string& folder);

}  // namespace reel
