// Parses numbers from text.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace reel {

/// Parses the text as a number; nullopt unless all of it is one.
template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace reel
