#include "tasks/io/json_fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace reel {
namespace {

using Json = nlohmann::json;

// Takes everything and keeps nothing but where reading stopped: a number outside f64 is a fault of another kind than a
// wrong character to the parser, and only here are both told with their place.
struct FaultPlace final : nlohmann::json_sax<Json> {
  std::size_t read = 0;  // bytes, with the first wrong one

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(Json::number_integer_t) override { return true; }
  bool number_unsigned(Json::number_unsigned_t) override { return true; }
  bool number_float(Json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    read = position;
    return false;
  }
};

}  // namespace

std::string json_fault(std::string_view text) {
  FaultPlace place;
  Json::sax_parse(text, &place);
  const std::size_t read = place.read;
  const std::string_view before = text.substr(0, std::clamp<std::size_t>(read, 1, text.size() + 1) - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return fmt::format("line {}, column {}", line, before.size() - (before.rfind('\n') + 1) + 1);
}

std::string json_words(std::string_view what) {
  const std::size_t end = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
  return std::string(end == what.npos ? what : what.substr(end + 2));
}

}  // namespace reel
