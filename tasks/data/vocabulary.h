// vocabulary.json of a run folder: what a model's symbols and answers stand for.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reel {

/// What the numbers of each kind stand for, in their order: "characters", or "words" and "answers".
using Vocabulary = std::map<std::string, std::vector<std::string>>;

/// Replaces the file atomically: {"characters": ["a", "b"]}. Bytes that are not UTF-8 become U+FFFD.
void save_vocabulary(const std::string& path, const Vocabulary& vocabulary);
/// The characters of a run whose model has so many symbols, in UTF-8; none if it has no such file. Throws FileError for
/// a file that is not as save_vocabulary writes it, or of another model.
std::vector<std::string> vocabulary_of_run(const std::string& run, std::int64_t symbols);
/// True if this is one of the characters of a run; nothing if the run has no such file.
std::optional<bool> run_has_character(const std::string& run, const std::string& character);

/// Where one list of names first differs from another of the same kind, as far as both have names: "input 1 was \"a\"
/// and is \"b\""; no text if nowhere.
std::string first_change(const std::string& kind, const std::vector<std::string>& before,
                         const std::vector<std::string>& now);
/// The first change of each kind since a run; none if it has no such file. Throws FileError for a damaged one.
std::vector<std::string> changed_names(const std::string& run, const Vocabulary& now);
/// Writes the file of a run that begins or goes on. Throws FileError if it goes on with other names than it began with.
void keep_vocabulary(const std::string& run, const Vocabulary& now, bool resumed);

}  // namespace reel
