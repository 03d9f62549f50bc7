#include "tasks/app/train.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "backends/cpu/threads/cores.h"
#include "tasks/app/agreement.h"
#include "tasks/app/evaluation.h"
#include "tasks/app/figure.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/progress.h"
#include "tasks/app/run_json.h"
#include "tasks/app/training_run.h"
#include "tasks/training/prefetch.h"
#include "tasks/training/training_step.h"

namespace reel {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

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
  Validations(bool by_accuracy, const std::vector<RunFolder::Row>& rows) : by_accuracy_(by_accuracy) {
    for (const RunFolder::Row& row : rows) add(row);
  }
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

namespace {

/// The loop over the updates of a run, and how far it is.
class TrainingLoop {
 public:
  TrainingLoop(TrainingRun& run, Start start);
  Outcome run();

 private:
  void begin();
  void train();
  Tensors step(TrainingStep& steps, Prefetcher& batches, bool validates);
  void check(const StepResult& result, const Batch& batch) const;
  void validate(const Tensors& gradients);
  void save();
  bool stops_early();
  [[noreturn]] void end_diverged(const Error& e);
  void use_best();
  bool test();
  void describe(bool finished);
  void note_position();
  Moment moment(bool running);
  void tell_all(const std::function<void(Observer&)>& call);

  TrainingRun& run_;
  const std::int64_t every_;  // updates from one validation to the next
  const std::vector<std::vector<std::uint64_t>> tests_;
  const bool wants_gradients_;  // some observer does
  const bool resumed_;
  const std::int64_t first_step_;  // updates done before this session
  const double seconds_before_;
  const std::vector<std::string> notes_;

