// Reads presets/*.toml as a list of presets.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "tasks/app/preset_section.h"
#include "tasks/app/toml_file.h"
#include "tasks/io/folder.h"
#include "tasks/io/output.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_presets = 1000;  // per section; each holds a copy of what the section says

constexpr std::array section_keys{
    "title",  "where",  "task",          "options", "metric",   "unit",       "figure",    "note",    "cases",
    "models", "tweaks", "only",          "tasks",   "reported", "unverified", "simulated", "metrics", "parameters",
    "units",  "notes",  "epoch_updates", "expect",  "curves",   "columns",    "mean",      "needs"};
constexpr std::array column_keys{"metric", "unit", "reported", "unverified", "simulated", "expect"};
constexpr std::array reported_keys{"reported", "unverified", "simulated"};
constexpr std::array named{"tweaks",     "only",  "tasks", "reported",      "unverified", "simulated", "metrics",
                           "parameters", "units", "notes", "epoch_updates", "needs"};  // tables with names of presets
constexpr std::array mean_keys{"reported", "unverified", "expect"};

/// The options in a text, as a shell splits them: at spaces, but for those in quotes or behind a backslash. Nothing if
/// a quote is left open.
std::optional<std::vector<std::string>> words(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  bool begun = false;  // a word may be empty, as in ''
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (!quote && std::isspace(static_cast<unsigned char>(c))) {
      if (std::exchange(begun, false)) out.push_back(std::exchange(word, ""));
      continue;
    }
    begun = true;
    if (quote ? c == quote : c == '\'' || c == '"')
      quote = quote ? '\0' : c;
    else if (c == '\\' && next && (!quote || (quote == '"' && (next == '"' || next == '\\'))))
      word += text[++i];
    else
      word += c;
  }
  if (begun) out.push_back(word);
  if (quote) return std::nullopt;
  return out;
}

void check_metric(const PresetSection& s, const Preset& p, const std::string& metric) {
  if (metric == "epoch_seconds" && !(p.epoch_updates > 0 && std::isfinite(p.epoch_updates)))
    s.fail(
        fmt::format("metric = \"epoch_seconds\": the updates of an epoch of {} expected. Hint: epoch_updates.all = "
                    "UPDATES in the section",
                    p.label));
}

/// Adds the measures of [SECTION.columns.NAME] to each preset.
void add_columns(PresetTable& table, const PresetSection& s) {
  const toml::table* columns = s.table_of("columns");
  if (!columns || table.presets.empty()) return;
  std::vector<std::pair<std::size_t, std::string>> in_order;
  for (const auto& [name, node] : *columns) {
    if (!node.is_table()) s.fail(fmt::format("columns.{} must be a table", name.str()), name.source().begin.line);
    in_order.emplace_back(name.source().begin.line, name.str());
  }
  std::sort(in_order.begin(), in_order.end());
  for (const auto& [line, name] : in_order) {
    const PresetSection column = s.inner("columns", name, column_keys);
    column.check_name(name, line);
    column.check_names(table.presets, reported_keys);
    for (Preset& p : table.presets) {
      Measure measure{.name = name, .metric = column.text("metric", true), .unit = column.text("unit")};
      check_metric(column, p, measure.metric);
      column.take_reported(p, measure);
      p.measures.push_back(std::move(measure));
    }
    column.take_expected(table.presets, table.presets.front().measures.size() - 1);
  }
}

/// Adds the rows of [SECTION.mean]: a model's mean over all cases.
void add_means(PresetTable& table, const PresetSection& s) {
  const auto mean = s.inner("mean", mean_keys);
  if (!mean) return;
  for (const Preset& p : table.presets) {
    if (p.in_case == "mean" || p.in_case.empty()) s.fail("mean: cases expected, of another name than mean");
    const auto same = [&](const Preset& m) { return m.model == p.model; };
    if (std::any_of(table.means.begin(), table.means.end(), same)) continue;
    Preset m;
    m.in_case = "mean";
    m.model = p.model;
    m.label = "mean" + (p.model.empty() ? "" : "-" + p.model);
    m.name = fmt::format("{}/{}", table.name, m.label);
    m.measures.push_back({.metric = p.main().metric, .unit = p.main().unit});
    mean->take_reported(m, m.measures.front());
    table.means.push_back(std::move(m));
  }
  mean->check_names(table.means, reported_keys);
  mean->take_expected(table.means, 0);
}

