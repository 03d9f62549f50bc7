#include "tasks/training/training_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tasks/training/device.h"

namespace reel {

TrainingStep::TrainingStep(const Task& task, Model& model, Optimizer& optimizer, bool graphs, Ranks* ranks)
    : task_(task),
      model_(model),
      optimizer_(optimizer),
      device_(model.device()),
      ranks_(ranks ? *ranks : alone_),
      sum_(ranks_, device_),
      graphs_(graphs && device_.capture()),
      sum_graphs_(graphs_ && ranks_.link()) {
  for (const Parameter& p : model.trained()) parameters_.push_back(p.value);
}

StepResult TrainingStep::operator()(const Batch& batch, const StepContext& at, Tensors& carry, double lr_factor,
                                    std::span<const Batch> parts, Tensors* gradients_out) {
  const double scale = task_.scale(batch);
  optimizer_.set_step(lr_factor);
  const std::vector<double> numbers =
      parts.empty() ? pass(batch, at, carry, {.scale = scale}) : add_up(parts, at, carry, scale);
  const Tensors gradients = std::exchange(gradients_, {});
  if (gradients_out) *gradients_out = gradients;
  if (!std::isfinite(numbers[0])) return {numbers[0], 0, bad_part_};
  const StepResult out{numbers[0], norm_of(std::span(numbers).subspan(1))};
  if (!std::isfinite(out.norm)) return out;
  optimizer_.finish(gradients, out.norm, lr_factor);
  model_.updated();
  return out;
}

namespace {

std::size_t index(std::int64_t k) { return static_cast<std::size_t>(k); }

/// How a batch is cut into parts.
struct Cut {
  std::vector<double> entries;         // of each part
  std::vector<std::int64_t> start{0};  // the first row of each part, and the number of all rows
};

/// The same on all ranks, of which each has its own parts.
Cut cut_of(std::span<const Batch> parts, Ranks& ranks) {
  const std::int64_t K = std::ssize(parts);
  std::vector<double> sizes(2 * parts.size());  // of each part: entries, rows
  for (std::int64_t k = ranks.rank(); k < K; k += ranks.size()) {
    sizes[index(2 * k)] = entries_of(parts[index(k)]);
    sizes[index(2 * k + 1)] = static_cast<double>(parts[index(k)].x.dim(1));
  }
  ranks.share(sizes, 2);
  Cut cut;
  for (std::int64_t k = 0; k < K; ++k) {
    cut.entries.push_back(sizes[index(2 * k)]);
    cut.start.push_back(cut.start.back() + static_cast<std::int64_t>(sizes[index(2 * k + 1)]));
  }
  return cut;
}

/// The last states of a batch, of those of its parts; the rows of other ranks' parts are 0.
Tensors joined(const std::vector<Tensors>& of_parts, const Cut& cut, const Ranks& ranks, Backend& device) {
  const Tensors& own = of_parts[index(ranks.rank())];
  Tensors out;
  for (std::size_t i = 0; i < own.size(); ++i) {
    Tensors rows;
    for (std::int64_t k = 0; k < std::ssize(of_parts); ++k) {
      Spec spec = own[i].spec();
      spec.shape.set(0, cut.start[index(k + 1)] - cut.start[index(k)]);
      rows.push_back(ranks.mine(k) ? of_parts[index(k)][i] : Tensor::zeros(spec.shape, spec.dtype, device));
    }
    out.push_back(concat(rows, 0));
  }
  return out;
}

}  // namespace

/// One after the other, or those of this rank: the sums of gradients in gradients_, then an update. Returns the same
/// numbers as pass().
std::vector<double> TrainingStep::add_up(std::span<const Batch> parts, const StepContext& at, Tensors& carry,
                                         double scale) {
  const std::int64_t K = std::ssize(parts), ranks = ranks_.size();
  const Cut cut = cut_of(parts, ranks_);
  const double entries = std::accumulate(cut.entries.begin(), cut.entries.end(), 0.0);
  check_entries(task_, "a training step", entries);
  for (std::size_t i = sums_.size(); i < parameters_.size(); ++i) sums_.push_back(Tensor::empty(parameters_[i].spec()));
  const bool at_once = ranks_.link() && K == ranks;  // sums and update can be one graph
  std::vector<double> losses(parts.size());
  std::vector<Tensors> left(parts.size());  // the last states of each part
  sum_.clear();
  for (std::int64_t round = 0; round < K; round += ranks) {
    if (const std::int64_t k = round + ranks_.rank(); k < K) {
      const Share share{.scale = scale, .of = cut.entries[index(k)] / entries, .whole = false};
      Tensors states;
      for (const Tensor& state : carry) states.push_back(slice(state, 0, cut.start[index(k)], cut.start[index(k + 1)]));
      losses[index(k)] = share.of * pass(parts[index(k)], {at.seed, at.step * K + k}, states, share)[0];
      if (ranks == 1 && !std::isfinite(losses[index(k)])) return {losses[index(k)]};
      for (const Tensor& state : states) {
        left[index(k)].push_back(Tensor::empty(state.spec()));  // the next pass may write to the states
        left[index(k)].back().assign(state);
      }
    }
    if (at_once)
      sum_.put(gradients_, parameters_);
    else if (ranks > 1)
      sum_.add(gradients_, parameters_, static_cast<int>(std::min(ranks, K - round)));
    for (std::size_t i = 0; ranks == 1 && i < gradients_.size(); ++i)
      sums_[i].assign(round == 0 ? gradients_[i] : sums_[i] + gradients_[i]);
    gradients_.clear();
  }
  ranks_.share(losses);
  const double loss = std::accumulate(losses.begin(), losses.end(), 0.0);
  if (!std::isfinite(loss)) {
    const auto bad = std::find_if(losses.begin(), losses.end(), [](double part) { return !std::isfinite(part); });
    bad_part_ = bad == losses.end() ? -1 : bad - losses.begin();
    return {loss};
  }
  carry.clear();
  carry = joined(left, cut, ranks_, device_);
  gradients_ = sums_;
  if (!numbers_.defined()) numbers_ = Tensor::zeros({1 + std::ssize(parameters_)}, DType::f64, device_);
  device_.write(numbers_.data(), &loss, sizeof loss);
  if (at_once)
    run_sum();
  else
    finish_sum(0);
  return numbers_.values<double>();
}

/// Adds up these parts of all ranks, if there are any, and updates the parameters by the sums.
void TrainingStep::finish_sum(int parts) {
  if (parts > 0) sum_.exchange_and_add(parts);
  if (ranks_.size() > 1) sum_.write(sums_);
  sums_of_squares(sums_, numbers_.view({std::ssize(parameters_)}, 1));
  optimizer_.update(sums_, numbers_);
  if (ranks_.link() && !sum_capturing_) ranks_.wait_for_devices();
}

/// finish_sum() of a part of each rank, captured in the second step. NCCL wants all ranks to do alike.
void TrainingStep::run_sum() {
  const int parts = ranks_.size();
  if (sum_graphs_ && !sum_graph_ && sum_seen_) {
    sum_capturing_ = true;
    try {
      sum_graph_ = device_.capture();
      finish_sum(parts);
      sum_graph_->stop();
    } catch (const std::exception& e) {
      note_ = e.what();
      sum_graph_ = nullptr;
      sum_.clear();
    }
    sum_capturing_ = false;
    if (ranks_.any(!sum_graph_)) sum_graph_ = nullptr, sum_graphs_ = false;
  }
  sum_seen_ = true;
  if (!sum_graph_) return finish_sum(parts);
  sum_graph_->replay();
  ranks_.wait_for_devices();
}

/// Computes gradients_, and for a whole batch the update. Returns the loss and the sums of squares of the gradients;
/// these are not set without a finite loss, or for a part.
std::vector<double> TrainingStep::pass(const Batch& batch, const StepContext& at, Tensors& carry, const Share& share) {
  if (!graphs_) return run(batch, at, carry, share);
  forget_outdated();
  Kind kind{{batch.x.spec(), batch.y.spec(), batch.weight.spec(), batch.lengths.spec()},
            !share.whole || share.scale != 1,
            share.whole,
            at.seed};
  for (const Tensor& x : batch.more) kind.specs.push_back(x.spec());
  for (const Tensor& state : carry) kind.specs.push_back(state.spec());
  auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.kind == kind; });
  if (seen == seen_.end()) seen = seen_.insert(seen_.end(), {std::move(kind)});
  ++seen->times;
  if (seen->work) return run(*seen->work, batch, at, carry, share);
  // The first step of a kind runs without a capture: it may be the only one, and it completes what a device does on a
  // first call (opening libraries, compiling kernels).
  auto work = room_for(batch, carry);
  if (seen->times == 1 || recorded_ == most) return run(*work, batch, at, carry, share);
  if (!capture(*work, at, share)) {
    work.reset();  // it may hold the memory of a step
    return run(batch, at, carry, share);
  }
  seen->work = std::move(work);
  return run(*seen->work, batch, at, carry, share);
}

