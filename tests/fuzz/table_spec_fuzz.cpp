// table.json: what is read is written, and comes back; answers and features of whatever it says.
#include <cmath>

#include "tasks/data/table_spec.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    const TableSpec spec = TableSpec::parse("x", bytes);
    check(TableSpec::parse("x", spec.json()) == spec, "it is back");
    const std::vector<double> outputs(static_cast<std::size_t>(spec.outputs()), 0.5);
    const std::vector<double> answers = spec.answers(outputs);
    check(answers.size() == outputs.size(), "an answer for each output");
    if (spec.classifies()) check(spec.likeliest(answers) == spec.classes.front(), "all are as likely");
    const std::vector<double> raw(spec.inputs.size(), 1);
    std::vector<float> features(raw.size());
    Features next(spec);
    takes([&] {
      next(raw, features, [] { return std::string("row"); });
      for (const float f : features) check(std::isfinite(f), "features are finite");
    });
  });
}
