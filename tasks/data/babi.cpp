#include "tasks/data/babi.h"

#include <cctype>
#include <map>

#include "engine/parse.h"
#include "tasks/harness/data_error.h"
#include "tasks/harness/files.h"

namespace reel {

namespace {

/// Numbers for words, in the order in which they come.
class Numbers {
 public:
  explicit Numbers(std::vector<std::string>& names) : names_(names) {}
  std::int32_t operator()(const std::string& name) {
    const auto [at, added] = ids_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (added) names_.push_back(name);
    return at->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::int32_t> ids_;
};

std::vector<std::int32_t> words_of(std::string_view text, bool punctuation, Numbers& number) {
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

Babi read_babi(const std::string& data, const std::string& folder, std::int64_t task, bool punctuation) {
  Babi babi;
  babi.words.emplace_back();
  Numbers word(babi.words), answer(babi.answers);
  constexpr const char* names[] = {"train", "valid", "test"};
  for (std::size_t part = 0; part < 3; ++part) {
    const std::string file = fmt::format("{}/qa{}_{}.txt", folder, task, names[part]);
    const std::string text = read_file(data_file(data, "babi", file));
    std::vector<std::int32_t> story;
    std::int64_t before = 0;
    std::size_t number = 0;
    for (std::size_t first = 0, end = 0; first < text.size(); first = end + 1) {
      end = std::min(text.find('\n', first), text.size());
      std::string_view line(&text[first], end - first);
      ++number;
      const auto bad = [&](const std::string& what) {
        return DataError("babi", file, fmt::format("line {}: {}", number, what));
      };
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
      BabiQuestion question{story, words_of(line.substr(0, tab), punctuation, word), 0};
      if (wanted.empty()) throw bad("has no answer");
      if (question.words.empty() || story.empty()) throw bad("has no question, or no story before it");
      question.answer = answer(wanted);
      babi.parts[part].push_back(std::move(question));
    }
    if (babi.parts[part].empty()) throw DataError("babi", file, "has no questions");
  }
  return babi;
}

}  // namespace reel