void TrainingStep::forget_outdated() {
  std::vector<std::uint32_t> versions;
  for (const Parameter& p : model_.parameters()) {
    if (&p.value.backend() != &device_) versions.push_back(p.value.version());
  }
  if (versions == host_versions_) return;
  host_versions_ = std::move(versions);
  seen_.clear();
  recorded_ = 0;
}

std::unique_ptr<TrainingStep::Work> TrainingStep::room_for(const Batch& batch, const Tensors& carry) const {
  const auto room = [&](const Tensor& x) {
    return x.defined() ? Tensor::empty({x.dtype(), x.shape(), &device_}) : Tensor();
  };
  auto work = std::make_unique<Work>();
  work->batch = {room(batch.x), room(batch.y), room(batch.weight)};
  for (const Tensor& x : batch.more) work->batch.more.push_back(room(x));
  work->batch.lengths = room(batch.lengths);
  for (const Tensor& state : carry) {
    work->carry_in.push_back(room(state));
    work->carry.push_back(room(state));
  }
  work->told = Tensor::empty({DType::f64, {3}, &device_});
  return work;
}

void TrainingStep::put(Work& work, const Batch& batch, const StepContext& at, const Tensors& carry,
                       const Share& share) const {
  fill_from(batch.x, work.batch.x);
  fill_from(batch.y, work.batch.y);
  if (batch.weight.defined()) fill_from(batch.weight, work.batch.weight);
  for (std::size_t i = 0; i < batch.more.size(); ++i) fill_from(batch.more[i], work.batch.more[i]);
  if (batch.lengths.defined()) fill_from(batch.lengths, work.batch.lengths);
  for (std::size_t i = 0; i < carry.size(); ++i) {
    if (carry[i].storage() != work.carry[i].storage()) fill_from(carry[i], work.carry[i]);
  }
  const double told[] = {share.scale * share.of, static_cast<double>(at.step), share.of};
  device_.write(work.told.data(), told, sizeof told);
}

