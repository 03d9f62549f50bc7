// What a program takes from its user: options on the command line, the same options in a TOML file, and the settings of
// every cell. CLI11 takes the command line apart, toml++ the file; CLI11's own file reader cannot read back the dotted
// names of cells' settings, and ours says the line.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/error.h"

namespace reel {

/// Bad usage, in one line: main() prints it and exits with code 2.
struct Usage : Error {
  using Error::Error;
};

/// All is said (--help): main() prints the text and exits with the code.
struct Exit {
  int code;
  std::string text;
};

/// The parts of "a,b,c"; of nothing none.
std::vector<std::string> split_list(const std::string& text);

/// The range that a number must lie in, both ends included.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
/// The most of what options count: far beyond any run, and so that products and sums of two or three of them are exact.
namespace most {
constexpr double units = 1e6;     // hidden units, widths, symbols
constexpr double batch = 1e6;     // sequences an update
constexpr double layers = 1000;   // cells on top of each other
constexpr double time = 1e8;      // steps of a sequence
constexpr double examples = 1e8;  // of a fixed set to train on
constexpr double valid = 1e7;     // of a set to validate or test on
constexpr double updates = 1e12;  // in a run, and what is counted in updates or validations
}  // namespace most

class Options {
 public:
  /// Knows --config FILE, --resume DIR and --help from the start.
  Options(const std::string& program, const std::string& description);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// Adds --NAME (given without dashes); the variable's present value is the default, and it must outlive this object.
  void add(const std::string& name, std::int64_t& variable, const std::string& help,
           const std::string& group = "Options", Bounds bounds = {});
  void add(const std::string& name, std::uint64_t& variable, const std::string& help,
           const std::string& group = "Options", Bounds bounds = {});
  void add(const std::string& name, double& variable, const std::string& help, const std::string& group = "Options",
           Bounds bounds = {});
  void add(const std::string& name, std::string& variable, const std::string& help,
           const std::string& group = "Options");
  /// Adds --NAME without a value (--NAME=false takes it back), a boolean in a file.
  void flag(const std::string& name, bool& variable, const std::string& help, const std::string& group = "Options");
  /// Adds --NAME that takes one of the choices.
  void choice(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
              const std::string& help, const std::string& group = "Options");
  /// Adds --CELL.SETTING for every setting of every registered cell.
  void cells();
  /// Adds --preset and --list-presets, of this task (preset.h).
  void presets(const std::string& task);
  /// Takes arguments that are no options, METAVAR in the help.
  void arguments(const std::string& metavar, std::vector<std::string>& variable);
  /// Names the options that may stand beside --resume; "steps", "quiet" and "threads" unless set.
  void allow_with_resume(const std::vector<std::string>& names);

  /// Sets the variables: defaults, over them the preset, the file, and the command line; throws Usage, or Exit for
  /// --help.
  void parse(int argc, const char* const* argv);

  /// The settings of a cell that were given, by the command line or the file.
  std::map<std::string, std::string> settings(const std::string& cell) const;
  /// True when the option is not left at its default: the command line or the file has it.
  bool given(const std::string& name) const;
  /// True when the command line has it.
  bool typed(const std::string& name) const;
  /// What --resume was given; empty without it.
  const std::string& resume() const;
  /// What --config was given; empty without it.
  const std::string& config() const;
  /// What --preset was given; empty without it.
  const std::string& preset() const;
  /// The present values as a file for --config, with all settings of the chosen cell; not what belongs to one call of
  /// the program: config, resume, out, quiet, dry-run.
  std::string toml() const;
  /// The text of --help.
  std::string help() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reel
