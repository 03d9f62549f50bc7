// The optimisers of tasks/training/optimizer.h. reel/optim.py has what users call.
#include <fmt/ranges.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "python/src/model.h"
#include "tasks/training/device.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/schedule.h"

namespace reel::python {

using namespace nb::literals;

namespace {

/// The type of what is no tensor. An array stays what it is: the optimiser writes into its parameters.
std::string no_tensor(nb::handle x) {
  const char* hint = "";
  if (nb::ndarray_check(x)) hint = ". Hint: reel.tensor(x)";
  if (nb::isinstance<PyCell>(x) || nb::hasattr(x, "_model")) hint = ". Hint: x.parameters()";
  return std::string(nb::type_name(x.type()).c_str()) + hint;
}

/// An optimiser and what it updates.
class PyOptimizer {
 public:
  PyOptimizer(std::vector<Parameter> parameters, const OptimizerOptions& options, std::function<void()> updated)
      : parameters_(std::move(parameters)), optimizer_(parameters_, options), updated_(std::move(updated)) {}

  /// One update, unless a gradient is not finite. `now` is the dict of parameters as it is now, if they came as one.
  /// Returns their joint norm. No signal comes between its parts: it is no Interruptible.
  double step(const nb::dict& gradients, double lr_factor, const std::optional<nb::dict>& now) {
    const Loc where = here();
    if (!(lr_factor >= 0 && std::isfinite(lr_factor)))
      fail("optimizer", where, "lr_factor is a finite number, 0 or more, got {}", lr_factor);
    Tensors ordered;
    for (const Parameter& p : parameters_) {
      const nb::object key = nb::cast(p.name);
      if (!gradients.contains(key))
        fail("optimizer", where, "there is no gradient for {}. Hint: zeros for a parameter that stays", p.name);
      if (now && !holds(*now, key, p)) refuse_others(*now);
      const nb::object given = gradients[key];
      Tensor* gradient = nullptr;
      if (!nb::try_cast(given, gradient) || !gradient)
        fail("optimizer", where, "the gradient for {} must be a tensor, got {}", p.name, no_tensor(given));
      if (!(gradient->spec() == p.value.spec()))
        fail("optimizer", where, "{} is {}, its gradient {}", p.name, p.value.spec().str(), gradient->spec().str());
      if (!gradient->concrete())
        fail("optimizer", where, "the gradient for {} has no value: it stands for one while a step is traced", p.name);
      refuse_recorded("optimizer", *gradient, "the gradient for " + p.name);
      ordered.push_back(*gradient);
    }
    if (gradients.size() != parameters_.size()) refuse_unknown(gradients);
    const nb::gil_scoped_release released;
    const double norm = optimizer_.norm(ordered);
    if (!std::isfinite(norm)) return norm;
    optimizer_.step(ordered, norm, lr_factor);
    if (updated_) updated_();
    return norm;
  }

  nb::dict state() const {
    nb::dict out;
    for (const auto& [name, value] : optimizer_.state()) out[nb::cast(name)] = value;
    return out;
  }
  void load_state(const Values& values, std::int64_t steps) {
    const auto state = optimizer_.state();
    if (steps < 0) fail("optimizer", here(), "steps is 0 or more, got {}", steps);
    for (const auto& [name, place] : state) {
      const auto found = values.find(name);
      if (found == values.end()) fail("optimizer", here(), "the state lacks {}", name);
      if (!(found->second.spec() == place.spec()))
        fail("optimizer", here(), "{} must be {}, got {}", name, place.spec().str(), found->second.spec().str());
      if (!found->second.concrete()) fail("optimizer", here(), "{} has no value", name);
      refuse_recorded("optimizer", found->second, name);
      if (is_differentiable(place.dtype()) && reel::any(is_nan(found->second)).item() != 0)
        fail("optimizer", here(), "{} has an element that is NaN", name);
    }
    for (const auto& [name, value] : values) {
      if (std::ranges::none_of(state, [&](const auto& part) { return part.first == name; }))
        fail("optimizer", here(), "the state has {}, which this optimizer lacks", name);
    }
    for (const auto& [name, place] : state) fill_from(values.at(name), place);
    optimizer_.set_steps(steps);
  }
  std::int64_t steps() const { return optimizer_.steps(); }
  void set_lr(double lr) { optimizer_.set_lr(lr); }
  /// The names under which `values` does not have the tensors that step() changes.
  std::vector<std::string> others(const nb::dict& values) const {
    std::vector<std::string> out;
    for (const Parameter& p : parameters_) {
      if (!holds(values, nb::cast(p.name), p)) out.push_back(p.name);
    }
    return out;
  }
  void refuse_others(const nb::dict& now) const {
    if (const std::vector<std::string> found = others(now); !found.empty())
      fail("optimizer", here(), "{}: the dict has another tensor than the optimizer. Hint: assign()",
           fmt::join(found, ", "));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Parameter& p : parameters_) out.push_back(p.name);
    return out;
  }

