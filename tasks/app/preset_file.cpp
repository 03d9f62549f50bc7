// Reads presets/*.toml as a list of presets.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <sstream>

#include "engine/core/error.h"
#include "tasks/app/preset.h"
#include "tasks/app/toml.h"
#include "tasks/app/toml_file.h"
#include "tasks/io/output.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_presets = 1000;  // per section; each holds a copy of what the section says

using Names = std::vector<std::pair<std::string, std::string>>;  // in the order of the file

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// A section of a file, and the questions that it answers.
class Section {
 public:
  Section(std::string file, std::string name, const toml::table& table)
      : file_(std::move(file)), name_(std::move(name)), table_(table) {
    constexpr std::array known{"title",      "where",     "task",    "options",    "metric", "unit",  "figure",
                               "note",       "cases",     "models",  "tweaks",     "only",   "tasks", "reported",
                               "unverified", "simulated", "metrics", "parameters", "units",  "notes", "epoch_updates"};
    for (const auto& [key, node] : table_)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        fail(fmt::format("{} is no key of a section", key.str()), key.source().begin.line);
  }

  [[noreturn]] void fail(const std::string& what, std::size_t line) const {
    throw Error(fmt::format("{}:{}", file_, line), fmt::format("[{}]: {}", name_, what));
  }
  [[noreturn]] void fail(const std::string& what) const { fail(what, table_.source().begin.line); }
  /// Checks a name that becomes the name of a file, folder or program.
  void check_name(const std::string& name, std::size_t line) const {
    if (name.starts_with('.') || name.find('/') != std::string::npos || one_line(name) != name)
      fail(fmt::format("\"{}\" cannot be a name: no / in it, no control characters, and no dot in front",
                       one_line(name)),
           line);
  }

  std::string text(const char* key, bool needed = false) const {
    const auto value = table_[key].value_exact<std::string>();
    if (!value && (needed || table_.contains(key))) fail(fmt::format("{} = \"TEXT\" expected", key));
    return value.value_or("");
  }

  /// The names on one side of a grid, with their options; one entry without a name if the section has none.
  Names side(const char* key) const {
    Names out;
    const toml::table* side = table_of(key);
    if (!side) return {{"", ""}};
    for (const auto& [name, node] : *side) {
      const auto value = node.value_exact<std::string>();
      if (!value) fail(fmt::format("{}.{} = \"OPTIONS\" expected", key, name.str()), name.source().begin.line);
      check_name(std::string(name.str()), name.source().begin.line);
      out.emplace_back(name.str(), *value);
    }
    // a TOML table has no order of its own, so sort its keys by their position in the file
    std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
      const auto at = [&](const std::string& n) { return side->get(n)->source().begin; };
      const auto x = at(a.first), y = at(b.first);
      return std::pair(x.line, x.column) < std::pair(y.line, y.column);
    });
    return out;
  }

  /// True if the model has this case; it has all of them, unless `only` names some.
  bool has(const std::string& in_case, const std::string& model) const {
    const toml::table* only = table_of("only");
    const toml::array* cases = only ? only->get_as<toml::array>(model) : nullptr;
    if (only && only->contains(model) && !cases) fail(fmt::format("only.{} = [CASES] expected", model));
    if (!cases) return true;
    return std::any_of(cases->begin(), cases->end(),
                       [&](const auto& c) { return c.template value_exact<std::string>() == in_case; });
  }

  /// The entry of table `key` for a preset: under its label, CASE = { MODEL = ... }, its model, its case, or "all".
  const toml::node* find(const char* key, const Preset& p) const {
    const toml::table* values = table_of(key);
    if (!values) return nullptr;
    if (const toml::node* node = values->get(p.label); node && !node->is_table()) return node;
    if (const toml::table* of_case = values->get_as<toml::table>(p.in_case))
      if (const toml::node* node = of_case->get(p.model)) return node;
    for (const std::string& name : {p.model, p.in_case, std::string("all")})
      if (const toml::node* node = values->get(name); node && !node->is_table()) return node;
    return nullptr;
  }

  std::string text(const char* key, const Preset& p, const std::string& otherwise) const {
    const toml::node* node = find(key, p);
    if (!node) return otherwise;
    if (const auto value = node->value_exact<std::string>()) return *value;
    fail(fmt::format("{}: text expected", key), node->source().begin.line);
  }

  std::optional<double> number(const char* key, const Preset& p) const {
    const toml::node* node = find(key, p);
    if (!node) return std::nullopt;
    if (const auto value = node->value<double>(); value && node->is_number()) return value;
    fail(fmt::format("{}: a number expected", key), node->source().begin.line);
  }

  /// The notes of a preset, from those for all presets to its own.
  std::vector<std::string> notes(const Preset& p) const {
    std::vector<std::string> out;
    const toml::table* notes = table_of("notes");
    for (const std::string& name : {std::string("all"), p.in_case, p.model, p.label}) {
      const auto note = notes ? (*notes)[name].value_exact<std::string>() : std::nullopt;
      if (note && !name.empty() && (out.empty() || out.back() != *note)) out.push_back(*note);
    }
    return out;
  }

  /// Sets what is reported, and how reliable it is.
  void take_reported(Preset& p) const {
    for (const auto& [key, doubt] :
         {std::pair{"reported", ""}, {"unverified", " (unverified)"}, {"simulated", " (simulated)"}}) {
      const toml::node* node = find(key, p);
      if (!node) continue;
      p.doubtful = *doubt != 0;
      if (const auto text = node->value_exact<std::string>()) {
        p.reported = *text + doubt;
      } else {
        p.value = number(key, p);
        const auto whole = node->value_exact<std::int64_t>();
        p.reported = (whole ? fmt::format("{}", *whole) : fmt::format("{}", *p.value)) + doubt;
      }
      return;
    }
  }

  /// Rejects names in a table that are no label, model or case, because they would have no effect.
  void check_names(const std::vector<Preset>& presets) const {
    for (const char* key : {"tweaks", "only", "tasks", "reported", "unverified", "simulated", "metrics", "parameters",
                            "units", "notes", "epoch_updates"}) {
      const toml::table* values = table_of(key);
      if (!values) continue;
      for (const auto& [name, node] : *values) {
        const std::string n(name.str());
        const auto means = [&](const Preset& p) { return n == p.label || n == p.model || n == p.in_case; };
        if (n != "all" && std::none_of(presets.begin(), presets.end(), means))
          fail(fmt::format("{}.{}: there is no such preset, model or case", key, n), name.source().begin.line);
      }
    }
  }

 private:
  const toml::table* table_of(const char* key) const {
    const toml::table* table = table_.get_as<toml::table>(key);
    if (!table && table_.contains(key)) fail(fmt::format("{} must be a table", key));
    return table;
  }

  std::string file_, name_;
  const toml::table& table_;
};

