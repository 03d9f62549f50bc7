#include "tasks/app/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tasks/training/device.h"
#include "tasks/training/training_step.h"

namespace reel {

namespace {

/// The sums over the entries of one batch.
struct Sums {
  double entries = 0, loss = 0, accuracy = 0;
  std::vector<Score> scores = {};
};

/// A batch continues the one before, or begins a chain of its own; the number of the chain of each.
std::vector<std::int64_t> chains(const Task& task, const std::vector<std::vector<std::uint64_t>>& batches) {
  std::vector<std::int64_t> of;
  for (const auto& streams : batches)
    of.push_back(of.empty() ? 0 : task.continues(streams) ? of.back() : of.back() + 1);
  return of;
}

/// Gets the sums of batches that other ranks have computed; only rank 0 learns the names of scores.
void gather(Ranks& ranks, std::vector<Sums>& sums, const std::vector<std::int64_t>& chain) {
  std::string mine;
  const auto put = [&](double number) { mine.append(reinterpret_cast<const char*>(&number), sizeof number); };
  for (std::size_t b = 0; b < sums.size(); ++b) {
    if (!ranks.mine(chain[b])) continue;
    for (const double x : {sums[b].entries, sums[b].loss, sums[b].accuracy}) put(x);
    put(static_cast<double>(sums[b].scores.size()));
    for (const Score& score : sums[b].scores)
      for (const double x : {score.total, score.count, score.root ? 1.0 : 0.0}) put(x);
  }
  const std::vector<std::string> all = ranks.gather(mine);
  std::vector<std::size_t> read(all.size(), 0);
  for (std::size_t b = 0; b < sums.size(); ++b) {
    const auto r = static_cast<std::size_t>(ranks.of(chain[b]));
    const auto get = [&] {
      double number = 0;
      std::memcpy(&number, all[r].data() + std::exchange(read[r], read[r] + sizeof number), sizeof number);
      return number;
    };
    sums[b].entries = get(), sums[b].loss = get(), sums[b].accuracy = get();
    sums[b].scores.resize(static_cast<std::size_t>(get()));
    for (Score& score : sums[b].scores) score.total = get(), score.count = get(), score.root = get() > 0;
  }
}

/// The task's accuracy, which rounding may have taken a little beyond 0 or 1.
double accuracy(const Task& task, const Tensor& outputs, const Batch& batch) {
  const double given = task.accuracy(outputs, batch), share = std::clamp(given, 0.0, 1.0);
  if (std::abs(given - share) > 1e-6)
    throw Error(task.name(),
                fmt::format("Task::accuracy gives {}; a fraction between 0 and 1 is needed, or NaN for none. "
                            "Hint: Task::scores reports other numbers",
                            given));
  return share;
}

}  // namespace

Evaluation evaluate(const Task& task, const Model& model, const std::vector<std::vector<std::uint64_t>>& batches,
                    std::uint64_t seed, bool with_scores, Ranks& ranks, const Interrupt* interrupt) {
  const std::vector<std::int64_t> chain = chains(task, batches);
  const bool shared = ranks.size() > 1 && chain.back() > 0;
  std::vector<Sums> sums(batches.size());
  Tensors carry;
  for (std::size_t b = 0; b < batches.size() && !(interrupt && interrupt->requested()); ++b) {
    if (shared && !ranks.mine(chain[b])) continue;
    if (!task.continues(batches[b])) carry.clear();
    const Batch made = task.batch(seed, batches[b]);
    if (b == 0) check_batch(task, model, made, std::ssize(batches[b]));
    const Batch batch = on(made, model.device());
    const Tensor outputs = model.forward(batch, std::nullopt, &carry);
    const double n = entries_of(made);
    sums[b] = {n, n * task.loss(outputs, batch).item(), n * accuracy(task, outputs, batch)};
    if (with_scores) sums[b].scores = task.scores(on(outputs, made.x.backend()), made);
  }
  if (shared) gather(ranks, sums, chain);
  Evaluation e;
  for (const Sums& of_batch : sums) {
    e.loss += of_batch.loss;
    e.accuracy += of_batch.accuracy;
    e.entries += of_batch.entries;
    e.scores.resize(of_batch.scores.size());
    for (std::size_t i = 0; i < e.scores.size(); ++i) {
      Score& sum = e.scores[i];
      const Score& score = of_batch.scores[i];
      if (sum.name.empty()) sum = {.name = score.name, .root = score.root, .none = score.none};
      sum.total += score.total;
      sum.count += score.count;
    }
  }
  e.loss /= e.entries;
  e.accuracy /= e.entries;
  return e;
}

}  // namespace reel
