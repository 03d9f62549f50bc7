// Checkpoints of a little model: what is taken is in its range, and says the same when it is saved again.
#include <cmath>

#include "tasks/training/checkpoint_file.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  static const Named places{{"W", Tensor::empty({DType::f32, {2, 3}, &host()})},
                            {"optimizer.W.0", Tensor::empty({DType::f64, {2}, &host()})}};
  takes([&] {
    const TensorFile file = parse_safetensors("x", bytes, host());
    takes([&] {
      const Best best = read_best("x", file);
      check(best.step >= 0 && std::isfinite(best.loss), "the best step is in its range");
    });
    const Saved saved = read_saved("x", file, places, Schedule({.kind = "window"}), 7);
    const Progressed& at = saved.at;
    check(at.step >= 0 && saved.updates >= 0 && saved.updates <= at.step && at.running.steps >= 0, "counters");
    check(at.seconds >= 0 && std::isfinite(at.seconds) && std::isfinite(at.running.loss), "numbers");
    check(saved.schedule.factor(at.step) >= 0 && saved.schedule.factor(at.step) <= 1, "the rate's factor");
    for (const auto& [name, place] : places) check(file.at(name).spec() == place.spec(), "specs");
    check(not_finite(file.tensors).empty(), "all is finite");
    TensorFile again = file;
    again.metadata = metadata_of(saved, 7);
    check(metadata_of(read_saved("x", again, places, Schedule({.kind = "window"}), 7), 7) == again.metadata,
          "what is saved again is the same");
  });
}
