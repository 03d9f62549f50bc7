// What a program takes from its user: options on the command line, the same options in a TOML file, and the settings of
// every cell. CLI11 parses the command line, toml++ the file. CLI11's own file reader cannot read back the dotted names
// of cells' settings, and ours reports line numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/error.h"

namespace reel {

struct FileValue;  // options_file.h

/// Bad usage, in one line: main() prints it and exits with code 2.
struct Usage : Error {
  using Error::Error;
};

/// An error as a user of options knows it: a setting's name is that of an option, "--srnn.width: ...".
std::string option_text(const Error& error);

/// Thrown by --help, --version and the like: main() prints the text and exits with the code.
struct Exit {
  int code;
  std::string text;
};

/// Splits "a,b,c" at the commas; an empty text has no parts.
std::vector<std::string> split_list(const std::string& text);

/// The range that a number must lie in, both ends included.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
/// Upper limits of options: far beyond any run, yet small enough that products and sums of two or three of them are
/// exact.
namespace most {
constexpr double units = 1e6;     // hidden units, widths, symbols
constexpr double batch = 1e6;     // sequences an update
constexpr double layers = 1000;   // cells on top of each other
constexpr double time = 1e8;      // steps of a sequence
constexpr double examples = 1e8;  // of a fixed training set
constexpr double valid = 1e7;     // of a validation or test set
constexpr double updates = 1e12;  // in a run, and everything counted in updates or validations
constexpr double threads = 1024;  // of the CPU, and shards of a batch
}  // namespace most

class Options {
 public:
  /// Starts with --config FILE, --help (-h) and --version.
  Options(const std::string& program, const std::string& description);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// Adds --NAME (given without dashes). The variable's current value is the default, and it must outlive this object.
  void add(const std::string& name, std::int64_t& variable, const std::string& help,
           const std::string& group = "Options", Bounds bounds = {});
  void add(const std::string& name, std::uint64_t& variable, const std::string& help,
           const std::string& group = "Options", Bounds bounds = {});
  void add(const std::string& name, double& variable, const std::string& help, const std::string& group = "Options",
           Bounds bounds = {});
  void add(const std::string& name, std::string& variable, const std::string& help,
           const std::string& group = "Options");
  /// Adds --NAME without a value (--NAME=false turns it off); in a file it is a boolean.
  void flag(const std::string& name, bool& variable, const std::string& help, const std::string& group = "Options");
  /// Adds --NAME, which takes one of the choices.
  void choice(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
              const std::string& help, const std::string& group = "Options");
  /// Adds --NAME, which takes one integer or several, or one of the choices or several, with commas between.
  void list(const std::string& name, std::string& variable, Bounds bounds, const std::string& help,
            const std::string& group);
  void list(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
            const std::string& help, const std::string& group);
  /// Adds --CELL.SETTING for every setting of every registered cell, and --help-all, which shows them all.
  void cells();
  /// Adds --preset and --list-presets for this task (preset.h).
  void presets(const std::string& task);
  /// Only the command line sets this option: it names a program to run.
  void typed_only(const std::string& name);
  /// Accepts positional arguments, called METAVAR in the help.
  void arguments(const std::string& metavar, std::vector<std::string>& variable);
  /// Adds --resume DIR; these options are allowed beside it.
  void allow_with_resume(const std::vector<std::string>& names);
  /// Called behind the preset, the file and the command line: values for the options that none of them gives.
  void fall_back_on(std::function<std::vector<FileValue>()> values);
  /// The hint for an option that this program does not have, although others do.
  void hint(const std::string& name, const std::string& text);

  /// Sets the variables: defaults, then the preset, the file and the command line, each overriding those before. Throws
  /// Usage, or Exit for --help and --version.
  void parse(int argc, const char* const* argv);

  /// The settings of a cell that the command line or the file gives.
  std::map<std::string, std::string> settings(const std::string& cell) const;
  /// True if the option was given rather than left at its default.
  bool given(const std::string& name) const;
  /// True if the option is on the command line.
  bool typed(const std::string& name) const;
  /// True if an option is given in a later place than another: the preset, then the file, then the command line.
  bool later(const std::string& name, const std::string& than) const;
  /// Of an option that is typed: its value in the file or the preset.
  const std::string& before(const std::string& name) const;
  /// The value of --resume; empty without it.
  const std::string& resume() const;
  /// The value of --config; empty without it.
  const std::string& config() const;
  /// The value of --preset; empty without it.
  const std::string& preset() const;
  /// The current values as a file for --config, with all settings of the chosen cells, but without the options of a
  /// single call: config, resume, out, quiet, dry-run, print-passes, trace-kernels, explain.
  std::string toml() const;
  /// The text of --help: of the cells, with the settings of the chosen ones only, or with those of all.
  std::string help(bool all_cells = false) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reel
