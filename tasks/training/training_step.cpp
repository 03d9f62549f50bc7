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
  if (!graphs_) return plain(batch, at, carry, scale, lr_factor);
  Kind kind{{batch.x.spec(), batch.y.spec(), batch.weight.spec()}, scale != 1, at.seed};
  for (const Tensor& x : batch.more) kind.specs.push_back(x.spec());
  for (const Tensor& state : carry) kind.specs.push_back(state.spec());
  auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.kind == kind; });
  if (seen == seen_.end()) seen = seen_.insert(seen_.end(), {std::move(kind)});
  ++seen->times;
  if (seen->step) return run(*seen->step, batch, at, carry, scale, lr_factor);
  // The first step of a kind runs without a capture: it may be the only one, and it completes what a device does on a
  // first call (opening libraries, compiling kernels).
  auto step = room_for(batch, carry, scale);
  if (seen->times == 1 || recorded_ == most) return run(*step, batch, at, carry, scale, lr_factor);
  if (!record(*step, at)) return plain(batch, at, carry, scale, lr_factor);
  seen->step = std::move(step);
  return run(*seen->step, batch, at, carry, scale, lr_factor);
}

StepResult TrainingStep::plain(const Batch& host, const StepContext& at, Tensors& carry, double scale,
                               double lr_factor) {
  StepResult out;
  Tensors gradients;
  {
    const Batch batch = on(host, device_);
    const Tape tape;
    Tensor l = task_.loss(model_.forward(batch, at, &carry), batch);
    out.loss = l.item();
    if (!std::isfinite(out.loss)) return out;
    if (scale != 1) l = l * scale;
    const Tensor penalty = model_.penalty();
    gradients = grad({penalty.defined() ? l + penalty : l}, parameters_);
  }
  out.norm = optimizer_.norm(gradients);
  if (!std::isfinite(out.norm)) return out;
  optimizer_.step(gradients, out.norm, lr_factor);
  model_.updated();
  return out;
}

std::unique_ptr<TrainingStep::OnDevice> TrainingStep::room_for(const Batch& batch, const Tensors& carry,
                                                               double scale) const {
  const auto room = [&](const Tensor& x) {
    return x.defined() ? Tensor::empty({x.dtype(), x.shape(), &device_}) : Tensor();
  };
  auto step = std::make_unique<OnDevice>();
  step->batch = {room(batch.x), room(batch.y), room(batch.weight)};
  for (const Tensor& x : batch.more) step->batch.more.push_back(room(x));
  for (const Tensor& state : carry) {
    step->carry_in.push_back(room(state));
    step->carry.push_back(room(state));
  }
  step->told = Tensor::empty({DType::f64, {2}, &device_});
  if (scale != 1) step->scale = step->told.view({});
  return step;
}

void TrainingStep::put(OnDevice& step, const Batch& batch, const StepContext& at, const Tensors& carry,
                       double scale) const {
  fill_from(batch.x, step.batch.x);
  fill_from(batch.y, step.batch.y);
  if (batch.weight.defined()) fill_from(batch.weight, step.batch.weight);
  for (std::size_t i = 0; i < batch.more.size(); ++i) fill_from(batch.more[i], step.batch.more[i]);
  for (std::size_t i = 0; i < carry.size(); ++i) {
    if (carry[i].storage() != step.carry[i].storage()) fill_from(carry[i], step.carry[i]);
  }
  const double told[] = {scale, static_cast<double>(at.step)};
  device_.write(step.told.data(), told, sizeof told);
}

/// Like plain(), but reads no value on the host.
void TrainingStep::compute(OnDevice& step, const StepContext& at) const {
  const Tape tape;
  for (std::size_t i = 0; i < step.carry.size(); ++i) step.carry_in[i].assign(step.carry[i]);
  Tensors states = step.carry_in;
  const StepContext here{at.seed, at.step, step.told.view({}, 1)};
  const Tensor loss = task_.loss(model_.forward(step.batch, here, &states), step.batch);
  const Tensor l = step.scale.defined() ? loss * cast(step.scale, loss.dtype()) : loss;
  const Tensor penalty = model_.penalty();
  step.gradients = grad({penalty.defined() ? l + penalty : l}, parameters_);
  const NoGrad no_grad;
  step.numbers = Tensor::empty({DType::f64, {1 + std::ssize(step.gradients)}, &device_});
  step.numbers.view({}).assign(cast(loss, DType::f64));
  sums_of_squares(step.gradients, step.numbers.view({std::ssize(step.gradients)}, 1));
  if (step.carry.empty()) {
    step.carry = states;
  } else {
    for (std::size_t i = 0; i < states.size(); ++i) step.carry[i].assign(states[i]);
  }
  optimizer_.update(step.gradients, step.numbers);
}

bool TrainingStep::record(OnDevice& step, const StepContext& at) {
  try {
    step.graph = device_.capture();
    compute(step, at);
    step.graph->stop();
    kernels_ = step.graph->size();
    ++recorded_;
    return true;
  } catch (const NotCapturable& e) {
    note_ = e.what();
  } catch (const Error& e) {  // if it is not about the capture, the step will meet it again
    note_ = e.what();
  }
  step.graph = nullptr;
  graphs_ = false;
  return false;
}

StepResult TrainingStep::run(OnDevice& step, const Batch& batch, const StepContext& at, Tensors& carry, double scale,
                             double lr_factor) {
  put(step, batch, at, carry, scale);
  optimizer_.set_step(lr_factor);
  std::vector<double> numbers;
  try {
    if (step.graph)
      step.graph->replay();
    else
      compute(step, at);
    numbers = step.numbers.values<double>();
  } catch (const Error&) {  // nothing was updated; plain() checks the loss first, and gives the best error
    carry = step.carry_in;
    return plain(batch, at, carry, scale, lr_factor);
  }
  carry = step.carry;
  if (!std::isfinite(numbers[0])) return {numbers[0]};
  const StepResult out{numbers[0], norm_of(std::span(numbers).subspan(1))};
  if (!std::isfinite(out.norm)) return out;
  optimizer_.finish(step.gradients, out.norm, lr_factor);
  model_.updated();
  return out;
}

}  // namespace reel
