#include "tasks/data/vocabulary.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/data/data_error.h"

namespace reel {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 26;

std::string json_of(const Vocabulary& vocabulary) {
  return Json(vocabulary).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The file of a run, if it has one.
std::optional<Vocabulary> load(const std::string& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) return std::nullopt;
  try {
    return Json::parse(read_file(path, most_bytes)).get<Vocabulary>();
  } catch (const Json::exception&) {
    throw FileError(path + ": is damaged: lists of names are expected. Hint: the run works without this file, too");
  }
}

}  // namespace

void save_vocabulary(const std::string& path, const Vocabulary& vocabulary) {
  write_atomically(path, json_of(vocabulary) + "\n");
}

std::vector<std::string> vocabulary_of_run(const std::string& run, std::int64_t symbols) {
  const std::string path = run + "/vocabulary.json";
  const std::optional<Vocabulary> vocabulary = load(path);
  if (!vocabulary) return {};
  if (!vocabulary->contains("characters")) throw FileError(path + ": is damaged: a list of characters is expected");
  const std::vector<std::string>& characters = vocabulary->at("characters");
  if (std::ssize(characters) != symbols)
    throw FileError(fmt::format("{}: has {} characters, the model {} symbols", path, characters.size(), symbols));
  return characters;
}

std::optional<bool> run_has_character(const std::string& run, const std::string& character) {
  const std::optional<Vocabulary> vocabulary = load(run + "/vocabulary.json");
  if (!vocabulary) return std::nullopt;
  const auto all = vocabulary->find("characters");
  return all != vocabulary->end() && std::ranges::find(all->second, character) != all->second.end();
}

std::string first_change(const std::string& kind, const std::vector<std::string>& before,
                         const std::vector<std::string>& now) {
  const std::size_t common = std::min(before.size(), now.size());
  for (std::size_t i = 0; i < common; ++i)
    if (before[i] != now[i]) return fmt::format("{} {} was \"{}\" and is \"{}\"", kind, i + 1, before[i], now[i]);
  return "";
}

std::vector<std::string> changed_names(const std::string& run, const Vocabulary& now) {
  std::vector<std::string> changes;
  const std::optional<Vocabulary> before = load(run + "/vocabulary.json");
  if (!before) return changes;
  for (const auto& [kind, names] : Json::parse(json_of(now)).get<Vocabulary>()) {  // as a file has them
    const auto then = before->find(kind);
    if (then == before->end()) continue;
    const std::string change = first_change(kind.substr(0, kind.size() - 1), then->second, names);  // "word 3"
    if (!change.empty()) changes.push_back(change);
  }
  return changes;
}

void keep_vocabulary(const std::string& run, const Vocabulary& now, bool resumed) {
  if (resumed)
    if (const auto changes = changed_names(run, now); !changes.empty())
      throw FileError(fmt::format(
          "{}: the data have changed since the run began: {}. Hint: start a new run, with --init-from {} to "
          "keep the parameters",
          run, fmt::join(changes, ", "), run));
  save_vocabulary(run + "/vocabulary.json", now);
}

}  // namespace reel
