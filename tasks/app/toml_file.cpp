#include "tasks/app/toml_file.h"

#include <algorithm>

#include "engine/core/error.h"
#include "tasks/io/files.h"

namespace reel {

namespace {

constexpr std::size_t most_bytes = 1 << 18;
constexpr std::ptrdiff_t most_dots = 10000;  // toml++ copes with ten times as many nested tables

}  // namespace

std::string read_toml(const std::string& path) {
  std::string text = read_file(path, most_bytes);
  check_toml(path, text);
  return text;
}

void check_toml(const std::string& path, std::string_view text) {
  if (text.size() > most_bytes) throw Error(fmt::format("{}: has more than {} bytes", path, most_bytes));
  if (std::count(text.begin(), text.end(), '.') > most_dots)
    throw Error(fmt::format("{}: has more than {} dots: keys of such length cannot be read", path, most_dots));
}

}  // namespace reel
