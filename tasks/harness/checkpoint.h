// A checkpoint: all that the rest of a run depends on, in one safetensors file.
#pragma once
#include <functional>
#include <optional>

#include "tasks/harness/checkpoint_file.h"
#include "tasks/harness/optimizer.h"
#include "tasks/harness/task.h"

namespace reel {

/// Writes parameters, optimiser state, schedule and position; random numbers are functions of seed and position. Throws
/// Diverged when one of them is not finite, and leaves the old file.
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer, const Schedule& schedule,
                     std::uint64_t seed, const Progressed& at);

/// "cell.W: element 7 is NaN" of the first parameter that is not finite; empty when there is none.
std::string not_finite(const Model& model);

/// The states that the step after `step` starts from, by their kinds; none when it starts anew.
using CarryNeeded = std::function<std::vector<Spec>(std::int64_t step)>;

/// What was read, and whether its checksum was; older files have none.
struct Loaded {
  Progressed at;
  bool checked = false;
};
/// Reads it back into place. Throws Error naming the file and what does not fit; then nothing has changed.
Loaded load_checkpoint(const std::string& path, const Model& model, Optimizer& optimizer, Schedule& schedule,
                       std::uint64_t seed, const CarryNeeded& needed);

/// How many threads of the CPU the run used; 0: the file, of an older version, does not say. None when there is no such
/// file. Throws Error naming a damaged one.
std::optional<int> threads_of(const std::string& path);

/// Writes the parameters that belong to the best validation. Throws Diverged as save_checkpoint does.
void save_best(const std::string& path, const Model& model, const Best& best);
/// What it says of them; no best when there is no such file. Throws Error naming a damaged one.
Best best_of(const std::string& path);
/// Puts them into the model. Throws Error naming the file and what does not fit; then nothing has changed.
void load_best(const std::string& path, const Model& model);

}  // namespace reel
