// Text: what is UTF-8 is the same when it is written again.
#include "tasks/data/text.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    check(utf8(characters("text", "x", bytes)) == bytes, "text is back");
    for (const bool fields : {false, true})
      for (const bool strip : {false, true}) (void)ptb_text("x", bytes, fields, strip);
  });
}
