// A checkpoint: everything that the rest of a run depends on, in one safetensors file.
#pragma once
#include <functional>

#include "tasks/training/checkpoint_file.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/task.h"

namespace reel {

/// Writes parameters, optimiser state, schedule and position; random numbers are functions of seed and position. Throws
/// Diverged if a value is not finite, and keeps the old file.
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer, const Schedule& schedule,
                     std::uint64_t seed, const Progressed& at);

/// "cell.W: element 7 is NaN" for the first parameter that is not finite; empty if there is none.
std::string not_finite(const Model& model);

/// The specs of the states that the step after `step` starts from; none if it starts fresh.
using CarryNeeded = std::function<std::vector<Spec>(std::int64_t step)>;

/// The loaded position, and whether the file had a checksum to verify; older files have none.
struct Loaded {
  Progressed at;
  bool checked = false;
};
/// Loads a checkpoint into the model, optimiser and schedule. Throws Error naming the file and what does not fit; then
/// nothing has changed.
Loaded load_checkpoint(const std::string& path, const Model& model, Optimizer& optimizer, Schedule& schedule,
                       std::uint64_t seed, const CarryNeeded& needed);

/// Writes the parameters of the best validation. Throws Diverged like save_checkpoint, and Error for a step below 1 or
/// a loss that is not finite, which best_of() would refuse.
void save_best(const std::string& path, const Model& model, const Best& best);
/// The validation that such a file belongs to; a default Best if there is no file. Throws Error naming a damaged file.
Best best_of(const std::string& path);
/// Loads such a file into the model. Throws Error naming the file and what does not fit; then nothing has changed.
void load_best(const std::string& path, const Model& model);

}  // namespace reel
