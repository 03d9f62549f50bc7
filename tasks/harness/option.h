// One option: its variable, the rule for its value, and its lines in --help. Where a value comes from is not its
// concern; that is options.h.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "tasks/harness/options.h"

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
  std::string metavar{};   // what stands for the value in --help, when it is not that of the kind
  std::string setting{};   // the variable of a cell's setting is in the option itself
  std::string fallback{};  // the default
  bool given = false;

  /// Sets the variable from text; false when the text breaks the rule.
  bool take(const std::string& text);
  /// The variable as text: take(value()) changes nothing.
  std::string value() const;
  /// The rule in words: "an integer of 1 or more".
  std::string rule() const;
  /// "name = value" as TOML reads it, with the given name.
  std::string toml(const std::string& key) const;
  /// Name, help, choices and default, wrapped to 100 columns.
  std::string help_lines() const;
};

/// ". Hint: NAME." with the known name nearest to the given one, or nothing when none is near.
std::string nearest_hint(const std::string& name, const std::vector<std::string>& known,
                         const std::string& dashes = "");

/// How many letters must change to make b of a (Levenshtein).
std::size_t letters_changed(const std::string& a, const std::string& b);

}  // namespace reel
