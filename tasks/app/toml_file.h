// Reads and checks the text of a TOML file before toml++ parses it.
#pragma once
#include <string>
#include <string_view>

namespace reel {

/// The text of a file that check_toml() accepts. Throws Error with the path if it cannot be read or is too large.
std::string read_toml(const std::string& path);

/// Throws Error for a text that is larger than any such file of ours, or has keys so long ("a.a.a...") that toml++ 3.3
/// would run out of stack.
void check_toml(const std::string& path, std::string_view text);

}  // namespace reel
