#include "tasks/app/train.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "backends/cpu/product_libraries.h"
#include "backends/cpu/threads/cores.h"
#include "cells/plugin.h"
#include "tasks/app/agreement.h"
#include "tasks/app/evaluation.h"
#include "tasks/app/figure.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/progress.h"
#include "tasks/app/run_json.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/device.h"
#include "tasks/training/prefetch.h"
#include "tasks/training/training_step.h"

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

Best best_at(const RunFolder::Row& row) { return {row.step, row.valid_loss, row.accuracy}; }

/// The validations of a run as --patience and --stop-below see them.
class Validations {
 public:
  explicit Validations(bool by_accuracy) : by_accuracy_(by_accuracy) {}
  void add(const RunFolder::Row& row) {
    last_ = best_at(row);
    ++waited_;
    if (best_.step < 0 || best_.beaten_by(last_, by_accuracy_)) best_ = last_, waited_ = 0;
  }
  /// Which option ends the run before its last update; empty: none.
  std::string stopped_by(const TrainOptions& o) const {
    if (o.patience > 0 && waited_ >= o.patience) return fmt::format("--patience {}", o.patience);
    if (o.stop_below > 0 && last_.loss < o.stop_below) return fmt::format("--stop-below {}", o.stop_below);
    return "";
  }

 private:
  bool by_accuracy_;
  Best best_, last_;
  std::int64_t waited_ = 0;  // validations since the best one
};

/// Throws Diverged unless the value is finite.
void check_finite(const std::string& what, double value) {
  if (std::isfinite(value)) return;
  throw Diverged(fmt::format("the {} became {}", what, std::isnan(value) ? "NaN" : fmt::format("{}", value)));
}

/// Says which checkpoint a diverged run can continue from, and where its best parameters are.
std::string what_is_left(const RunFolder& folder, std::int64_t saved, const Best& best) {
  const std::string text = fmt::format("the last good checkpoint is in {}, of step {}", folder.path(), saved);
  if (best.step < 0) return text + "; no better parameters are kept";
  return fmt::format("{}; the best parameters (validation loss {:.6g}, at step {}) are in {}", text, best.loss,
                     best.step, folder.file("best.safetensors"));
}

}  // namespace

std::int64_t validation_interval(const TrainOptions& options, const Task& task, const Examples& examples) {
  if (options.valid_every > 0) return options.valid_every;
  return task.parts().train > 0 ? examples.steps_per_epoch() : std::max<std::int64_t>(1, options.steps / 20);
}

void require_accuracy(const Task& task, const Model& model, const TrainOptions& options) {
  if (!options.best_by_accuracy) return;
  const Examples examples(options.examples, options.seed, task.parts());
  Ranks alone;
  if (std::isnan(evaluate(task, model, {examples.valid().front()}, options.seed, false, alone).accuracy))
    throw SettingError("best", fmt::format("the task {} has no accuracy", task.name()), {"best", "loss"});
}

Outcome train(const Task& task, Model& model, Optimizer& optimizer, RunFolder& folder, const TrainOptions& options) {
  Ranks alone;
  return train(task, model, optimizer, folder, options, alone);
}

