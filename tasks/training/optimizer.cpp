#include "tasks/training/optimizer.h"

#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "ops/functors/update.h"
#include "tasks/training/option_checks.h"

namespace reel {

namespace {
bool like_adam(const std::string& kind) { return kind == "adam" || kind == "adamw"; }
int states_of(const std::string& kind) { return like_adam(kind) ? 2 : kind == "amsgrad" ? 3 : 1; }
/// How many real values a tensor has; a complex value counts as two.
std::int64_t numbers_in(const Tensor& x) { return x.numel() * (is_complex(x.dtype()) ? 2 : 1); }

/// Each element clamped to +-limit; of complex numbers each part, as in the update's kernels.
Tensor clipped(const Tensor& g, double limit) {
  return is_complex(g.dtype()) ? complex(clipped(real(g), limit), clipped(imag(g), limit)) : clamp(g, -limit, limit);
}

constexpr double no_limit = std::numeric_limits<double>::infinity();
}  // namespace

void check(const OptimizerOptions& o) {
  require_one_of("kind", o.kind, OptimizerOptions::kinds());
  constexpr double below_1 = 0.999999;  // as in the programs: no mean has 1
  require_within("lr", o.lr, no_limit), require_within("momentum", o.momentum, 1),
      require_within("decay", o.decay, below_1);
  require_within("epsilon", o.epsilon, no_limit), require_within("rms_start", o.rms_start, no_limit);
  require_within("beta1", o.beta1, below_1), require_within("beta2", o.beta2, below_1);
  require_within("clip_norm", o.clip_norm, no_limit), require_within("clip_value", o.clip_value, no_limit);
  require_within("weight_decay", o.weight_decay, no_limit);
  for (const auto& [group, rate] : o.group_lr) require_within("group_lr[\"" + group + "\"]", rate, no_limit);
}

Optimizer::Optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options) : options_(options) {
  check(options);
  for (const auto& [group, rate] : options.group_lr) {
    std::set<std::string> known;
    for (const Parameter& p : parameters) known.insert(p.group);
    if (known.contains(group)) continue;
    known.erase("");  // of parameters without a group
    throw SettingError("group-lr", fmt::format("no parameter is in group \"{}\"{}{}", group,
                                               known.empty() ? "" : "; the groups are ", fmt::join(known, ", ")));
  }
  const double start = options.kind == "rmsprop" ? options.rms_start : 0;
  for (Parameter& p : parameters) {
    if (!is_differentiable(p.value.dtype()))
      throw Error("optimizer", fmt::format("parameter {} is {}, which has no gradient", p.name, p.value.spec().str()));
    const auto rate = options.group_lr.find(p.group);
    Slot slot{p, rate == options.group_lr.end() ? options.lr : rate->second, {}};
    for (int k = 0; k < states_of(options.kind) && !p.retract; ++k)
      slot.state[k] = Tensor::full(p.value.shape(), {start, is_complex(p.value.dtype()) ? start : 0}, p.value.dtype(),
                                   p.value.backend());
    if (like_adam(options.kind) && !p.retract)
      slot.state[2] = Tensor::zeros(p.value.shape(), p.value.dtype(), p.value.backend());
    slots_.push_back(std::move(slot));
  }
  if (slots_.empty()) return;
  Backend& device = slots_.front().parameter.value.backend();
  places_.reserve(slots_.size());
  numbers_ = Tensor::empty({DType::f64, {sizeof(UpdateNumbers) / sizeof(double)}, &device});
  rates_ = Tensor::empty({DType::f64, {std::ssize(slots_)}, &device});
  write_rates();
}

void Optimizer::set_lr(double lr) {
  require_within("lr", lr, no_limit);
  options_.lr = lr;
  for (Slot& slot : slots_) {
    if (!options_.group_lr.contains(slot.parameter.group)) slot.lr = lr;
  }
  write_rates();
}

void Optimizer::write_rates() {
  if (!rates_.defined()) return;
  std::vector<double> rates;
  for (const Slot& slot : slots_) rates.push_back(slot.lr);
  rates_.backend().write(rates_.data(), rates.data(), rates_.bytes());
}

void sums_of_squares(const Tensors& gradients, Tensor out) {
  std::array<SquaresOf, 48> some;  // on the stack, so that nothing is allocated
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::size_t n = 0;
    const auto flush = [&] {
      if (n > 0) out.backend().sums_of_squares({dtype, std::span(some).first(n)});
      n = 0;
    };
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Tensor& g = gradients[i];
      if (real_of(g.dtype()) != dtype) continue;
      some[n++] = {numbers_in(g), g.data(), out.data_as<double>() + i};
      if (n == some.size()) flush();
    }
    flush();
  }
}

