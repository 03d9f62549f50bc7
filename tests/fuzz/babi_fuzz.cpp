// Stories with questions.
#include "tasks/data/babi.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  for (const bool punctuation : {false, true}) {
    takes([&] {
      std::vector<std::string> words{""}, answers;
      WordNumbers word(words), answer(answers);
      for (const BabiQuestion& q : parse_babi("qa1.txt", bytes, punctuation, word, answer)) {
        check(!q.story.empty() && !q.words.empty(), "a question and its story");
        for (const std::int32_t w : q.story) check(w > 0 && w < std::ssize(words), "a word");
        check(q.answer >= 0 && q.answer < std::ssize(answers), "an answer");
      }
    });
  }
}
