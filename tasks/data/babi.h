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
  std::vector<std::int32_t> words;  // of the question
  std::int32_t answer = 0;          // which of the answers
};

struct Babi {
  std::vector<std::string> words;                  // word 0 stands for none
  std::vector<std::string> answers;                // several words with commas between are one answer
  std::array<std::vector<BabiQuestion>, 3> parts;  // train, valid, test
};

/// Numbers for words, in the order in which they come.
class WordNumbers {
 public:
  explicit WordNumbers(std::vector<std::string>& names) : names_(names) {}
  std::int32_t operator()(const std::string& name);

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::int32_t> ids_;
};

/// The questions of the text of one file. Throws DataError with `file` and the line of what is not of the format.
std::vector<BabiQuestion> parse_babi(const std::string& file, std::string_view text, bool punctuation,
                                     WordNumbers& word, WordNumbers& answer);

/// Task 1 to 20 from DATA/babi/FOLDER/qaN_{train,valid,test}.txt. Words are in lower case; full stops and question
/// marks are words of their own, or left out. Throws DataError with file and line of what is not of the format.
Babi read_babi(const std::string& data, const std::string& folder, std::int64_t task, bool punctuation);

}  // namespace reel
