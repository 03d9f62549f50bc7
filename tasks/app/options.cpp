#include "tasks/app/options.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <filesystem>

#include "cells/cell.h"
#include "cells/plugin.h"
#include "tasks/app/option.h"
#include "tasks/app/options_file.h"
#include "tasks/app/plugins.h"
#include "tasks/app/preset.h"
#include "tasks/app/provenance.h"

namespace reel {

using ValueKind = Option::Kind;
using Section = Option::Section;
using From = Option::From;

namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

struct Options::Impl {
  struct Group {
    std::string title;
    Section section;
  };

  CLI::App app;
  std::string program, description, config, resume, preset, preset_task, metavar;
  bool help = false, help_all = false, version = false, list = false;
  std::vector<std::string>* arguments = nullptr;  // the positional arguments
  std::deque<Option> options;                     // a deque, so that addresses stay valid when it grows
  std::vector<CLI::Option*> lines;                // CLI11's entry for each option
  std::vector<Group> groups;
  std::vector<std::string> cells;
  std::vector<std::string> with_resume;
  std::map<std::string, std::string> hints;  // for options of other programs, by their names
  std::vector<std::string> words;            // of the command line
  std::function<std::vector<FileValue>()> fallbacks = [] { return std::vector<FileValue>(); };

  void add_group(const std::string& title, Section section) {
    const auto same = [&](const Group& g) { return g.title == title && g.section == section; };
    if (std::none_of(groups.begin(), groups.end(), same)) groups.push_back({title, section});
  }

  void add_built_in(const std::string& name, ValueKind kind, decltype(Option::target) variable,
                    const std::string& metavar, const std::string& help) {
    add({name, kind, variable, help, "Configuration and help", Section::built_in, {}, {}, metavar});
  }

  void add(Option option) {
    add_group(option.group, option.section);
    Option& o = options.emplace_back(std::move(option));
    if (o.section == Section::cell) o.target = &o.setting;
    o.keep_default();
    const std::string name = "--" + o.name;
    lines.push_back(o.kind == ValueKind::flag ? app.add_flag(name) : app.add_option(name));
    lines.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  Option* find(const std::string& name) {
    const auto found = std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == name; });
    return found == options.end() ? nullptr : &*found;
  }

  /// The cells of --cell, each once.
  std::vector<std::string> chosen_cells() {
    const Option* cell = find("cell");
    std::vector<std::string> out;
    for (const std::string& name : cell ? split_list(cell->value()) : std::vector<std::string>())
      if (!has(out, name)) out.push_back(name);
    return out;
  }
  /// True for the name of a setting of one of them, CELL.SETTING.
  bool of_chosen_cell(const std::string& name) { return has(chosen_cells(), name.substr(0, name.find('.'))); }

  /// Candidates for a misspelt name.
  std::vector<std::string> names(bool of_file) const {
    std::vector<std::string> out;
    if (of_file) out = cells;
    for (const Option& o : options)
      if (!of_file || o.section != Section::built_in) out.push_back(o.name);
    return out;
  }

  /// Parses the command line; values are checked after the file has been read.
  void split(int argc, const char* const* argv) {
    words.assign(argv + std::min(argc, 1), argv + argc);
    for (const std::string& word : words)  // CLI11 would take the next argument as the value of --NAME=
      if (word.starts_with("--") && word.find('=') == word.size() - 1)
        throw Usage(fmt::format("{}: a value is expected", word.substr(0, word.size() - 1)));
    try {
      app.parse(argc, argv);
    } catch (const CLI::ArgumentMismatch& e) {
      const std::string text = e.what();
      throw Usage(fmt::format("{}: a value is expected", text.substr(0, text.find(':'))));
    } catch (const CLI::ParseError& e) {
      throw Usage(e.what());
    }
  }