namespace {
/// Throws Error for a loss that cannot be trained.
void check_loss(const Tensor& loss) {
  if (loss.defined() && loss.rank() == 0 && is_floating(loss.dtype())) return;
  throw Error("task", fmt::format("Task::loss gives {}, a scalar of f32 or f64 expected. Hint: mean() of it",
                                  loss.defined() ? loss.spec().str() : "an undefined tensor"));
}
}  // namespace

/// The loss, its gradients and, for a whole batch, the update. While it is captured it reads no value on the host;
/// otherwise it ends at a loss that is not finite.
void TrainingStep::compute(Work& work, const StepContext& at, const Share& share) const {
  const Tape tape;
  for (std::size_t i = 0; i < work.carry.size(); ++i) work.carry_in[i].assign(work.carry[i]);
  Tensors states = work.carry_in;
  const bool told = work.told.defined();
  const StepContext here{at.seed, at.step, told ? work.told.view({}, 1) : Tensor()};
  Tensor loss = task_.loss(model_.forward(work.batch, here, &states), work.batch);
  check_loss(loss);
  if (work.carry.empty()) {
    work.carry = states;
  } else {
    for (std::size_t i = 0; i < states.size(); ++i) work.carry[i].assign(states[i]);
  }
  work.numbers = Tensor::zeros({1 + std::ssize(parameters_)}, DType::f64, device_);
  work.numbers.view({}).assign(cast(loss, DType::f64));
  if (!work.graph && !std::isfinite(loss.item())) return;
  const auto times = [&](const Tensor& x, double factor, std::int64_t place) {
    return share.whole && factor == 1 ? x : told ? x * cast(work.told.view({}, place), x.dtype()) : x * factor;
  };
  loss = times(loss, share.scale * share.of, 0);
  Tensor penalty = model_.penalty();
  if (penalty.defined()) penalty = times(penalty, share.of, 2);
  work.gradients = grad({penalty.defined() ? loss + penalty : loss}, parameters_);
  if (!share.whole) return;
  const NoGrad no_grad;
  sums_of_squares(work.gradients, work.numbers.view({std::ssize(parameters_)}, 1));
  optimizer_.update(work.gradients, work.numbers);
}

