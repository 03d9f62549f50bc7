// vocabulary.json of a run folder: the characters that a model's symbols stand for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reel {

/// Replaces the file atomically: {"characters": ["a", "b"]}, in the order of their symbols.
void save_vocabulary(const std::string& path, const std::u32string& characters);
/// The characters of a run whose model has so many symbols, in UTF-8; none if it has no such file. Throws FileError for
/// a file that is not as save_vocabulary writes it, or of another model.
std::vector<std::string> vocabulary_of_run(const std::string& run, std::int64_t symbols);

}  // namespace reel
