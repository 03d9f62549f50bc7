// The bAbI tasks: little stories with questions, each answered by a word.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

struct BabiQuestion {
  std::vector<std::int32_t> story;  // words of all statements of the story before the question
  std::vector<std::int32_t> words;  // words of the question
  std::int32_t answer = 0;          // index of the answer
};

struct Babi {
  std::vector<std::string> words;                  // word 0 is padding
  std::vector<std::string> answers;                // an answer of several words has commas between them
  std::array<std::vector<BabiQuestion>, 3> parts;  // train, valid, test
};

/// Assigns ids to words, in the order in which they first appear.
class WordNumbers {
 public:
  explicit WordNumbers(std::vector<std::string>& names) : names_(names) {}
  std::int32_t operator()(const std::string& name);

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::int32_t> ids_;
};

/// Parses the questions of one file. Throws DataError with `file` and the line that is malformed.
std::vector<BabiQuestion> parse_babi(const std::string& file, std::string_view text, bool punctuation,
                                     WordNumbers& word, WordNumbers& answer);

/// Reads task 1 to 20 from DATA/babi/FOLDER/qaN_{train,valid,test}.txt. Words are converted to lower case; full stops
/// and question marks are separate words, or dropped. Throws DataError with the file and line that is malformed.
Babi read_babi(const std::string& data, const std::string& folder, std::int64_t task, bool punctuation);

}  // namespace reel
