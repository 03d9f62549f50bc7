// A section of a file of presets, or a table in it, and the questions that it answers.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tasks/app/preset.h"
#include "tasks/app/toml.h"

namespace reel {

class PresetSection {
 public:
  using Names = std::vector<std::pair<std::string, std::string>>;  // in the order of the file

  /// Throws Error if the table has another key than these.
  PresetSection(std::string file, std::string name, const toml::table& table, std::span<const char* const> known);

  [[noreturn]] void fail(const std::string& what, std::size_t line) const;
  [[noreturn]] void fail(const std::string& what) const;
  /// Checks a name that becomes the name of a file, folder or program.
  void check_name(const std::string& name, std::size_t line) const;

  std::string text(const char* key, bool needed = false) const;
  bool flag(const char* key) const;
  /// The names on one side of a grid, with their options; one entry without a name if the section has none.
  Names side(const char* key) const;
  /// True if the model has this case; it has all of them, unless `only` names some.
  bool has(const std::string& in_case, const std::string& model) const;

  /// The entry of table `key` for a preset: under its label, CASE = { MODEL = ... }, its model, its case, or "all".
  std::string text(const char* key, const Preset& p, const std::string& otherwise) const;
  std::optional<double> number(const char* key, const Preset& p) const;
  /// The notes of a preset, from those for all presets to its own.
  std::vector<std::string> notes(const Preset& p) const;

  /// Sets what is reported, and how reliable it is.
  void take_reported(const Preset& of, Measure& measure) const;
  /// Sets what is expected of measure `at` of each of these presets, from the table `expect`.
  void take_expected(std::vector<Preset>& presets, std::size_t at) const;

  /// The table of this name in this one; null if there is none.
  const toml::table* table_of(const std::string& key) const;
  /// The same as a section, whose keys must be among these.
  std::optional<PresetSection> inner(const std::string& key, std::span<const char* const> known) const;
  /// The table `name`, which is there, in the table `key`.
  PresetSection inner(const std::string& key, const std::string& name, std::span<const char* const> known) const;

  /// Rejects names in these tables that are no label, model or case, because they would have no effect.
  void check_names(const std::vector<Preset>& presets, std::span<const char* const> keys) const;

 private:
  const toml::node* find(const char* key, const Preset& p) const;
  void take_orders(std::vector<Preset>& presets, std::size_t at) const;

  std::string file_, name_;
  const toml::table* table_;
};

}  // namespace reel
