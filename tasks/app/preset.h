// Presets: what a paper ran, as options of a task, with the number it reports. They are in presets/*.toml, one file per
// paper and one section per table or figure. A section is a grid of cases and models, and each point of the grid is a
// preset (docs/reproducing.md).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tasks/app/expect.h"

namespace reel {

/// A number of a run, beside what the paper reports for it: a column of its table.
struct Measure {
  std::string name = {};             // of the column; empty for the first
  std::string metric, unit = {};     // "test.accuracy", "%"
  std::string reported = {};         // as displayed: "96.43", "89.86 (unverified)"; empty: nothing is reported
  std::optional<double> value = {};  // the same as a number
  bool doubtful = false;             // not the paper's own number: unverified, or from a simulation
  Expectation expect = {};           // what makes it a pass
};

struct Preset {
  std::string name;                        // "srnn/table2/pmnist-srnn"
  std::string label;                       // "pmnist-srnn"
  std::string in_case, model;              // "pmnist", "srnn"; empty if the section has none
  std::string task;                        // the program
  std::vector<std::string> options;        // as typed on the command line
  std::vector<Measure> measures;           // the main one, and those of further columns
  std::optional<std::int64_t> parameters;  // the exact count
  double epoch_updates = 0;                // updates in what the paper calls an epoch; 0: not given
  std::vector<std::string> notes;          // what is unclear, lost, unverified, or otherwise worth knowing
  std::string needs;                       // data or programs that not everyone can have: "TIMIT"; empty: none
  const Measure& main() const { return measures.front(); }
};

struct PresetTable {
  std::string name;           // "srnn/table2"
  std::string paper, where;   // "SRNN (Rotman and Wolf 2021)", "Table 2"
  std::string title, figure;  // figure: "curves", "grad_norm", "bars", "map", "pictures"
  std::vector<std::string> notes;
  std::vector<Preset> presets;
  bool curves = false;        // beside the bars, too
  std::vector<Preset> means;  // of each model over all cases: computed, so without task and options
};

/// The folder of presets: REEL_PRESETS in the environment, or presets/ next to the running program, or next to its
/// folder (where CMake puts a link to that of the source tree), or share/reel/presets of the prefix that the program is
/// installed in. Throws Error naming these places.
std::string presets_folder();

/// Reads all tables in all files of a folder; throws Error with file and section if one breaks the rules.
std::vector<PresetTable> read_presets(const std::string& folder);
/// Parses the tables of one file from text that check_toml() accepts; the tables are named after `file`.
std::vector<PresetTable> parse_presets(const std::string& file, const std::string& text);

/// A preset, and the table that it belongs to.
struct FoundPreset {
  PresetTable table;
  Preset preset;
};
/// The preset of this name, which `task` must run; throws Usage that lists similar names, or names the right program.
FoundPreset find_preset(const std::string& name, const std::string& task);

/// The lines of --list-presets: for one task, or for all if it is empty.
std::string list_presets(const std::string& task);

/// ", near ones are a, b, c": the known names that have the given one in them, or are close to it; of a few names, all.
/// Empty if there are none.
std::string near_names(const std::string& name, const std::vector<std::string>& known);

}  // namespace reel
