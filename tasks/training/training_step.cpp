#include "tasks/training/training_step.h"

#include <algorithm>
#include <cmath>

#include "tasks/training/device.h"

namespace reel {

TrainingStep::TrainingStep(const Task& task, Model& model, Optimizer& optimizer, bool graphs)
    : task_(task), model_(model), optimizer_(optimizer), device_(model.device()), graphs_(graphs && device_.capture()) {
  for (const Parameter& p : model.trained()) parameters_.push_back(p.value);
}

StepResult TrainingStep::operator()(const Batch& batch, const StepContext& at, Tensors& carry, double lr_factor) {
  const double scale = task_.scale(batch);
  if (!graphs_) return run(batch, at, carry, scale, lr_factor);
  forget_outdated();
  Kind kind{{batch.x.spec(), batch.y.spec(), batch.weight.spec(), batch.lengths.spec()}, scale != 1, at.seed};
  for (const Tensor& x : batch.more) kind.specs.push_back(x.spec());
  for (const Tensor& state : carry) kind.specs.push_back(state.spec());
  auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.kind == kind; });
  if (seen == seen_.end()) seen = seen_.insert(seen_.end(), {std::move(kind)});
  ++seen->times;
  if (seen->work) return run(*seen->work, batch, at, carry, scale, lr_factor);
  // The first step of a kind runs without a capture: it may be the only one, and it completes what a device does on a
  // first call (opening libraries, compiling kernels).
  auto work = room_for(batch, carry);
  if (seen->times == 1 || recorded_ == most) return run(*work, batch, at, carry, scale, lr_factor);
  if (!capture(*work, at, scale)) return run(batch, at, carry, scale, lr_factor);
  seen->work = std::move(work);
  return run(*seen->work, batch, at, carry, scale, lr_factor);
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
  work->told = Tensor::empty({DType::f64, {2}, &device_});
  return work;
}

void TrainingStep::put(Work& work, const Batch& batch, const StepContext& at, const Tensors& carry,
                       double scale) const {
  fill_from(batch.x, work.batch.x);
  fill_from(batch.y, work.batch.y);
  if (batch.weight.defined()) fill_from(batch.weight, work.batch.weight);
  for (std::size_t i = 0; i < batch.more.size(); ++i) fill_from(batch.more[i], work.batch.more[i]);
  if (batch.lengths.defined()) fill_from(batch.lengths, work.batch.lengths);
  for (std::size_t i = 0; i < carry.size(); ++i) {
    if (carry[i].storage() != work.carry[i].storage()) fill_from(carry[i], work.carry[i]);
  }
  const double told[] = {scale, static_cast<double>(at.step)};
  device_.write(work.told.data(), told, sizeof told);
}

/// The loss, its gradients and the update. While it is captured it reads no value on the host; otherwise it ends at a
/// loss that is not finite.
void TrainingStep::compute(Work& work, const StepContext& at, double scale) const {
  const Tape tape;
  for (std::size_t i = 0; i < work.carry.size(); ++i) work.carry_in[i].assign(work.carry[i]);
  Tensors states = work.carry_in;
  const bool told = work.told.defined();
  const StepContext here{at.seed, at.step, told ? work.told.view({}, 1) : Tensor()};
  Tensor loss = task_.loss(model_.forward(work.batch, here, &states), work.batch);
  if (work.carry.empty()) {
    work.carry = states;
  } else {
    for (std::size_t i = 0; i < states.size(); ++i) work.carry[i].assign(states[i]);
  }
  work.numbers = Tensor::zeros({1 + std::ssize(parameters_)}, DType::f64, device_);
  work.numbers.view({}).assign(cast(loss, DType::f64));
  if (!work.graph && !std::isfinite(loss.item())) return;
  if (scale != 1) loss = told ? loss * cast(work.told.view({}), loss.dtype()) : loss * scale;
  const Tensor penalty = model_.penalty();
  work.gradients = grad({penalty.defined() ? loss + penalty : loss}, parameters_);
  const NoGrad no_grad;
  sums_of_squares(work.gradients, work.numbers.view({std::ssize(parameters_)}, 1));
  optimizer_.update(work.gradients, work.numbers);
}

bool TrainingStep::capture(Work& work, const StepContext& at, double scale) {
  try {
    work.graph = device_.capture();
    compute(work, at, scale);
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
  return false;
}

/// A step in memory of its own.
StepResult TrainingStep::run(Work& work, const Batch& batch, const StepContext& at, Tensors& carry, double scale,
                             double lr_factor) {
  put(work, batch, at, carry, scale);
  optimizer_.set_step(lr_factor);
  if (!work.graph) {
    compute(work, at, scale);
    return finish(work, work.numbers.values<double>(), carry, lr_factor);
  }
  std::vector<double> numbers;
  try {
    work.graph->replay();
    numbers = work.numbers.values<double>();
  } catch (const Error&) {  // nothing was updated; without a capture the loss is looked at first: the best error
    carry = work.carry_in;
    return run(batch, at, carry, scale, lr_factor);
  }
  return finish(work, numbers, carry, lr_factor);
}

/// A step in the caller's memory.
StepResult TrainingStep::run(const Batch& batch, const StepContext& at, Tensors& carry, double scale,
                             double lr_factor) {
  Work work{.batch = on(batch, device_), .carry_in = carry};
  optimizer_.set_step(lr_factor);
  compute(work, at, scale);
  return finish(work, work.numbers.values<double>(), carry, lr_factor);
}

/// The end of a step on the host, which knows its loss and its gradients' sums of squares.
StepResult TrainingStep::finish(const Work& work, const std::vector<double>& numbers, Tensors& carry,
                                double lr_factor) {
  carry = work.carry;
  if (!std::isfinite(numbers[0])) return {numbers[0]};
  const StepResult out{numbers[0], norm_of(std::span(numbers).subspan(1))};
  if (!std::isfinite(out.norm)) return out;
  optimizer_.finish(work.gradients, out.norm, lr_factor);
  model_.updated();
  return out;
}

}  // namespace reel
