// presets/*.toml: what is taken has all that a preset needs.
#include <algorithm>

#include "tasks/app/preset.h"
#include "tasks/app/toml_file.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  const std::string text(bytes);
  takes([&] {
    check_toml("x.toml", text);
    for (const PresetTable& table : parse_presets("x.toml", text)) {
      check(table.name.starts_with("x/"), "a table is called after its file");
      for (const Preset& p : table.presets) {
        check(!p.label.empty() && !p.task.empty() && !p.main().metric.empty(), "a preset has label, task and metric");
        check(!p.parameters || *p.parameters >= 0, "a count is not negative");
      }
    }
  });
}
