// TOML files of options; a text that goes into such a file comes back.
#include "tasks/app/options.h"
#include "tasks/app/options_file.h"
#include "tasks/app/toml_file.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  const std::string text(bytes);
  takes([&] {
    check_toml("x", text);
    for (const FileValue& value : parse_options("x", text)) check(!value.type.empty(), "a value has a type");
  });
  if (bytes.size() > 200 || !survives_toml(text)) return;
  const auto values = parse_options("x", "x = " + toml_string(text));
  check(values.size() == 1 && values[0].text == text, "a text is back");
}