  void reject_unknown() const {
    std::vector<std::string> unknown = app.remaining();
    if (arguments) {
      arguments->clear();
      std::erase_if(unknown, [&](const std::string& word) {
        if (word.starts_with('-')) return false;
        arguments->push_back(word);
        return true;
      });
    }
    if (unknown.empty()) return;
    const std::string first = unknown.front();
    const std::size_t start = first.find_first_not_of('-');
    if (start == 0 || start == std::string::npos)
      throw Usage(fmt::format("\"{}\": an option starting with -- is expected. See --help.", first));
    const std::string name = first.substr(0, first.find('='));
    const auto known = hints.find(name.substr(start));
    const std::string hint =
        known == hints.end() ? nearest_hint(name.substr(start), names(false), "--") : ". Hint: " + known->second + ".";
    throw Usage(fmt::format("{}: there is no such option{}", name, hint.empty() ? ". See --help." : hint));
  }

  void reject_beside_resume() const {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i]->count() > 0 && options[i].name != "resume" && !has(with_resume, options[i].name))
        throw Usage(fmt::format("--{}: a resumed run keeps its options; with --resume only --{} may be given",
                                options[i].name, fmt::join(with_resume, ", --")));
  }

  /// `own`: the file of the run that goes on.
  void take_file(const std::string& path, bool own) {
    for (const FileValue& value : read_options_file(path))
      if (value.type != "table" || !has(cells, value.name)) of_file(value).take_from_file(value, own);
  }

  /// The option that a value of a file is for; throws Usage if there is none.
  Option& of_file(const FileValue& value) {
    Option* option = find(value.name);
    if (option && option->section != Section::built_in) return *option;
    throw Usage(fmt::format("{}: {}: there is no such option{}", value.where, value.name,
                            has(cells, value.name) ? fmt::format(". Hint: section [{}]", value.name)
                                                   : nearest_hint(value.name, names(true))));
  }

  /// --help, --version and the like end the program, whatever else is on the command line.
  void answer(const Options& options) {
    for (const std::string& word : words) {
      if (word == "--version") throw Exit{0, version_text(program)};
      if (word != "--help" && word != "-h" && word != "--help-all") continue;
      const CLI::Option* cell = app.get_option_no_throw("--cell");  // whose settings are shown
      if (cell && cell->count() > 0) find("cell")->take_or_throw(cell->results().back(), "--", From::command_line);
      throw Exit{0, options.help(word == "--help-all")};
    }
  }

  /// Applies the options that the preset's author would have typed.
  void take_preset() {
    const std::vector<std::string> typed = find_preset(preset, preset_task).preset.options;
    const std::string where = fmt::format("preset {}: --", preset);
    for (std::size_t i = 0; i < typed.size(); ++i) {
      const std::size_t equals = typed[i].find('=');
      const std::string name = typed[i].starts_with("--") ? typed[i].substr(0, equals).substr(2) : "";
      Option* option = find(name);
      if (!option || option->section == Section::built_in)
        throw Usage(
            fmt::format("preset {}: {}: there is no such option{}", preset, typed[i], nearest_hint(name, names(true))));
      const bool follows = equals == std::string::npos && option->kind != ValueKind::flag;
      if (follows ? i + 1 == typed.size() : equals + 1 == typed[i].size())
        throw Usage(fmt::format("{}{}: a value is expected", where, name));
      const std::string value = follows ? typed[++i] : equals < typed[i].size() ? typed[i].substr(equals + 1) : "true";
      option->refuse_unless_typed(value, where);
      option->take_or_throw(value, where, From::preset);
    }
  }

  void take_command_line() {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i]->count() == 0) continue;
      const std::string& text = lines[i]->results().back();
      if (text.starts_with("--") && !has(words, fmt::format("--{}={}", options[i].name, text)))
        throw Usage(fmt::format("--{}: a value is expected, {} follows", options[i].name, text));
      options[i].take_or_throw(text, "--", From::command_line);
    }
  }

  /// Rejects a typed setting of a cell other than the one that runs, which would have no effect; a file may keep
  /// settings of other cells.
  void reject_other_cells() {
    const Option* cell = find("cell");
    for (std::size_t i = 0; cell && i < lines.size(); ++i)
      if (options[i].section == Section::cell && lines[i]->count() > 0 && !of_chosen_cell(options[i].name))
        throw Usage(fmt::format("--{}: is not a setting of --cell {}", options[i].name, cell->value()));
  }

  std::string values(Section section, const std::string& prefix) const {
    std::string out;
    for (const Option& o : options)
      if (o.section == section && o.name.starts_with(prefix) &&
          !has({"out", "quiet", "dry-run", "print-passes", "trace-kernels", "explain"}, o.name))
        out += o.toml(o.name.substr(prefix.size()));
    return out;
  }
};

