#include "tasks/data/babi.h"

#include <cctype>

#include "engine/core/parse.h"
#include "tasks/data/data_error.h"

namespace reel {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;
constexpr std::size_t most_words = std::size_t{1} << 26;  // in all stories; each question has its own copy

std::vector<std::int32_t> words_of(std::string_view text, bool punctuation, WordNumbers& number) {
  std::vector<std::int32_t> out;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) out.push_back(number(word));
    word.clear();
  };
  for (const char c : text) {
    const bool mark = c == '.' || c == '?';
    if (c == ' ' || c == '\r' || mark) {
      flush();
      if (mark && punctuation) out.push_back(number(std::string(1, c)));
    } else {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  flush();
  return out;
}

}  // namespace

std::int32_t WordNumbers::operator()(const std::string& name) {
  const auto [at, added] = ids_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
  if (added) names_.push_back(name);
  return at->second;
}

std::vector<BabiQuestion> parse_babi(const std::string& file, std::string_view text, bool punctuation,
                                     WordNumbers& word, WordNumbers& answer) {
  std::vector<BabiQuestion> questions;
  std::vector<std::int32_t> story;
  std::int64_t before = 0;
  std::size_t number = 0, words_in_all = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the mark of the byte order
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  for (std::size_t first = 0, end = 0; first < text.size(); first = end + 1) {
    end = std::min(text.find('\n', first), text.size());
    std::string_view line = text.substr(first, end - first);
    ++number;
    const auto bad = [&](const std::string& what) {
      return DataError("babi", file, fmt::format("line {}: {}", number, what));
    };
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t space = line.find(' ');
    const auto id = parse<std::int64_t>(line.substr(0, space));
    if (!id || space == line.npos) throw bad("does not start with a number and a space");
    if (*id != 1 && *id != before + 1) throw bad(fmt::format("is number {} after {}", *id, before));
    if (*id == 1) story.clear();
    before = *id;
    line.remove_prefix(space + 1);
    const std::size_t tab = line.find('\t');
    if (tab == line.npos) {
      const auto words = words_of(line, punctuation, word);
      story.insert(story.end(), words.begin(), words.end());
      continue;
    }
    const std::string_view rest = line.substr(tab + 1);
    const std::string wanted(rest.substr(0, std::min(rest.find('\t'), rest.size())));
    words_in_all += story.size();
    if (words_in_all > most_words) throw bad(fmt::format("the stories so far have more than {} words", most_words));
    BabiQuestion question{story, words_of(line.substr(0, tab), punctuation, word), 0};
    if (wanted.empty()) throw bad("has no answer");
    if (question.words.empty() || story.empty()) throw bad("has no question, or no story before it");
    question.answer = answer(wanted);
    questions.push_back(std::move(question));
  }
  if (questions.empty()) throw DataError("babi", file, "has no questions");
  return questions;
}

Babi read_babi(const std::string& data, const std::string& folder, std::int64_t task, bool punctuation) {
  Babi babi;
  babi.words.emplace_back();
  WordNumbers word(babi.words), answer(babi.answers);
  constexpr const char* names[] = {"train", "valid", "test"};
  for (std::size_t part = 0; part < 3; ++part) {
    const std::string file = fmt::format("{}/qa{}_{}.txt", folder, task, names[part]);
    const std::string text = read_data("babi", file, data_file(data, "babi", file), most_bytes);
    babi.parts[part] = parse_babi(file, text, punctuation, word, answer);
  }
  return babi;
}

}  // namespace reel