PresetTable table_of(const std::string& file, const std::string& paper, const std::string& name,
                     const toml::table& toml) {
  const Section s(file, name, toml);
  s.check_name(name, toml.source().begin.line);
  const std::string folder = fs::path(file).stem();
  const std::string where = s.text("where");
  PresetTable table{
      fmt::format("{}/{}", folder, name), paper, where.empty() ? name : where, s.text("title", true), "", {}, {}};
  table.figure = s.text("figure").empty() ? "curves" : s.text("figure");
  constexpr std::array figures{"curves", "grad_norm", "bars", "map", "pictures"};
  if (std::find(figures.begin(), figures.end(), table.figure) == figures.end())
    s.fail(fmt::format("figure: {} expected, got {}", fmt::join(figures, ", "), table.figure));
  if (!s.text("note").empty()) table.notes.push_back(s.text("note"));
  const Names cases = s.side("cases"), models = s.side("models");
  if (cases.size() * models.size() > most_presets)
    s.fail(fmt::format("{} cases of {} models are more than {} presets", cases.size(), models.size(), most_presets));
  for (const auto& [in_case, case_options] : cases) {
    for (const auto& [model, model_options] : models) {
      if (!s.has(in_case, model)) continue;
      Preset p;
      p.in_case = in_case;
      p.model = model;
      p.label = in_case + (in_case.empty() || model.empty() ? "" : "-") + model;
      if (p.label.empty()) s.fail("cases or models expected");
      p.name = fmt::format("{}/{}", table.name, p.label);
      p.task = s.text("tasks", p, s.text("task"));
      if (p.task.empty()) s.fail(fmt::format("{} has no task", p.label));
      s.check_name(p.task, toml.source().begin.line);  // it is a program next to this one
      for (const std::string& options : {s.text("options"), case_options, model_options, s.text("tweaks", p, "")})
        for (std::string& word : words(options)) p.options.push_back(std::move(word));
      p.metric = s.text("metrics", p, s.text("metric"));
      if (p.metric.empty()) s.fail(fmt::format("{} has no metric", p.label));
      p.unit = s.text("units", p, s.text("unit"));
      s.take_reported(p);
      if (const auto count = s.number("parameters", p)) {
        if (!(*count >= 0 && *count < 0x1p53)) s.fail(fmt::format("parameters: {} is no count of them", *count));
        p.parameters = static_cast<std::int64_t>(*count);
      }
      p.epoch_updates = s.number("epoch_updates", p).value_or(0);
      p.notes = s.notes(p);
      table.presets.push_back(std::move(p));
    }
  }
  s.check_names(table.presets);
  return table;
}

}  // namespace

std::vector<PresetTable> read_presets(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  if (files.empty()) throw Error(folder, "holds no presets (*.toml)" + (error ? ": " + error.message() : ""));
  std::sort(files.begin(), files.end());
  std::vector<PresetTable> tables;
  for (const std::string& file : files)
    for (PresetTable& table : parse_presets(file, read_toml(file))) tables.push_back(std::move(table));
  return tables;
}

std::vector<PresetTable> parse_presets(const std::string& file, const std::string& text) try {
  const toml::table toml = toml::parse(text, file);
  const auto paper = toml["paper"].value_exact<std::string>();
  if (!paper && toml.contains("paper")) throw Error(file, "paper = \"NAME\" expected at the top");
  std::vector<std::pair<std::size_t, PresetTable>> in_order;
  for (const auto& [key, node] : toml) {
    if (key == "paper") continue;
    if (!node.is_table()) throw Error(file, fmt::format("{} must be a section", key.str()));
    in_order.emplace_back(key.source().begin.line,
                          table_of(file, paper.value_or("own runs"), std::string(key.str()), *node.as_table()));
  }
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PresetTable> tables;
  for (auto& [line, table] : in_order) tables.push_back(std::move(table));
  return tables;
} catch (const toml::parse_error& e) {
  throw Error(fmt::format("{}:{}", file, e.source().begin.line), std::string(e.description()));
} catch (const NoToml&) {
  throw Error(file, "is no TOML");
}

}  // namespace reel