Options::Options(const std::string& program, const std::string& description) : impl_(std::make_unique<Impl>()) {
  impl_->program = program;
  impl_->description = description;
  impl_->app.set_help_flag();  // ours shows defaults and wraps lines
  impl_->app.allow_extras();   // ours suggests the nearest option
  impl_->add_built_in("config", ValueKind::text, &impl_->config, "FILE",
                      "read options from a TOML file; the command line overrides it");
  impl_->add_built_in("help", ValueKind::flag, &impl_->help, "", "show this help and exit; also -h");
  impl_->add_built_in("version", ValueKind::flag, &impl_->version, "", "print version and commit, and exit");
}

Options::~Options() = default;

void Options::add(const std::string& name, std::int64_t& variable, const std::string& help, const std::string& group,
                  Bounds bounds) {
  impl_->add({name, ValueKind::whole, &variable, help, group, Section::ordinary, bounds});
}

void Options::add(const std::string& name, std::uint64_t& variable, const std::string& help, const std::string& group,
                  Bounds bounds) {
  impl_->add({name, ValueKind::natural, &variable, help, group, Section::ordinary, bounds});
}

void Options::add(const std::string& name, double& variable, const std::string& help, const std::string& group,
                  Bounds bounds) {
  impl_->add({name, ValueKind::real, &variable, help, group, Section::ordinary, bounds});
}

void Options::add(const std::string& name, std::string& variable, const std::string& help, const std::string& group) {
  impl_->add({name, ValueKind::text, &variable, help, group});
}

void Options::flag(const std::string& name, bool& variable, const std::string& help, const std::string& group) {
  impl_->add({name, ValueKind::flag, &variable, help, group});
}

void Options::choice(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
                     const std::string& help, const std::string& group) {
  impl_->add({name, ValueKind::choice, &variable, help, group, Section::ordinary, {}, choices});
}

void Options::list(const std::string& name, std::string& variable, Bounds bounds, const std::string& help,
                   const std::string& group) {
  Option option{name, ValueKind::whole, &variable, help, group, Section::ordinary, bounds};
  option.several = true;
  impl_->add(std::move(option));
}

void Options::list(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
                   const std::string& help, const std::string& group) {
  Option option{name, ValueKind::choice, &variable, help, group, Section::ordinary, {}, choices};
  option.several = true;
  impl_->add(std::move(option));
}

void Options::cells() {
  impl_->add_built_in("help-all", ValueKind::flag, &impl_->help_all, "", "show help with the settings of every cell");
  for (const CellType& cell : cell_registry()) {
    const std::string group = fmt::format("cell {}: {}", cell.name, cell.help);
    impl_->cells.push_back(cell.name);
    impl_->add_group(group, Section::cell);
    for (const Setting& s : cell.settings) {
      const ValueKind kind = s.kind == Setting::Kind::integer ? ValueKind::whole
                             : s.kind == Setting::Kind::real  ? ValueKind::real
                                                              : ValueKind::choice;
      Option option{cell.name + "." + s.name, kind, static_cast<std::string*>(nullptr), s.help, group, Section::cell};
      option.choices = s.choices;
      option.target = &option.setting;
      REEL_ASSERT(option.take(s.fallback));
      impl_->add(std::move(option));
    }
  }
}

void Options::presets(const std::string& task) {
  impl_->preset_task = task;
  impl_->add_built_in("preset", ValueKind::text, &impl_->preset, "NAME",
                      "use the options of a paper's experiment; other options override them");
  impl_->add_built_in("list-presets", ValueKind::flag, &impl_->list, "",
                      "list the presets with the reported numbers, and exit");
}

void Options::arguments(const std::string& metavar, std::vector<std::string>& variable) {
  impl_->metavar = metavar + " ";
  impl_->arguments = &variable;
}

void Options::allow_with_resume(const std::vector<std::string>& names) {
  impl_->with_resume = names;
  impl_->add_built_in("resume", ValueKind::text, &impl_->resume, "DIR",
                      "continue the run in this folder, with its options");
}