 private:
  void refuse_unknown(const nb::dict& gradients) const {
    for (const auto [name, gradient] : gradients) {
      const auto same = [name = name](const Parameter& p) { return nb::cast(p.name).equal(name); };
      if (std::ranges::none_of(parameters_, same))
        fail("optimizer", here(), "{} gradients for {} parameters: none of these is called {}", gradients.size(),
             parameters_.size(), nb::repr(name).c_str());
    }
  }
  static bool holds(const nb::dict& values, nb::handle key, const Parameter& p) {
    const nb::handle value = PyDict_GetItem(values.ptr(), key.ptr());
    return value && nb::isinstance<Tensor>(value) && nb::inst_ptr<Tensor>(value)->id() == p.value.id();
  }

  std::vector<Parameter> parameters_;
  Optimizer optimizer_;
  std::function<void()> updated_;  // projects parameters of cells onto their constraints
};

std::vector<Parameter> trained(const std::vector<Parameter>& all) {
  std::vector<Parameter> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [](const Parameter& p) { return p.trained; });
  return out;
}

/// Whether a step of one would move elements of the other, which may be a view, or another array's tensor, of them.
bool share_memory(const Tensor& a, const Tensor& b) {
  const auto *first = static_cast<const std::byte*>(a.data()), *second = static_cast<const std::byte*>(b.data());
  const std::less<> before;
  return before(first, second + b.bytes()) && before(second, first + a.bytes());
}

/// The name if it has a rate, else the longest one with a rate that it begins with, as "layers.0.w" with "layers.0",
/// and that is no other tensor's name; the name if there is none.
std::string group_of(const std::string& name, const nb::dict& values, const std::map<std::string, double>& rates) {
  for (std::size_t end = name.size(); end > 0 && end != std::string::npos; end = name.rfind('.', end - 1)) {
    const std::string group = name.substr(0, end);
    if (rates.contains(group) && (group == name || !values.contains(nb::cast(group)))) return group;
  }
  return name;
}

std::vector<Parameter> from_dict(const nb::dict& values, const std::map<std::string, double>& group_lr) {
  std::vector<Parameter> out;
  for (const auto [key, value] : values) {
    std::string name;
    if (!nb::try_cast(key, name))
      fail("optimizer", here(), "the name of a parameter has no UTF-8: {}", nb::repr(key).c_str());
    Tensor* tensor = nullptr;
    if (!nb::try_cast(value, tensor) || !tensor)
      fail("optimizer", here(), "parameter {} must be a tensor, got {}", name, no_tensor(value));
    if (!tensor->concrete()) fail("optimizer", here(), "parameter {} has no value", name);
    refuse_recorded("optimizer", *tensor, "parameter " + name);
    const auto twice = std::ranges::find_if(out, [&](const Parameter& p) { return share_memory(p.value, *tensor); });
    if (twice != out.end())
      fail("optimizer", here(), "parameter {} is there twice: it shares memory with {}. Hint: reel.tensor(x) copies",
           name, twice->name);
    out.push_back({.name = name, .value = *tensor, .group = group_of(name, values, group_lr)});
  }
  return out;
}

