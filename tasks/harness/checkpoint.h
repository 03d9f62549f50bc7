// A checkpoint: all that the rest of a run depends on, in one safetensors file.
#pragma once
#include <limits>

#include "tasks/harness/optimizer.h"
#include "tasks/harness/task.h"

namespace reel {

/// The sums behind the next row of metrics.csv.
struct Running {
  std::int64_t steps = 0;  // since the last row
  double loss = 0, grad_norm = 0;
};

struct Progressed {
  std::int64_t step = 0;  // updates done
  double seconds = 0;     // spent training and validating
  Running running;
  Tensors carry = {};  // states that the next batch starts from
};

/// Writes parameters, optimiser state, schedule and position; random numbers are functions of seed and position.
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer, const Schedule& schedule,
                     std::uint64_t seed, const Progressed& at);

/// Reads it back into place. Throws Error naming the file and what does not fit; then nothing has changed.
Progressed load_checkpoint(const std::string& path, const Model& model, Optimizer& optimizer, Schedule& schedule,
                           std::uint64_t seed);

/// The validation with the lowest loss so far.
struct Best {
  std::int64_t step = -1;  // -1: none yet
  double loss = std::numeric_limits<double>::infinity();
};

/// Writes the parameters that belong to it.
void save_best(const std::string& path, const Model& model, const Best& best);
/// What it says of them; no best when there is no such file. Throws Error naming a damaged one.
Best best_of(const std::string& path);
/// Puts them into the model. Throws Error naming the file and what does not fit.
void load_best(const std::string& path, const Model& model);

}  // namespace reel
