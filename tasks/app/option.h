// One option: its variable, the rule for its value, and its lines in --help. options.h decides where values come from.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "tasks/app/options.h"
#include "tasks/app/options_file.h"

namespace reel {

struct Option {
  enum class Kind { whole, natural, real, text, choice, flag };
  enum class Section { ordinary, built_in, cell };  // in the order of --help

  std::string name;
  Kind kind;
  std::variant<std::string*, std::int64_t*, std::uint64_t*, double*, bool*> target;
  std::string help;
  std::string group;
  Section section = Section::ordinary;
  Bounds bounds{};
  std::vector<std::string> choices{};
  std::string metavar{};    // the name of the value in --help, if it is not the kind's own
  std::string setting{};    // the value of a cell's setting, which has no variable elsewhere
  std::string fallback{};   // the default
  bool several = false;     // takes a list with commas between, each part by the rule; the variable is text
  bool typed_only = false;  // names a program to run, which is for the command line alone to say
  bool given = false, typed = false;
  enum class From { defaults, preset, file, command_line } from = From::defaults;  // where the value comes from
  std::string before{};  // the value that the one given last has replaced

  /// Sets the variable from text; false if the text breaks the rule.
  bool take(const std::string& text);
  /// The same, but throws Usage that says what is wrong; `where` is "--" or a position in a file.
  void take_or_throw(const std::string& text, const std::string& where, From source);
  /// The same for a value of a file. That of an option for the command line is left out of a run's own file, with a
  /// note on stderr, and refused in any other.
  void take_from_file(const FileValue& value, bool own);
  /// Throws Usage if the option is for the command line alone.
  void refuse_unless_typed(const std::string& text, const std::string& where) const;
  /// The same option for one part of a list.
  Option one() const;
  /// True if a TOML value of this type can be meant for the option.
  bool fits(const std::string& type) const;
  /// The variable as text, such that take(value()) changes nothing.
  std::string value() const;
  /// Makes the variable's value the default. Throws Error for a number that breaks the rule: a run writes it down, and
  /// could not be resumed.
  void keep_default();
  /// The rule in words: "an integer of 1 or more". If the text is a number beyond the ends of the variable's type, it
  /// has these, too: "an integer from 1 to 9223372036854775807".
  std::string rule(const std::string& text = "") const;
  /// "name = value" in TOML, with the given name.
  std::string toml(const std::string& key) const;
  /// Name, help, choices and default, wrapped to 100 columns.
  std::string help_lines() const;
};

/// ". Hint: NAME." with the known name nearest to the given one, or nothing if none is near.
std::string nearest_hint(const std::string& name, const std::vector<std::string>& known,
                         const std::string& dashes = "");

}  // namespace reel