/// Gives parameters of cells and models, as their parameters() has them, the rules that they have there. Returns what
/// projects them after an update.
std::function<void()> with_rules(std::vector<Parameter>& parameters) {
  std::vector<nb::object> owners;
  std::vector<std::function<void()>> updates;
  for (Parameter& p : parameters) {
    nb::object owner = owner_of(p.value);
    if (owner.is_none()) continue;
    owner = nb::getattr(owner, "_model", owner);  // a Model that has the optimiser would not be freed
    PyModel* model = nullptr;
    PyCell* cell = nullptr;
    const bool is_model = nb::try_cast(owner, model);
    if (!is_model && !nb::try_cast(owner, cell)) continue;
    for (const Parameter& own : is_model ? model->model.parameters() : cell->cell->parameters()) {
      if (own.value.id() == p.value.id()) p.retract = own.retract;
    }
    if (std::ranges::any_of(owners, [&](const nb::object& known) { return known.is(owner); })) continue;
    owners.push_back(owner);
    if (is_model)
      updates.emplace_back([model] { model->model.updated(); });
    else
      updates.emplace_back([cell] { cell->cell->updated(); });
  }
  if (updates.empty()) return {};
  return [held = std::move(owners), updates = std::move(updates)] {
    for (const auto& update : updates) update();
  };
}

PyOptimizer make_optimizer(nb::handle target, const std::string& kind, double lr, double momentum, double decay,
                           double epsilon, bool epsilon_inside, double rms_start, double beta1, double beta2,
                           std::optional<double> weight_decay, double clip_norm, double clip_value,
                           const std::map<std::string, double>& group_lr) {
  const double pull = weight_decay.value_or(OptimizerOptions::usual_weight_decay(kind));
  const OptimizerOptions options{kind,  lr,    momentum, decay,     epsilon,    epsilon_inside, rms_start,
                                 beta1, beta2, pull,     clip_norm, clip_value, group_lr};
  check(options);  // before the target is looked at
  if (PyModel* model = nullptr; nb::try_cast(target, model) && model)
    return {model->model.trained(), options, [model, held = nb::borrow(target)] { model->model.updated(); }};
  if (PyCell* cell = nullptr; nb::try_cast(target, cell) && cell)
    return {trained(cell->cell->parameters()), options, [cell, held = nb::borrow(target)] { cell->cell->updated(); }};
  if (!PyDict_Check(target.ptr()))
    fail("optimizer", here(), "a Model, a Cell, or a tuple, list or dict of tensors is expected, got {}",
         nb::type_name(target.type()).c_str());
  std::vector<Parameter> parameters = from_dict(nb::borrow<nb::dict>(target), group_lr);
  const std::function<void()> updated = with_rules(parameters);
  return {parameters, options, updated};
}

double schedule_factor(std::int64_t step, const std::string& kind, std::int64_t steps, std::int64_t warmup,
                       double floor, std::int64_t every, double factor) {
  if (step < 0) fail("schedule", here(), "the number of an update is 0 or more, got {}", step);
  return Schedule({.kind = kind, .every = every, .factor = factor, .warmup = warmup, .floor = floor, .steps = steps})
      .factor(step);
}

}  // namespace

void bind_optimizers(nb::module_& m) {
  nb::class_<PyOptimizer>(m, "_Optimizer")
      .def("step", &PyOptimizer::step, "gradients"_a, "lr_factor"_a, "now"_a.none())
      .def("state", &PyOptimizer::state)
      .def("load_state", &PyOptimizer::load_state, "values"_a, "steps"_a)
      .def("set_lr", &PyOptimizer::set_lr, "lr"_a)
      .def("others", &PyOptimizer::others, "values"_a)
      .def("refuse_others", &PyOptimizer::refuse_others, "now"_a)
      .def_prop_ro("steps", &PyOptimizer::steps)
      .def_prop_ro("names", &PyOptimizer::names);
  m.def("_optimizer", &make_optimizer, "target"_a, "kind"_a, "lr"_a, "momentum"_a, "decay"_a, "epsilon"_a,
        "epsilon_inside"_a, "rms_start"_a, "beta1"_a, "beta2"_a, "weight_decay"_a.none(), "clip_norm"_a, "clip_value"_a,
        "group_lr"_a);
  m.def("_owner_of", &owner_of, "x"_a);
  m.def("_schedule_factor", &schedule_factor, "step"_a, "kind"_a, "steps"_a, "warmup"_a, "floor"_a, "every"_a,
        "factor"_a);
}

}  // namespace reel::python
