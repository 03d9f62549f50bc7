// model.json: what is taken is written and read again as it was.
#include "tasks/training/model_file.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    const ModelConfig c = parse_model_config("model.json", std::string(bytes));
    check(c.options.hidden >= 1 && c.options.layers >= 1 && c.shape.outputs >= 1, "sizes are 1 or more");
    check((c.shape.inputs > 0) != (c.shape.vocabulary > 0), "either numbers or symbols");
    const ModelConfig again = parse_model_config("model.json", model_config_text(c));
    check(again.options.settings == c.options.settings && again.options.cell == c.options.cell, "nothing is lost");
  });
}