void Options::typed_only(const std::string& name) { impl_->find(name)->typed_only = true; }

void Options::fall_back_on(std::function<std::vector<FileValue>()> values) { impl_->fallbacks = std::move(values); }
void Options::hint(const std::string& name, const std::string& text) { impl_->hints[name] = text; }

void Options::parse(int argc, const char* const* argv) {
  for (const std::string& cell : impl_->cells)
    if (impl_->find(cell))
      throw Error("cell", fmt::format("\"{}\" is an option here, too. Hint: rename the cell", cell));
  impl_->split(argc, argv);
  impl_->answer(*this);
  impl_->reject_unknown();
  impl_->take_command_line();  // first for --preset, --config and --resume, and again to override what they set
  if (impl_->list) throw Exit{0, list_presets(impl_->preset_task)};
  if (!resume().empty()) {
    impl_->reject_beside_resume();
    const std::string config = resume() + "/config.toml";
    std::error_code error;
    if (!std::filesystem::exists(config, error))
      throw Usage(fmt::format("--resume {}: the folder has no config.toml, so there is no run to resume", resume()));
    try {
      impl_->take_file(config, true);
    } catch (const Usage& e) {  // nobody typed what it says
      throw Error(e.what());
    }
  } else {
    if (!preset().empty()) impl_->take_preset();
    if (!config().empty()) impl_->take_file(config(), false);
  }
  impl_->take_command_line();
  for (const FileValue& v : impl_->fallbacks())
    if (Option& o = impl_->of_file(v); !o.given) o.take_or_throw(v.text, v.where + ": ", From::preset);
  impl_->reject_other_cells();
}

std::map<std::string, std::string> Options::settings(const std::string& cell) const {
  std::map<std::string, std::string> out;
  for (const Option& o : impl_->options)
    if (o.section == Section::cell && o.given && o.name.starts_with(cell + "."))
      out[o.name.substr(cell.size() + 1)] = o.setting;
  return out;
}

bool Options::given(const std::string& name) const {
  const Option* option = impl_->find(name);
  return option && option->given;
}

bool Options::typed(const std::string& name) const {
  const Option* option = impl_->find(name);
  return option && option->typed;
}

bool Options::later(const std::string& name, const std::string& than) const {
  return impl_->find(name)->from > impl_->find(than)->from;
}
const std::string& Options::before(const std::string& name) const { return impl_->find(name)->before; }
const std::string& Options::resume() const { return impl_->resume; }
const std::string& Options::config() const { return impl_->config; }
const std::string& Options::preset() const { return impl_->preset; }

std::string Options::toml() const {
  std::string out = impl_->values(Section::ordinary, "");
  for (const std::string& cell : impl_->chosen_cells())
    if (const std::string settings = impl_->values(Section::cell, cell + "."); !settings.empty())
      out += fmt::format("\n[{}]\n", cell) + settings;
  return out;
}

std::string Options::help(bool all_cells) const {
  std::string out = fmt::format("{}\n\nUsage: {} {}[options]\n", impl_->description, impl_->program, impl_->metavar);
  const std::vector<std::string> cells = impl_->chosen_cells();
  for (const Section section : {Section::ordinary, Section::built_in, Section::cell}) {
    for (const Impl::Group& group : impl_->groups) {
      if (group.section != section) continue;
      const auto titled = [&](const std::string& name) {
        return group.title.starts_with(fmt::format("cell {}: ", name));
      };
      const bool chosen = std::any_of(cells.begin(), cells.end(), titled);
      if (section == Section::cell && !cells.empty() && !chosen && !all_cells) continue;
      std::string lines;
      for (const Option& o : impl_->options)
        if (o.section == section && o.group == group.title) lines += o.help_lines();
      out += fmt::format("\n{}\n{}", group.title, lines.empty() ? "  (no settings)\n" : lines);
    }
  }
  if (!cells.empty() && !impl_->cells.empty() && !all_cells)
    out += "\nThe settings of another cell: --cell NAME --help; of every cell: --help-all.\n";
  return out;
}

}  // namespace reel
