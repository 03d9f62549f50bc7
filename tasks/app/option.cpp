#include "tasks/app/option.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "cells/cell.h"
#include "cells/nearest_name.h"
#include "cells/plugin.h"
#include "engine/core/parse.h"
#include "tasks/app/options_file.h"
#include "tasks/app/plugins.h"
#include "tasks/io/output.h"

namespace reel {

namespace {

/// A number that --denormals flush would read as 0.
bool is_denormal(double number) { return std::fpclassify(number) == FP_SUBNORMAL; }

template <class T>
bool take_number(Option& option, const std::string& text) {
  const std::optional<T> value = parse<T>(text);
  if (!value) return false;
  const auto number = static_cast<double>(*value);
  if (!std::isfinite(number) || is_denormal(number) || number < option.bounds.low || number > option.bounds.high)
    return false;
  if (auto* setting = std::get_if<std::string*>(&option.target))
    **setting = fmt::format("{}", *value);  // not as typed: 007 is a number here, but not in TOML
  else
    *std::get<T*>(option.target) = *value;
  return true;
}

/// The words between the commas, empty ones as well.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    out.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return out;
}

}  // namespace

Option Option::one() const {
  Option out = *this;
  out.several = false;
  return out;
}

bool Option::take(const std::string& text) {
  if (several) {
    Option part = one();
    part.target = &part.setting;
    std::vector<std::string> parts;
    for (const std::string& word : parts_of(text)) {
      if (!part.take(word)) return false;
      parts.push_back(part.setting);
    }
    *std::get<std::string*>(target) = fmt::format("{}", fmt::join(parts, ","));
    return true;
  }
  switch (kind) {
    case Kind::whole:
      return take_number<std::int64_t>(*this, text);
    case Kind::natural:
      return take_number<std::uint64_t>(*this, text);
    case Kind::real:
      return take_number<double>(*this, text);
    case Kind::flag:
      if (text != "true" && text != "false") return false;
      *std::get<bool*>(target) = text == "true";
      return true;
    case Kind::choice:
      if (std::find(choices.begin(), choices.end(), text) == choices.end()) return false;
      break;
    case Kind::text:
      if (section == Section::built_in && text.empty()) return false;
      if (!survives_toml(text) || text.find('\0') != std::string::npos) return false;
      break;
  }
  *std::get<std::string*>(target) = text;
  return true;
}

void Option::take_or_throw(const std::string& text, const std::string& where, From source) {
  given = true;
  typed = typed || source == From::command_line;
  from = source;
  before = value();
  if (take(text)) return;
  if (several) {  // say which part is wrong
    Option part = one();
    part.target = &part.setting;
    for (const std::string& word : parts_of(text)) part.take_or_throw(word, where, source);
  }
  const bool bare = !text.empty() && text.find_first_not_of("0123456789+-.e") == std::string::npos;
  const std::string shown = bare ? text : fmt::format("\"{}\"", text);
  const std::string near = nearest_hint(text, choices);
  const bool any_cell = name == "cell" && choices.size() == cell_registry().size() && loaded_plugins().empty();
  const std::string hint = near.empty() && any_cell ? plugin_hint : near;
  throw Usage(fmt::format("{}{}: {} expected, got {}{}", where, name, rule(text), shown, hint));
}

void Option::refuse_unless_typed(const std::string& text, const std::string& where) const {
  if (typed_only)
    throw Usage(fmt::format("{}{}: names a program to run, so only the command line may set it. Hint: --{} {}", where,
                            name, name, shell_path(text)));
}

void Option::take_from_file(const FileValue& value, bool own) {
  if (!fits(value.type))
    throw Usage(fmt::format("{}: {}: {} expected, got a value of type {}", value.where, name, rule(), value.type));
  if (typed_only && (given || value.text.empty())) return;
  if (!own) refuse_unless_typed(value.text, value.where + ": ");
  if (!typed_only) return take_or_throw(value.text, value.where + ": ", From::file);
  print_err("{}: {} is left out: it names a program to run. Hint: --{} {}\n", one_line(value.where), name, name,
            one_line(shell_path(value.text)));
}

bool Option::fits(const std::string& type) const {
  if (type == "boolean") return kind == Kind::flag;
  if (type == "integer") return kind != Kind::flag && kind != Kind::text;
  if (type == "floating-point") return kind == Kind::real;
  if (type == "array") return several;
  // a seed of 2^63 or more does not fit a TOML integer, and is stored as text
  return type == "string" && (kind == Kind::text || kind == Kind::choice || kind == Kind::natural || several);
}