double norm_of(std::span<const double> squares) {
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

double JointNorm::operator()(const Tensors& gradients) {
  if (gradients.empty()) return 0;
  const Spec spec{DType::f64, {std::ssize(gradients)}, &gradients[0].backend()};
  if (!squares_.defined() || !(squares_.spec() == spec)) {
    squares_ = Tensor::empty(spec);
    read_.resize(gradients.size());
  }
  sums_of_squares(gradients, squares_);
  squares_.backend().read(read_.data(), squares_.data(), squares_.bytes());
  return norm_of(read_);
}

double Optimizer::norm_limit() const {
  return clips_norm() ? options_.clip_norm : std::numeric_limits<double>::infinity();
}

void Optimizer::write_numbers(double scale, double lr_factor) {
  if (!numbers_.defined()) return;
  const auto t = static_cast<double>(steps_ + 1);
  const UpdateNumbers numbers{scale, lr_factor, 1 - std::pow(options_.beta1, t), 1 - std::pow(options_.beta2, t)};
  numbers_.backend().write(numbers_.data(), &numbers, sizeof numbers);
}

template <class Rule>
void Optimizer::apply(const Rule& rule, DType dtype, const Tensors& gradients) {
  places_.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto& [parameter, lr, state] = slots_[i];
    Tensor& p = parameter.value;
    if (parameter.retract || real_of(p.dtype()) != dtype) continue;
    UpdatePlace place{numbers_in(p), rates_.data_as<double>() + i, p.data(), gradients[i].data(), {}};
    for (int k = 0; k < 3; ++k) place.state[k] = state[k].defined() ? state[k].data() : nullptr;
    places_.push_back(place);
  }
  if (places_.empty()) return;
  const double limit = options_.clip_value > 0 ? options_.clip_value : std::numeric_limits<double>::infinity();
  UpdateArgs call{.rule = index_of<Rule, UpdateRules>,
                  .params = rule,
                  .dtype = dtype,
                  .limit = limit,
                  .decay = {options_.weight_decay, options_.kind == "adamw"},
                  .numbers = numbers_.data_as<double>(),
                  .places = std::move(places_)};
  numbers_.backend().update(call);
  places_ = std::move(call.places);
}

void Optimizer::apply(const Tensors& gradients) {
  if (gradients.size() != slots_.size())
    throw Error("optimizer", fmt::format("{} gradients for {} parameters", gradients.size(), slots_.size()));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Parameter& p = slots_[i].parameter;
    if (!gradients[i].defined()) throw Error("optimizer", fmt::format("the gradient of {} is undefined", p.name));
    if (!(gradients[i].spec() == p.value.spec()))
      throw Error("optimizer",
                  fmt::format("{} is {}, its gradient {}", p.name, p.value.spec().str(), gradients[i].spec().str()));
  }
  const double eps = options_.epsilon;
  for (const DType dtype : {DType::f32, DType::f64}) {
    if (options_.kind == "sgd")
      apply(SgdRule{0, options_.momentum}, dtype, gradients);
    else if (options_.kind == "rmsprop")
      apply(RmspropRule{0, options_.decay, eps, options_.epsilon_inside}, dtype, gradients);
    else if (options_.kind == "adagrad")
      apply(AdagradRule{0, eps}, dtype, gradients);
    else
      apply(AdamRule{0, options_.beta1, options_.beta2, eps, 0, 0, options_.kind == "amsgrad"}, dtype, gradients);
  }
}

void Optimizer::step(const Tensors& gradients, double norm, double lr_factor) {
  write_numbers(clip_scale(norm, norm_limit()), lr_factor);
  apply(gradients);
  finish(gradients, norm, lr_factor);
}

void Optimizer::set_step(double lr_factor) { write_numbers(1, lr_factor); }

void Optimizer::update(const Tensors& gradients, const Tensor& numbers) {
  if (!numbers_.defined()) return;
  Backend& device = numbers_.backend();
  device.clip({.n = numbers.numel(),
               .numbers = numbers.data_as<double>(),
               .limit = norm_limit(),
               .scale = numbers_.data_as<double>()});
  apply(gradients);
}

void Optimizer::finish(const Tensors& gradients, double norm, double lr_factor) {
  ++steps_;
  const NoGrad no_grad;  // a retraction must not be recorded on a tape
  const double scale = clip_scale(norm, norm_limit());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto& [parameter, lr, state] = slots_[i];
    if (!parameter.retract) {
      parameter.value.mark_changed();
      continue;
    }
    const auto* const before = parameter.value.storage();
    const Tensor& raw = gradients[i];
    const Tensor gradient = options_.clip_value > 0 ? clipped(raw, options_.clip_value / scale) : raw;
    parameter.retract(parameter.value, gradient, lr * lr_factor * scale);
    if (parameter.value.storage() != before)  // the cell and the model would keep the old one
      throw Error("optimizer", fmt::format("the retraction of {} gives it another tensor, and the cell keeps the old "
                                           "one. Hint: value.assign(...) moves it in place",
                                           parameter.name));
  }
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const Slot& slot : slots_) {
    for (int k = 0; k < 3; ++k) {
      if (slot.state[k].defined())
        out.emplace_back(fmt::format("optimizer.{}.{}", slot.parameter.name, k), slot.state[k]);
    }
  }
  return out;
}

}  // namespace reel
