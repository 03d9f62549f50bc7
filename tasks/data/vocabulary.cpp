#include "tasks/data/vocabulary.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/data/data_error.h"
#include "tasks/data/text.h"

namespace reel {

namespace {
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 26;
}

void save_vocabulary(const std::string& path, const std::u32string& characters) {
  nlohmann::json list = nlohmann::json::array();
  for (const char32_t c : characters) list.push_back(utf8(std::u32string(1, c)));
  write_atomically(path, nlohmann::json{{"characters", list}}.dump() + "\n");
}

std::vector<std::string> vocabulary_of_run(const std::string& run, std::int64_t symbols) {
  const std::string path = run + "/vocabulary.json";
  std::vector<std::string> characters;
  if (std::error_code error; !std::filesystem::exists(path, error)) return characters;
  try {
    nlohmann::json::parse(read_file(path, most_bytes)).at("characters").get_to(characters);
  } catch (const nlohmann::json::exception&) {
    throw FileError(path + ": is damaged: a list of characters is expected");
  }
  if (std::ssize(characters) != symbols)
    throw FileError(fmt::format("{}: has {} characters, the model {} symbols", path, characters.size(), symbols));
  return characters;
}

}  // namespace reel