  Progressed at_;
  Best best_;
  RunRecord record_;
  Validations validations_;
  std::int64_t saved_, reached_;  // the steps of the last checkpoint, and of the last update that was begun
  double update_seconds_ = 0;     // of all updates but the first of this session
  bool enough_ = false;           // no more updates
  std::string stopping_;          // the option that says so
  std::set<std::string> told_;    // problems of observers
  const Clock clock_;
  const Interrupt interrupt_;
  Progress progress_;
};

TrainingLoop::TrainingLoop(TrainingRun& run, Start start)
    : run_(run),
      every_(validation_interval(run.options, run.task, run.examples)),
      tests_(run.options.test ? run.examples.test() : std::vector<std::vector<std::uint64_t>>{}),
      wants_gradients_(
          std::ranges::any_of(run.options.observers, [](const Observer* o) { return o->wants_gradients(); })),
      resumed_(start.resumed),
      first_step_(start.at.step),
      seconds_before_(start.at.seconds),
      notes_(std::move(start.notes)),
      at_(std::move(start.at)),
      best_(start.best),
      record_(record_of(run, start.rows)),
      validations_(run.options.best_by_accuracy, start.rows),
      saved_(first_step_),
      reached_(first_step_),
      clock_(seconds_before_),
      progress_(run.options.quiet, run.options.steps, run.task.baseline(), first_step_) {}

Outcome TrainingLoop::run() {
  begin();
  try {
    train();
  } catch (const Error& e) {
    if (!dynamic_cast<const Diverged*>(&e) && not_finite(run_.model).empty()) throw;
    end_diverged(e);
  }
  Outcome outcome;
  outcome.interrupted = !enough_;
  const std::int64_t timed = at_.step - first_step_ - 1;
  record_.update_seconds = timed > 0 ? update_seconds_ / static_cast<double>(timed) : nan;
  record_.seconds = clock_.seconds();  // training and validation, but not the test
  progress_.done();
  record_.stopped_by = stopping_;
  if (!stopping_.empty() && at_.step > first_step_)
    progress_.message(fmt::format("stopped by {} at step {}", stopping_, at_.step));
  const bool chosen = enough_ && best_.step >= 0, tests = chosen && !tests_.empty();
  if (chosen) use_best();
  if (tests) outcome.interrupted = !test();
  try {  // a run of which only the test was cut short has nothing new to say
    if (!tests || !outcome.interrupted || at_.step != first_step_) describe(!outcome.interrupted);
  } catch (const Error& e) {
    outcome.unsaved = e.what();
  }
  outcome.problems = tell(run_.options.observers, [&](Observer& o) { o.ended(moment(false)); });
  outcome.record = record_;
  return outcome;
}

/// All that comes before the first update.
void TrainingLoop::begin() {
  for (const std::string& note : notes_) progress_.message(note);
  require_accuracy(run_.task, run_.model, run_.options);
  if (!resumed_) save();  // so that a run can be resumed from the very start
  tell_all([&](Observer& o) { o.begun(moment(true)); });
  enough_ = at_.step >= run_.options.steps || stops_early();
  if (at_.step < run_.options.steps && !stopping_.empty())
    progress_.message(fmt::format("stopped by {} at step {}; there is nothing to train. Hint: another value, or {} 0",
                                  stopping_, at_.step, stopping_.substr(0, stopping_.find(' '))));
}

/// Updates and validations, until there are enough or an interrupt ends them. Throws Error if the run diverges.
void TrainingLoop::train() {
  const bool free_core = (run_.options.cores > 0 ? run_.options.cores : available_cores()) > run_.options.threads;
  const auto make = [&](std::int64_t step) {
    return draw(run_.task, run_.options.seed, run_.examples.train(step), run_.options.examples.parts, run_.ranks);
  };
  Prefetcher batches(make, free_core);
  TrainingStep steps(run_.task, run_.model, run_.optimizer, run_.options.graphs, &run_.ranks);
  while (!enough_ && !run_.ranks.any(interrupt_.requested())) {
    const bool validates = (at_.step + 1) % every_ == 0 || at_.step + 1 == run_.options.steps;
    const Tensors gradients = step(steps, batches, validates);
    if (validates) validate(gradients);
  }
  if (enough_) return;
  // the interrupted step may have diverged; then the old checkpoint stays
  check_finite(
      "loss",
      evaluate(run_.task, run_.model, {run_.examples.valid().front()}, run_.options.seed, false, run_.ranks).loss);
  save();
}

/// An update. Returns its gradients if a validation follows, and an observer wants them.
Tensors TrainingLoop::step(TrainingStep& steps, Prefetcher& batches, bool validates) {
  if (run_.ranks.size() > 1) run_.ranks.set_place(fmt::format("after step {}", at_.step));
  const Clock update(0);
  const auto [streams, batch, parts] = batches.take(at_.step, at_.step + 1 < run_.options.steps);
  if (!run_.task.continues(streams)) at_.carry.clear();
  if (at_.step == first_step_ && parts.empty()) check_batch(run_.task, run_.model, batch, std::ssize(streams));
  Tensors gradients;
  const StepResult result = steps(batch, {run_.options.seed, at_.step}, at_.carry, run_.schedule.factor(at_.step),
                                  parts, validates && wants_gradients_ ? &gradients : nullptr);
  reached_ = at_.step + 1;
  check(result, batch);
  if (const auto note = steps.note()) progress_.message("steps run kernel by kernel, not as one graph: " + *note);
  ++at_.step;
  if (at_.step > first_step_ + 1) update_seconds_ += update.seconds();  // the first one also plans and allocates
  ++at_.running.steps;
  at_.running.loss += result.loss;
  at_.running.grad_norm += result.norm;
  progress_.update(at_.step, result.loss);
  return gradients;
}

/// Throws Error for a step whose result is not finite.
void TrainingLoop::check(const StepResult& result, const Batch& batch) const {
  if (!std::isfinite(result.loss) && batch.weight.defined())
    check_entries(run_.task, "a training step", entries_of(batch));
  const std::int64_t part = result.bad_part;
  check_finite(part < 0 ? "loss" : fmt::format("loss of part {} (rank {})", part, run_.ranks.of(part)), result.loss);
  check_finite("gradient norm", result.norm);
}

void TrainingLoop::validate(const Tensors& gradients) {
  require_same(run_.ranks, run_.model);
  const Evaluation v = evaluate(run_.task, run_.model, run_.examples.valid(), run_.options.seed, false, run_.ranks);
  check_entries(run_.task, "the validation set", v.entries);
  check_finite("validation loss", v.loss);
  run_.schedule.validated(v.loss);
  const auto n = static_cast<double>(at_.running.steps);
  record_.train_loss = at_.running.loss / n;
  record_.valid_loss = v.loss;
  record_.accuracy = v.accuracy;
  const RunFolder::Row row{at_.step,
                           at_.step * run_.options.examples.batch,
                           clock_.seconds(),
                           record_.train_loss,
                           v.loss,
                           v.accuracy,
                           at_.running.grad_norm / n};
  run_.folder.add_row(row);
  validations_.add(row);
  at_.running = {};
  if (best_.beaten_by(best_at(row), run_.options.best_by_accuracy)) {
    if (run_.ranks.first()) save_best(run_.best_file, run_.model, best_at(row));
    best_ = best_at(row);  // only once it is saved: parameters that are not finite are not
  }
  save();
  progress_.validated(at_.step, record_.train_loss, v.loss, v.accuracy);
  tell_all([&](Observer& o) { o.validated(moment(true), row, gradients); });
  enough_ = at_.step == run_.options.steps || stops_early();
  if (enough_) progress_.ends();
}

void TrainingLoop::save() {
  at_.seconds = clock_.seconds();
  Progressed whole = at_;
  whole.carry = whole_states(at_.carry, run_.options.examples.parts, run_.ranks);
  run_.folder.require_held();
  if (run_.ranks.first())
    save_checkpoint(run_.checkpoint, run_.model, run_.optimizer, run_.schedule, run_.options.seed, whole);
  saved_ = at_.step;
}

bool TrainingLoop::stops_early() {
  if (run_.options.patience <= 0 && run_.options.stop_below <= 0) return false;
  if (run_.ranks.first()) stopping_ = validations_.stopped_by(run_.options);
  return run_.ranks.any(!stopping_.empty());
}

/// Writes what there is of a run that diverged; throws Error with what may help.
void TrainingLoop::end_diverged(const Error& e) {
  record_.diverged_at_step = reached_;
  record_.seconds = clock_.seconds();
  describe(false);
  tell_all([&](Observer& o) { o.ended(moment(false)); });
  throw Error("train", fmt::format("{} at step {}; {}. Hint: {}a lower --lr{}{}", e.what(), reached_,
                                   what_is_left(run_.folder, saved_, best_),
                                   run_.optimizer.lacks_epsilon() ? "--epsilon 1e-8, or " : "",
                                   run_.optimizer.decays() ? " or --weight-decay" : "",
                                   run_.optimizer.clips_norm() ? "" : ", or --clip-norm 1"));
}

/// Gives the model of a task with a data set the parameters of the best validation.
void TrainingLoop::use_best() {
  if (run_.task.parts().train == 0 && run_.task.parts().test == 0) return;
  run_.ranks.gather("");  // rank 0 has written it
  load_best(run_.best_file, run_.model);
  require_same(run_.ranks, run_.model);
}

/// Evaluates the model on the test set; false if an interrupt cut that short.
bool TrainingLoop::test() {
  const Evaluation t = evaluate(run_.task, run_.model, tests_, run_.options.seed, true, run_.ranks, &interrupt_);
  if (run_.ranks.any(interrupt_.requested())) return false;
  record_.test = {{"loss", t.loss}};
  if (!std::isnan(t.accuracy)) record_.test.emplace_back("accuracy", t.accuracy);
  for (const Score& score : t.scores) {
    record_.test.emplace_back(score.name, score.mean());
    if (score.count == 0) progress_.message(fmt::format("{} has no value: {}", score.name, score.none));
  }
  return true;
}

/// Writes run.json and the curve.
void TrainingLoop::describe(bool finished) {
  note_position();
  record_.steps_per_second = record_.seconds > 0 ? static_cast<double>(at_.step) / record_.seconds : 0;
  record_.finished = finished;
  const auto rows = run_.ranks.first() ? run_.folder.rows() : std::vector<RunFolder::Row>();
  find_solved(record_, rows);
  for (const RunFolder::Row& row : rows)
    if (row.step == best_.step) record_.best_accuracy = row.accuracy;
  run_.folder.update_run_json(record_, at_.step > first_step_);
  if (!run_.ranks.first()) return;
  const auto note =
      draw_curve(run_.folder.file("curve.svg"), fmt::format("{}: {}", run_.task.title(), run_.options.cell), rows,
                 run_.task.baseline(), run_.options.picture);
  if (note) progress_.message(*note);
}

void TrainingLoop::note_position() {
  record_.steps = at_.step;
  record_.best_step = best_.step;
  record_.best_loss = best_.loss;
}

/// The run at this moment, for observers.
Moment TrainingLoop::moment(bool running) {
  note_position();
  if (running) record_.seconds = clock_.seconds();
  const auto done = static_cast<double>(at_.step - first_step_);
  const double left = (record_.seconds - seconds_before_) / done * static_cast<double>(run_.options.steps - at_.step);
  return {record_, run_.folder, run_.model, run_.options.steps, running && done > 0 ? left : nan, running};
}

/// Calls all observers, and says once what is wrong.
void TrainingLoop::tell_all(const std::function<void(Observer&)>& call) {
  for (const std::string& problem : tell(run_.options.observers, call))
    if (told_.insert(problem).second) progress_.message(problem + "; the run goes on");
}

}  // namespace

Outcome train(const Task& task, Model& model, Optimizer& optimizer, RunFolder& folder, const TrainOptions& options,
              Ranks& ranks) {
  ranks.set_patience(options.rank_patience);
  TrainingRun run{task, model, optimizer, folder, options, ranks};
  return TrainingLoop(run, start_of(run)).run();
}

}  // namespace reel