/// If it fails, no kind of step is captured any more.
bool TrainingStep::capture(Work& work, const StepContext& at, const Share& share) {
  try {
    work.graph = device_.capture();
    compute(work, at, share);
    work.graph->stop();
    kernels_ = work.graph->size();
    ++recorded_;
    return true;
  } catch (const NotCapturable& e) {
    note_ = e.what();
  } catch (const Error& e) {  // if it is not about the capture, the step will meet it again
    note_ = e.what();
  }
  work.graph = nullptr;
  graphs_ = false;
  seen_.clear();  // with the memory of captured kinds
  recorded_ = 0;
  return false;
}

/// In memory of its own.
std::vector<double> TrainingStep::run(Work& work, const Batch& batch, const StepContext& at, Tensors& carry,
                                      const Share& share) {
  put(work, batch, at, carry, share);
  std::vector<double> numbers;
  if (!work.graph) {
    compute(work, at, share);
    numbers = work.numbers.values<double>();
  } else {
    bool launched = false;
    try {
      work.graph->replay();
      launched = true;
      numbers = work.numbers.values<double>();
    } catch (const Error&) {  // nothing was updated; without a capture the loss is looked at first: the best error
      if (launched) carry = work.carry_in;
      return run(batch, at, carry, share);
    }
  }
  gradients_ = work.gradients;
  carry = work.carry;
  return numbers;
}

/// In the caller's memory.
std::vector<double> TrainingStep::run(const Batch& batch, const StepContext& at, Tensors& carry, const Share& share) {
  Work work{.batch = on(batch, device_), .carry_in = carry};
  compute(work, at, share);
  gradients_ = work.gradients;
  carry = work.carry;
  return work.numbers.values<double>();
}

Tensors whole_states(const Tensors& states, std::int64_t parts, Ranks& ranks) {
  if (ranks.size() == 1) return states;
  Tensors out;
  for (const Tensor& state : states) {
    const std::int64_t rows = state.dim(0);
    const std::size_t row = state.bytes() / static_cast<std::size_t>(rows);
    std::string all(state.bytes(), '\0'), own;
    state.backend().read(all.data(), state.data(), all.size());
    const auto place = [&](std::int64_t k) { return static_cast<std::size_t>(part_start(rows, parts, k)) * row; };
    for (std::int64_t k = ranks.rank(); k < parts; k += ranks.size())
      own += all.substr(place(k), place(k + 1) - place(k));
    const std::vector<std::string> of_rank = ranks.gather(own);
    std::vector<std::size_t> read(of_rank.size(), 0);
    for (std::int64_t k = 0; k < parts; ++k) {
      const auto r = static_cast<std::size_t>(ranks.of(k));
      const std::size_t bytes = place(k + 1) - place(k);
      all.replace(place(k), bytes, of_rank[r], std::exchange(read[r], read[r] + bytes), bytes);
    }
    out.push_back(Tensor::empty(state.spec()));
    out.back().backend().write(out.back().data(), all.data(), all.size());
  }
  return out;
}

}  // namespace reel
