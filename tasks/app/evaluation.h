// The loss and the scores of a model over batches, which ranks share out: validation and test.
#pragma once
#include "tasks/app/interrupt.h"
#include "tasks/training/model.h"
#include "tasks/training/ranks.h"
#include "tasks/training/task.h"

namespace reel {

struct Evaluation {
  double loss = 0, accuracy = 0;
  double entries = 0;  // by their weights
  std::vector<Score> scores;
};

/// The weighted means over all entries of these batches, which the ranks share out unless all are one chain. A request
/// of `interrupt` cuts it short.
Evaluation evaluate(const Task& task, const Model& model, const std::vector<std::vector<std::uint64_t>>& batches,
                    std::uint64_t seed, bool with_scores, Ranks& ranks, const Interrupt* interrupt = nullptr);

}  // namespace reel
