// What a run leaves behind, and how two such ends compare.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tasks/io/files.h"
#include "tests/faults/workplace.h"

namespace reel::faults {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> cells_of(const std::string& line, char separator) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, separator);) cells.push_back(cell);
  return cells;
}

/// A table in text, with a head, without its columns of times.
std::string without_times(const std::string& text, char separator) {
  std::istringstream lines(text);
  std::string out;
  std::set<std::size_t> times;  // of the table that the line is in
  bool within = false;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = cells_of(line, separator);
    const bool row = cells.size() > 1;
    for (std::size_t i = 0; row && !within && i < cells.size(); ++i)
      for (const char* name : {"seconds", "date", "hours"})
        if (cells[i].find(name) != std::string::npos) times.insert(i);
    if (!row) times.clear();
    within = row;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!times.contains(i)) out += cells[i] + separator;
    out += '\n';
  }
  return out;
}

/// Without times, at any depth.
nlohmann::ordered_json timeless(nlohmann::ordered_json json) {
  if (json.is_object())
    for (const char* key : {"seconds", "steps_per_second", "update_seconds", "date", "command"}) json.erase(key);
  if (json.is_structured())
    for (auto& part : json) part = timeless(part);
  return json;
}

/// A line for each tensor with its bytes, and one with the metadata, without seconds and the checksum over them; read
/// without the project's own reader. The bytes as they are when they are no safetensors file.
std::string tensors(const std::string& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) return bytes;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) return bytes;
  auto header = nlohmann::json::parse(bytes.substr(sizeof size, size), nullptr, false);
  if (header.is_discarded()) return bytes;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data()) + sizeof size + size;
  std::string text;
  for (auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") {
      for (const char* key : {"seconds", "reel.crc32"}) tensor.erase(key);
      text += tensor.dump() + "\n";
      continue;
    }
    const std::size_t from = tensor["data_offsets"][0], to = tensor["data_offsets"][1];
    if (from > to || to > bytes.size() - sizeof size - size) return bytes;
    text += fmt::format("{} {} {} {:02x}\n", name, tensor["dtype"].dump(), tensor["shape"].dump(),
                        fmt::join(data + from, data + to, ""));
  }
  return text;
}

/// What a page shows, without times; the bytes as they are when it is not whole.
std::string page(const std::string& bytes) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = bytes.find(begin), first = at + begin.size();
  if (at == std::string::npos || !bytes.ends_with("</html>\n")) return bytes;
  const std::string text = bytes.substr(first, bytes.find("</script>", first) - first);
  const auto data = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!data.is_object()) return bytes;
  nlohmann::ordered_json shown;
  for (const char* key : {"title", "state", "rows", "groups", "parameters", "pictures"})
    if (data.contains(key)) shown[key] = timeless(data[key]);
  for (auto& picture : shown["pictures"])  // from its SVG or its PNG
    if (picture.is_object()) picture.erase("source");
  return shown.dump();
}

std::string comparable(const fs::path& path) {
  std::string bytes = read_file(path);
  const std::string name = path.filename();
  // who holds the lock; what programs that others start say, with times
  if (name == "lock" || name.ends_with("out.txt") || name.ends_with("err.txt")) return "";
  if (path.extension() == ".csv") return without_times(bytes, ',');
  if (path.extension() == ".md")
    return without_times(std::regex_replace(bytes, std::regex("([0-9.]+ (s|hours)|\\(kept\\))[ .]"), ""), '|');
  if (path.extension() == ".safetensors") return tensors(bytes);
  if (path.extension() == ".html") return page(bytes);
  if (path.extension() == ".json") {
    const auto json = nlohmann::ordered_json::parse(bytes, nullptr, false);
    return json.is_discarded() ? bytes : timeless(json).dump(1);
  }
  return bytes;
}

/// The first line that differs.
std::string line_that_differs(const std::string& a, const std::string& b) {
  const auto place =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  const auto at = static_cast<std::size_t>(place.first - a.begin());
  const auto line = [at](const std::string& text) {
    const std::size_t before = text.rfind('\n', at == 0 ? 0 : at - 1),
                      first = before == std::string::npos ? 0 : before + 1;
    return text.substr(first, std::min<std::size_t>(text.find('\n', at) - first, 100));
  };
  return fmt::format("byte {}: \"{}\", not \"{}\"", at, line(b), line(a));
}

}  // namespace

Files Workplace::files() const {
  Files all;
  if (!fs::exists(run())) return all;
  for (const auto& entry : fs::recursive_directory_iterator(run()))
    if (!entry.is_directory()) all[fs::relative(entry.path(), run())] = comparable(entry.path());
  return all;
}

std::string difference(const Files& expected, const Files& found) {
  for (const auto& [name, text] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) return name + " is missing";
    if (other->second != text) return name + " differs at " + line_that_differs(text, other->second);
  }
  for (const auto& [name, text] : found)
    if (!expected.contains(name)) return name + " is left over";
  return "";
}

}  // namespace reel::faults