Outcome train(const Task& task, Model& model, Optimizer& optimizer, RunFolder& folder, const TrainOptions& options,
              Ranks& ranks) {
  ranks.set_patience(options.rank_patience);
  ScheduleOptions over_run = options.schedule;
  over_run.steps = options.steps;
  Schedule schedule(over_run);
  Examples examples(options.examples, options.seed, task.parts());
  const std::string checkpoint = folder.file("checkpoint.safetensors"), best_file = folder.file("best.safetensors");
  const std::int64_t every = validation_interval(options, task, examples);
  const auto tests = options.test ? examples.test() : std::vector<std::vector<std::uint64_t>>{};
  Best best;

  Progressed at;
  const bool resumed = std::filesystem::exists(checkpoint);
  bool checked = true;
  if (resumed) {
    // A step starts from states with the specs of those that the step before it leaves.
    const auto needed = [&](std::int64_t step) {
      std::vector<Spec> specs;
      if (step == 0 || step >= options.steps || !task.continues(examples.train(step))) return specs;
      Tensors states;
      model.forward(on(task.batch(options.seed, examples.train(step - 1)), model.device()), std::nullopt, &states);
      for (const Tensor& state : states) specs.push_back(state.spec());
      return specs;
    };
    const Loaded loaded = load_checkpoint(checkpoint, model, optimizer, schedule, options.seed, needed);
    at = loaded.at, checked = loaded.checked;
    best = best_of(best_file);
  }
  require_same(ranks, model);  // and none looks for a checkpoint after this
  if (options.accepted) options.accepted();
  const bool older_sums = at.shards < 0 && options.device.starts_with("cpu");
  at.shards = options.shards;
  folder.keep_rows_up_to(at.step);

  Outcome outcome;
  RunRecord& record = outcome.record;
  record.task = task.name();
  record.cell = options.cell;
  record.parameters = model.count();
  record.seed = options.seed;
  record.baseline = task.baseline();
  record.device = options.device;
  record.threads = options.threads;
  record.ranks = ranks.size();
  record.command = options.command;
  record.kernels = cpu::product_libraries();
  record.plugins = loaded_plugins();
  record.preset = options.preset;
  record.solved_share = options.solved_share;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  record.train_loss = record.valid_loss = record.accuracy = record.update_seconds = nan;
  Validations validations(options.best_by_accuracy);
  if (const auto rows = folder.rows(); !rows.empty()) {
    for (const RunFolder::Row& row : rows) validations.add(row);
    record.train_loss = rows.back().train_loss;
    record.valid_loss = rows.back().valid_loss;
    record.accuracy = rows.back().accuracy;
  }

  const double seconds_before = at.seconds;
  const Clock clock(seconds_before);
  const Interrupt interrupt;
  Progress progress(options.quiet, options.steps, task.baseline(), at.step);
  if (!checked) progress.message(checkpoint + " has no checksum, as an older Reel wrote it: damage would not be seen");
  if (older_sums)
    progress.message(checkpoint +
                     " is of an older Reel, whose sums depended on the number of threads: from here on, the last "
                     "digits may differ from those of its uninterrupted run");
  const std::int64_t first_step = at.step;
  std::int64_t saved = at.step;
  const auto save = [&] {
    at.seconds = clock.seconds();
    Progressed whole = at;
    whole.carry = whole_states(at.carry, options.examples.parts, ranks);
    folder.require_held();
    if (ranks.first()) save_checkpoint(checkpoint, model, optimizer, schedule, options.seed, whole);
    saved = at.step;
  };
  require_accuracy(task, model, options);
  if (!resumed) save();  // so that a run can be resumed from the very start
  const auto describe = [&](bool finished) {
    record.steps = at.step;
    record.best_step = best.step;
    record.best_loss = best.loss;
    record.steps_per_second = record.seconds > 0 ? static_cast<double>(at.step) / record.seconds : 0;
    record.finished = finished;
    const auto rows = ranks.first() ? folder.rows() : std::vector<RunFolder::Row>();
    find_solved(record, rows);
    for (const RunFolder::Row& row : rows)
      if (row.step == best.step) record.best_accuracy = row.accuracy;
    folder.update_run_json(record, at.step > first_step);
    if (!ranks.first()) return std::optional<std::string>();
    return draw_curve(folder.file("curve.svg"), fmt::format("{}: {}", task.title(), options.cell), rows,
                      task.baseline(), options.picture);
  };

  const bool free_core = (options.cores > 0 ? options.cores : available_cores()) > options.threads;
  Prefetcher batches(
      [&](std::int64_t step) { return draw(task, options.seed, examples.train(step), options.examples.parts, ranks); },
      free_core);
  std::string stopping;  // the option
  const auto stops_early = [&] {
    if (options.patience <= 0 && options.stop_below <= 0) return false;
    if (ranks.first()) stopping = validations.stopped_by(options);
    return ranks.any(!stopping.empty());
  };
  const auto moment = [&](bool running) {
    record.steps = at.step;
    record.best_step = best.step;
    record.best_loss = best.loss;
    if (running) record.seconds = clock.seconds();
    const auto done = static_cast<double>(at.step - first_step);
    const double left = (record.seconds - seconds_before) / done * static_cast<double>(options.steps - at.step);
    return Moment{record, folder, model, options.steps, running && done > 0 ? left : nan, running};
  };
  std::set<std::string> told;
  const auto tell_all = [&](const std::function<void(Observer&)>& call) {
    for (const std::string& problem : tell(options.observers, call))
      if (told.insert(problem).second) progress.message(problem + "; the run goes on");
  };
  tell_all([&](Observer& o) { o.begun(moment(true)); });
  const bool wants_gradients = std::any_of(options.observers.begin(), options.observers.end(),
                                           [](const Observer* o) { return o->wants_gradients(); });
  bool enough = at.step >= options.steps || stops_early();
  if (at.step < options.steps && !stopping.empty())
    progress.message(fmt::format("stopped by {} at step {}; there is nothing to train. Hint: another value, or {} 0",
                                 stopping, at.step, stopping.substr(0, stopping.find(' '))));
  TrainingStep steps(task, model, optimizer, options.graphs, &ranks);
  double update_seconds = 0;
  std::int64_t reached = at.step;
  try {
    while (!enough && !ranks.any(interrupt.requested())) {
      if (ranks.size() > 1) ranks.set_place(fmt::format("after step {}", at.step));
      const Clock update(0);
      const auto [streams, batch, parts] = batches.take(at.step, at.step + 1 < options.steps);
      if (!task.continues(streams)) at.carry.clear();
      if (at.step == first_step && parts.empty()) check_batch(task, model, batch, std::ssize(streams));
      const bool validates = (at.step + 1) % every == 0 || at.step + 1 == options.steps;
      Tensors gradients;
      const StepResult result = steps(batch, {options.seed, at.step}, at.carry, schedule.factor(at.step), parts,
                                      validates && wants_gradients ? &gradients : nullptr);
      reached = at.step + 1;
      if (!std::isfinite(result.loss) && batch.weight.defined())
        check_entries(task, "a training step", entries_of(batch));
      const std::int64_t part = result.bad_part;
      check_finite(part < 0 ? "loss" : fmt::format("loss of part {} (rank {})", part, ranks.of(part)), result.loss);
      check_finite("gradient norm", result.norm);
      if (const auto note = steps.note()) progress.message("steps run kernel by kernel, not as one graph: " + *note);
      ++at.step;
      if (at.step > first_step + 1) update_seconds += update.seconds();  // the first one also plans and allocates
      ++at.running.steps;
      at.running.loss += result.loss;
      at.running.grad_norm += result.norm;
      progress.update(at.step, result.loss);

      if (validates) {
        require_same(ranks, model);
        const Evaluation v = evaluate(task, model, examples.valid(), options.seed, false, ranks);
        check_entries(task, "the validation set", v.entries);
        check_finite("validation loss", v.loss);
        schedule.validated(v.loss);
        const auto n = static_cast<double>(at.running.steps);
        record.train_loss = at.running.loss / n;
        record.valid_loss = v.loss;
        record.accuracy = v.accuracy;
        const RunFolder::Row row{
            at.step,    at.step * options.examples.batch, clock.seconds(), record.train_loss, v.loss,
            v.accuracy, at.running.grad_norm / n};
        folder.add_row(row);
        validations.add(row);
        at.running = {};
        if (best.beaten_by(best_at(row), options.best_by_accuracy)) {
          if (ranks.first()) save_best(best_file, model, best_at(row));
          best = best_at(row);  // only once it is saved: parameters that are not finite are not
        }
        save();
        progress.validated(at.step, record.train_loss, v.loss, v.accuracy);
        tell_all([&](Observer& o) { o.validated(moment(true), row, gradients); });
        enough = at.step == options.steps || stops_early();
        if (enough) progress.ends();
      }
    }
    if (!enough) {  // the interrupted step may have diverged; then the old checkpoint stays
      check_finite("loss", evaluate(task, model, {examples.valid().front()}, options.seed, false, ranks).loss);
      save();
    }
  } catch (const Error& e) {
    if (!dynamic_cast<const Diverged*>(&e) && not_finite(model).empty()) throw;
    record.diverged_at_step = reached;
    record.seconds = clock.seconds();
    if (const auto note = describe(false)) progress.message(*note);
    tell_all([&](Observer& o) { o.ended(moment(false)); });
    throw Error("train",
                fmt::format("{} at step {}; {}. Hint: {}a lower --lr{}{}", e.what(), reached,
                            what_is_left(folder, saved, best), optimizer.lacks_epsilon() ? "--epsilon 1e-8, or " : "",
                            optimizer.decays() ? " or --weight-decay" : "",
                            optimizer.clips_norm() ? "" : ", or --clip-norm 1"));
  }
  outcome.interrupted = !enough;
  const std::int64_t timed = at.step - first_step - 1;
  record.update_seconds = timed > 0 ? update_seconds / static_cast<double>(timed) : nan;
  record.seconds = clock.seconds();  // training and validation, but not the test
  progress.done();
  record.stopped_by = stopping;
  if (!stopping.empty() && at.step > first_step)
    progress.message(fmt::format("stopped by {} at step {}", stopping, at.step));
  const bool chosen = !outcome.interrupted && best.step >= 0;
  if (chosen && (task.parts().train > 0 || task.parts().test > 0)) {
    ranks.gather("");  // rank 0 has written it
    load_best(best_file, model);
    require_same(ranks, model);
  }
  Evaluation t;
  const bool tested = chosen && !tests.empty();
  if (tested) {
    t = evaluate(task, model, tests, options.seed, true, ranks, &interrupt);
    outcome.interrupted = ranks.any(interrupt.requested());
  }
  if (tested && !outcome.interrupted) {
    record.test = {{"loss", t.loss}};
    if (!std::isnan(t.accuracy)) record.test.emplace_back("accuracy", t.accuracy);
    for (const Score& score : t.scores) {
      record.test.emplace_back(score.name, score.mean());
      if (score.count == 0) progress.message(fmt::format("{} has no value: {}", score.name, score.none));
    }
  }
  try {  // a run of which only the test was cut short has nothing new to say
    const bool only_test = tested && outcome.interrupted && at.step == first_step;
    if (const auto note = only_test ? std::nullopt : describe(!outcome.interrupted)) progress.message(*note);
  } catch (const Error& e) {
    outcome.unsaved = e.what();
  }
  outcome.problems = tell(options.observers, [&](Observer& o) { o.ended(moment(false)); });
  return outcome;
}

}  // namespace reel
