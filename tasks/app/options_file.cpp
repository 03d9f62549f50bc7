#include "tasks/app/options_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "tasks/app/options.h"
#include "tasks/app/toml.h"
#include "tasks/app/toml_file.h"

namespace reel {

namespace {

std::string text_of(const toml::node& node) {
  if (const auto value = node.value_exact<bool>()) return *value ? "true" : "false";
  if (const auto value = node.value_exact<std::int64_t>()) return fmt::format("{}", *value);
  if (const auto value = node.value_exact<double>()) return fmt::format("{}", *value);
  if (const toml::array* list = node.as_array()) {  // as the command line has it: with commas
    std::vector<std::string> parts;
    for (const toml::node& part : *list) parts.push_back(text_of(part));
    return fmt::format("{}", fmt::join(parts, ","));
  }
  return node.value_exact<std::string>().value_or("");
}

void flatten(const std::string& path, const std::string& prefix, const toml::table& table,
             std::vector<FileValue>& out) {
  for (const auto& [key, node] : table) {
    std::ostringstream type;
    type << node.type();
    const std::string name = prefix + std::string(key.str());
    out.push_back({name, type.str(), text_of(node), fmt::format("{}:{}", path, key.source().begin.line)});
    if (prefix.empty() && node.is_table()) flatten(path, name + ".", *node.as_table(), out);
  }
}

}  // namespace

std::vector<FileValue> read_options_file(const std::string& path) try {
  return parse_options(path, read_toml(path));
} catch (const Usage&) {
  throw;
} catch (const Error& e) {
  throw Usage(e.what());
}

std::vector<FileValue> parse_options(const std::string& path, const std::string& text) {
  std::vector<FileValue> values;
  try {
    flatten(path, "", toml::parse(text, path), values);
  } catch (const toml::parse_error& e) {
    throw Usage(fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()));
  } catch (const NoToml&) {
    throw Usage(path + ": is not TOML");
  }
  return values;
}

std::string toml_string(const std::string& text) {
  const toml::value<std::string> value(text);
  std::ostringstream out;
  out << toml::toml_formatter(value, toml::format_flags::none);
  return out.str();
}

bool survives_toml(const std::string& text) try {
  return toml::parse("x = " + toml_string(text))["x"].value<std::string>() == text;
} catch (const toml::parse_error&) {
  return false;
}

}  // namespace reel