/// Throws Error for a preset without a name, or with that of an earlier one.
void check_label(const PresetSection& s, const Preset& p, const std::vector<Preset>& earlier) {
  if (p.label.empty()) s.fail("cases or models expected");
  const auto same = std::ranges::find(earlier, p.label, &Preset::label);
  if (same == earlier.end()) return;
  s.fail(
      fmt::format("{} is the name of two presets: of case {} with model {}, and of case {} with model {}. Hint: "
                  "rename one of these",
                  p.label, same->in_case, same->model, p.in_case, p.model));
}

Measure main_measure(const PresetSection& s, const Preset& p) {
  Measure main{.metric = s.text("metrics", p, s.text("metric"))};
  if (main.metric.empty()) s.fail(fmt::format("{} has no metric", p.label));
  main.unit = s.text("units", p, s.text("unit"));
  s.take_reported(p, main);
  return main;
}

/// A case or a model, and its options.
using Side = PresetSection::Names::value_type;

/// The preset of a case with a model, in the table so far.
Preset preset_of(const PresetTable& table, const PresetSection& s, const Side& in_case, const Side& model,
                 std::size_t line) {
  Preset p;
  p.in_case = in_case.first;
  p.model = model.first;
  p.label = p.in_case + (p.in_case.empty() || p.model.empty() ? "" : "-") + p.model;
  check_label(s, p, table.presets);
  p.name = fmt::format("{}/{}", table.name, p.label);
  p.task = s.text("tasks", p, s.text("task"));
  if (p.task.empty()) s.fail(fmt::format("{} has no task", p.label));
  s.check_name(p.task, line);  // it is a program next to this one
  for (const std::string& options : {s.text("options"), in_case.second, model.second, s.text("tweaks", p, "")}) {
    const auto typed = words(options);
    if (!typed) s.fail(fmt::format("{}: a quote is left open in the options {}", p.label, one_line(options)));
    p.options.insert(p.options.end(), typed->begin(), typed->end());
  }
  p.measures.push_back(main_measure(s, p));
  if (const auto count = s.number("parameters", p)) {
    if (!(*count >= 0 && *count < 0x1p53)) s.fail(fmt::format("parameters: {} is no count of them", *count));
    p.parameters = static_cast<std::int64_t>(*count);
  }
  p.epoch_updates = s.number("epoch_updates", p).value_or(0);
  check_metric(s, p, p.main().metric);
  p.notes = s.notes(p);
  p.needs = s.text("needs", p, "");
  return p;
}

/// Adds the preset of each case with each model.
void add_presets(PresetTable& table, const PresetSection& s, std::size_t line) {
  const PresetSection::Names cases = s.side("cases"), models = s.side("models");
  if (cases.size() * models.size() > most_presets)
    s.fail(fmt::format("{} cases of {} models are more than {} presets", cases.size(), models.size(), most_presets));
  for (const Side& in_case : cases)
    for (const Side& model : models)
      if (s.has(in_case.first, model.first)) table.presets.push_back(preset_of(table, s, in_case, model, line));
  s.check_names(table.presets, named);
  s.take_expected(table.presets, 0);
}

PresetTable table_of(const std::string& file, const std::string& paper, const std::string& name,
                     const toml::table& toml) {
  const PresetSection s(file, name, toml, section_keys);
  const std::size_t line = toml.source().begin.line;
  s.check_name(name, line);
  const std::string folder = fs::path(file).stem();
  const std::string where = s.text("where");
  PresetTable table{fmt::format("{}/{}", folder, name),
                    paper,
                    where.empty() ? name : where,
                    s.text("title", true),
                    "",
                    {},
                    {},
                    false,
                    {}};
  table.figure = s.text("figure").empty() ? "curves" : s.text("figure");
  constexpr std::array figures{"curves", "grad_norm", "bars", "map", "pictures"};
  if (std::find(figures.begin(), figures.end(), table.figure) == figures.end())
    s.fail(fmt::format("figure: {} expected, got {}", fmt::join(figures, ", "), table.figure));
  table.curves = s.flag("curves");
  if (!s.text("note").empty()) table.notes.push_back(s.text("note"));
  add_presets(table, s, line);
  add_columns(table, s);
  add_means(table, s);
  return table;
}

}  // namespace

std::vector<PresetTable> read_presets(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::path& entry : entries_of(folder))
    if (entry.extension() == ".toml") files.push_back(entry);
  for (const std::string& file : files)  // reading a pipe would wait for ever
    if (std::error_code error; !fs::is_regular_file(file, error)) throw Error(file, "is not a file of presets");
  if (files.empty()) throw Error(folder, "holds no presets (*.toml)");
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
  throw Error(file, "is not TOML");
}

}  // namespace reel
