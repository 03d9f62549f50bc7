#include "tasks/harness/train.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "tasks/harness/ahead.h"
#include "tasks/harness/checkpoint.h"
#include "tasks/harness/figure.h"
#include "tasks/harness/interrupt.h"
#include "tasks/harness/progress.h"

namespace reel {

namespace {

class Clock {
 public:
  explicit Clock(double before) : before_(before) {}
  double seconds() const {
    return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Validation {
  double loss = 0, accuracy = 0;
};

/// Loss and accuracy over the validation set; batches count by their size.
Validation validate(const Task& task, const Model& model, const Examples& examples, std::uint64_t seed) {
  Validation v;
  double total = 0;
  for (const auto& streams : examples.valid()) {
    const Batch batch = task.batch(seed, streams);
    const Tensor outputs = model(batch.x);
    const auto n = static_cast<double>(streams.size());
    v.loss += n * task.loss(outputs, batch).item();
    v.accuracy += n * task.accuracy(outputs, batch);
    total += n;
  }
  v.loss /= total;
  v.accuracy /= total;
  return v;
}

[[noreturn]] void diverged(const char* what, double value, std::int64_t step, const RunFolder& folder) {
  throw Error("train",
              fmt::format("the {} became {} at step {}; the last good checkpoint is in {}. Hint: a lower --lr, or "
                          "--clip-norm 1",
                          what, value, step, folder.path()));
}

}  // namespace

Outcome train(const Task& task, Model& model, Optimizer& optimizer, RunFolder& folder, const TrainOptions& options) {
  Schedule schedule(options.schedule);
  Examples examples(options.examples, options.seed);
  const std::string checkpoint = folder.file("checkpoint.safetensors");
  const std::int64_t every =
      options.valid_every > 0 ? options.valid_every : std::max<std::int64_t>(1, options.steps / 20);

  Progressed at;
  const bool resumed = std::filesystem::exists(checkpoint);
  if (resumed) at = load_checkpoint(checkpoint, model, optimizer, schedule, options.seed);
  folder.keep_rows_up_to(at.step);

  Tensors parameters;
  for (const Parameter& p : model.trained()) parameters.push_back(p.value);

  Outcome outcome;
  RunRecord& record = outcome.record;
  record.task = task.name();
  record.cell = options.cell;
  record.parameters = model.count();
  record.seed = options.seed;
  record.baseline = task.baseline();
  record.device = options.device;
  record.threads = options.threads;
  record.train_loss = record.valid_loss = record.accuracy = std::numeric_limits<double>::quiet_NaN();
  if (const auto rows = folder.rows(); !rows.empty()) {
    record.train_loss = rows.back().train_loss;
    record.valid_loss = rows.back().valid_loss;
    record.accuracy = rows.back().accuracy;
  }

  const Clock clock(at.seconds);
  const Interrupt interrupt;
  Progress progress(options.quiet, options.steps, task.baseline(), at.step);
  const auto save = [&] {
    at.seconds = clock.seconds();
    save_checkpoint(checkpoint, model, optimizer, schedule, options.seed, at);
  };
  if (!resumed) save();  // so that a run can be resumed from its first moment on
  const auto describe = [&](bool finished) {
    record.steps = at.step;
    record.seconds = clock.seconds();
    record.steps_per_second = record.seconds > 0 ? static_cast<double>(at.step) / record.seconds : 0;
    record.finished = finished;
    folder.write_run_json(record);
    return draw_curve(folder.file("curve.svg"), fmt::format("{}: {}", task.title(), options.cell), folder.rows(),
                      task.baseline());
  };

  // Where a core is free, it makes the next batch.
  const bool free_core = static_cast<int>(std::thread::hardware_concurrency()) > options.threads;
  Ahead batches([&](std::int64_t step) { return task.batch(options.seed, examples.train(step)); }, free_core);
  while (at.step < options.steps && !interrupt.requested()) {
    const Batch batch = batches.take(at.step, at.step + 1 < options.steps);
    double loss = 0;
    {
      Tape tape;
      const Tensor l = task.loss(model(batch.x, TrainingStep{options.seed, at.step}), batch);
      loss = l.item();
      if (!std::isfinite(loss)) diverged("loss", loss, at.step + 1, folder);
      const Tensor penalty = model.penalty();
      const Tensors gradients = grad({penalty.defined() ? l + penalty : l}, parameters);
      const double norm = optimizer.norm(gradients);
      if (!std::isfinite(norm)) diverged("gradient norm", norm, at.step + 1, folder);
      optimizer.step(gradients, norm, schedule.factor(at.step));
      model.updated();
      at.running.grad_norm += norm;
    }
    ++at.step;
    ++at.running.steps;
    at.running.loss += loss;
    progress.update(at.step, loss);

    if (at.step % every == 0 || at.step == options.steps) {
      const Validation v = validate(task, model, examples, options.seed);
      if (!std::isfinite(v.loss)) diverged("validation loss", v.loss, at.step, folder);
      schedule.validated(v.loss);
      const auto n = static_cast<double>(at.running.steps);
      record.train_loss = at.running.loss / n;
      record.valid_loss = v.loss;
      record.accuracy = v.accuracy;
      folder.add_row({at.step, at.step * options.examples.batch, clock.seconds(), record.train_loss, v.loss, v.accuracy,
                      at.running.grad_norm / n});
      at.running = {};
      save();
      progress.validated(at.step, record.train_loss, v.loss, v.accuracy);
    }
  }
  outcome.interrupted = at.step < options.steps;
  if (outcome.interrupted) save();
  progress.done();
  if (const auto note = describe(!outcome.interrupted)) progress.message(*note);
  return outcome;
}

}  // namespace reel