std::string Option::value() const {
  return std::visit([](const auto* value) { return fmt::format("{}", *value); }, target);
}

void Option::keep_default() {
  fallback = value();
  Option trial = *this;
  trial.target = &trial.setting;
  const bool number = !several && (kind == Kind::whole || kind == Kind::natural || kind == Kind::real);
  if (number && !trial.take(fallback))
    throw Error("options", fmt::format("the default of --{} is {}, {} expected", name, fallback, rule()));
}

std::string Option::rule(const std::string& text) const {
  if (kind == Kind::flag) return "true or false";
  if (kind == Kind::choice) return fmt::format("one of {}", fmt::join(choices, ", "));
  if (kind == Kind::text && section == Section::built_in) return "a name that is not empty";
  if (kind == Kind::text) return "text in UTF-8 without zero bytes";
  if (kind == Kind::real && is_denormal(parse<double>(text).value_or(0)))
    return fmt::format("0 or a number of {:.3g} or more in size", std::numeric_limits<double>::min());
  const std::string number = kind == Kind::real ? "a number" : "an integer";
  const double least = kind == Kind::natural ? std::max(0.0, bounds.low) : bounds.low;
  std::string low = std::isfinite(least) ? fmt::format("{}", least) : "";
  std::string high = std::isfinite(bounds.high) ? fmt::format("{}", bounds.high) : "";
  const auto add_ends = [&](auto value) {
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc::result_out_of_range) return;
    using Ends = std::numeric_limits<decltype(value)>;
    if (low.empty()) low = fmt::format("{}", Ends::lowest());
    if (high.empty()) high = fmt::format("{}", Ends::max());
  };
  if (kind == Kind::whole) add_ends(std::int64_t{});
  if (kind == Kind::natural) add_ends(std::uint64_t{});
  if (kind == Kind::real) add_ends(double{});
  if (!low.empty() && !high.empty()) return fmt::format("{} from {} to {}", number, low, high);
  if (!low.empty()) return fmt::format("{} of {} or more", number, low);
  if (!high.empty()) return fmt::format("{} of {} or less", number, high);
  return number;
}

std::string Option::toml(const std::string& key) const {
  std::string text = value();
  const bool too_big = kind == Kind::natural && text.size() > 18;  // TOML's integers may end at 2^63
  const bool list = text.find(',') != std::string::npos;
  if (kind == Kind::text || kind == Kind::choice || too_big || list) text = toml_string(text);
  if (kind == Kind::real && text.find_first_of(".e") == std::string::npos) text += ".0";
  return fmt::format("{} = {}\n", key, text);
}

std::string Option::help_lines() const {
  constexpr std::size_t column = 28, width = 100;
  constexpr const char* metavars[] = {"N", "N", "X", "TEXT", "CHOICE", ""};
  const std::string what = metavar.empty() ? metavars[static_cast<int>(kind)] : metavar;
  std::vector<std::string> notes;
  if (kind == Kind::choice) notes.push_back(fmt::format("{}", fmt::join(choices, ", ")));
  if (kind != Kind::flag && !fallback.empty()) notes.push_back("default " + fallback);
  const std::string text = notes.empty() ? help : fmt::format("{} [{}]", help, fmt::join(notes, "; "));

  std::string out, line = fmt::format("  --{}{}{}", name, what.empty() ? "" : " ", what);
  if (line.size() + 2 > column) out = std::exchange(line, "") + "\n";
  line.resize(column, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() > column && line.size() + 1 + word.size() > width)
      out += std::exchange(line, std::string(column, ' ')) + "\n";
    if (line.size() > column) line += ' ';
    line += word;
  }
  return out + line + "\n";
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    if (end > first) out.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return out;
}

std::string nearest_hint(const std::string& name, const std::vector<std::string>& known, const std::string& dashes) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : fmt::format(". Hint: {}{}.", dashes, nearest);
}

std::string option_text(const Error& error) {
  const auto* e = dynamic_cast<const SettingError*>(&error);
  if (!e) return error.what();
  const auto& [other, value] = e->hint;
  const bool flag = value == "true" || value == "false";  // whose value no word of its own can be
  std::string hint = other.empty() ? "" : fmt::format(". Hint: --{}{}{}", other, flag ? "=" : " ", value);
  if (hint.empty() && e->setting == "cell" && loaded_plugins().empty()) hint = plugin_hint;
  return fmt::format("--{}: {}{}", e->setting, e->rule, hint);
}

}  // namespace reel
