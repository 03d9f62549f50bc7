// Presets: what a paper ran, as options of a task, with the number it reports. They stand in presets/*.toml, a file a
// paper, a section a table or figure; a section is a grid of cases and models, and each of its places is a preset
// (docs/reproducing.md).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reel {

struct Preset {
  std::string name;                        // "srnn/table2/pmnist-srnn"
  std::string label;                       // "pmnist-srnn"
  std::string in_case, model;              // "pmnist", "srnn"; empty where the section has none
  std::string task;                        // the program
  std::vector<std::string> options;        // as they are typed
  std::string metric, unit;                // "test.accuracy", "%"
  std::string reported;                    // as it is shown: "96.43", "89.86 (unverified)"; empty: nothing is reported
  std::optional<double> value;             // the same as a number
  bool doubtful = false;                   // that is not the paper's own: unverified, or from a simulation
  std::optional<std::int64_t> parameters;  // the exact count
  double epoch_updates = 0;                // updates of what the paper calls an epoch; 0: not said
  std::vector<std::string> notes;          // what is not established, lost, unverified, or otherwise to be known
};

struct PresetTable {
  std::string name;           // "srnn/table2"
  std::string paper, where;   // "SRNN (Rotman and Wolf 2021)", "Table 2"
  std::string title, figure;  // figure: "curves", "grad_norm", "bars", "map", "pictures"
  std::vector<std::string> notes;
  std::vector<Preset> presets;
};

/// The folder of presets: REEL_PRESETS in the environment, or presets/ beside the running program, or beside its folder
/// (where CMake puts a link to that of the source tree). Throws Error that names the places.
std::string presets_folder();

/// All tables of all files of a folder; throws Error with file and section where one breaks the rules.
std::vector<PresetTable> read_presets(const std::string& folder);
/// Those of the text of one file that check_toml() finds good; `file` gives the tables their name.
std::vector<PresetTable> parse_presets(const std::string& file, const std::string& text);

/// The preset of this name that `task` runs; throws Usage that lists near ones, or names the right program.
struct FoundPreset {
  PresetTable table;
  Preset preset;
};
FoundPreset find_preset(const std::string& name, const std::string& task);

/// The lines of --list-presets: those of a task, or all when it is empty.
std::string list_presets(const std::string& task);

/// ", near ones are a, b, c" of the known names that begin with the given one, or are closest to it.
std::string near_names(const std::string& name, const std::vector<std::string>& known);

}  // namespace reel
