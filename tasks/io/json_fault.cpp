#include "tasks/io/json_fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace reel {

std::string json_fault(std::string_view text) {
  std::size_t read = 0;  // bytes, with the first wrong one
  try {
    const nlohmann::json all = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    read = e.byte;
  }
  const std::string_view before = text.substr(0, std::clamp<std::size_t>(read, 1, text.size() + 1) - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return fmt::format("line {}, column {}", line, before.size() - (before.rfind('\n') + 1) + 1);
}

std::string json_words(std::string_view what) {
  const std::size_t end = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
  return std::string(end == what.npos ? what : what.substr(end + 2));
}

}  // namespace reel
