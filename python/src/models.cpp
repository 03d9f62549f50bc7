// The models of tasks/training/model.h. reel/_model.py has what users call.
#include "python/src/model.h"

#include <fmt/core.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <filesystem>

#include "tasks/training/model_file.h"
#include "tasks/training/option_checks.h"

namespace reel::python {

using namespace nb::literals;

namespace {

void check(const ModelShape& shape, const std::string& head) {
  if ((shape.vocabulary > 0) == (shape.inputs > 0) || shape.vocabulary < 0 || shape.inputs < 0)
    throw SettingError("inputs",
                       fmt::format("one of inputs (numbers at each step) and vocabulary (different symbols) is 1 or "
                                   "more, got inputs = {}, vocabulary = {}",
                                   shape.inputs, shape.vocabulary));
  require_one_of("head_init", head, ModelOptions::head_inits());
}

/// Cell, units and settings of each layer, from bottom to top.
using Layers = std::vector<std::tuple<std::string, std::int64_t, nb::dict>>;

PyModel make_model(std::int64_t vocabulary, std::int64_t inputs, std::int64_t outputs, bool every_step,
                   const Layers& layers, const std::string& input, std::int64_t embedding, const std::string& head_init,
                   bool bidirectional, bool layer_norm, bool residual, double dropout, bool variational_dropout,
                   double zoneout, std::int64_t checkpoint_every, std::uint64_t seed, DTypeLike dtype) {
  const ModelShape shape{.vocabulary = vocabulary, .inputs = inputs, .outputs = outputs, .every_step = every_step};
  std::vector<LayerOptions> stack;
  for (const auto& [cell, hidden, settings] : layers)
    stack.push_back({cell, hidden, settings_of(known_cell(cell), settings)});
  const auto same = [&](const LayerOptions& l) { return l.cell == stack[0].cell && l.hidden == stack[0].hidden; };
  const bool alike = std::all_of(stack.begin(), stack.end(), same);
  const ModelOptions options{.cell = stack[0].cell,
                             .hidden = stack[0].hidden,
                             .layers = std::ssize(stack),
                             .input = input,
                             .embedding = embedding,
                             .head_init = head_init,
                             .bidirectional = bidirectional,
                             .layer_norm = layer_norm,
                             .residual = residual,
                             .zoneout = zoneout,
                             .dropout = dropout,
                             .variational = variational_dropout,
                             .checkpoint_every = checkpoint_every,
                             .settings = stack[0].settings,
                             .stack = alike ? std::vector<LayerOptions>() : stack};
  check(shape, head_init);
  return {shape, options, dtype.value, seed, Model(shape, options, Init(seed, dtype.value))};
}

void check_input(const PyModel& m, const Tensor& x) {
  const Loc where = here();
  if (m.shape.vocabulary > 0) {
    if (x.rank() != 2 || x.dtype() != DType::i32)
      fail("model", where, "the input must be symbols, i32 [T, B], got {}", x.spec().str());
    if (x.concrete()) {
      for (const std::int32_t symbol : x.values<std::int32_t>())
        if (symbol < 0 || symbol >= m.shape.vocabulary)
          fail("model", where, "symbols are 0 to {}, got {}", m.shape.vocabulary - 1, symbol);
    }
  } else if (x.rank() != 3 || x.dim(2) != m.shape.inputs || is_complex(x.dtype())) {
    fail("model", where, "the input must be numbers [T, B, i] with i = {}, got {}", m.shape.inputs, x.spec().str());
  }
  if (x.dim(0) < 1) fail("model", where, "1 or more time steps are needed, got {}", x.spec().str());
}

/// Why no state carries over; empty for a model whose state does.
std::string without_states(const PyModel& m) {
  if (m.model.recurrent()) return "";
  return m.options.bidirectional ? "a bidirectional model" : "a cell without states";
}

void check_state(const PyModel& m, const Tensors& state, std::int64_t batch) {
  const Tensors expected = m.model.initial(batch);
  if (state.size() != expected.size())
    fail("model", here(), "the state is {} tensors, or none to start fresh, got {}", expected.size(), state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!(state[i].spec() == expected[i].spec()))
      fail("model", here(), "tensor {} of the state must be {}, got {}", i, expected[i].spec().str(),
           state[i].spec().str());
  }
}

/// x, the lengths of its sequences if any, and the states -> the outputs and the last states. With `step`, dropout is
/// that of this training step.
std::pair<Tensor, Tensors> call(const PyModel& m, const Tensor& x, const std::optional<Tensors>& given,
                                const std::optional<Values>& parameters, const std::optional<std::int64_t>& step,
                                const std::optional<Tensor>& lengths) {
  check_input(m, x);
  if (given && !m.model.recurrent())
    fail("model", here(), "{} reads whole sequences: no state goes on. Hint: leave state out", without_states(m));
  const Tensors state = given.value_or(Tensors());
  if (!state.empty()) check_state(m, state, x.dim(1));
  if (lengths) check_lengths("model", *lengths, x.dim(0), x.dim(1));
  std::optional<StepContext> training;
  if (step) training = StepContext{.seed = m.seed, .step = *step};
  const Function whole = [&](const Tensors& arguments) {
    Tensors carry(arguments.begin(), arguments.begin() + std::ssize(state));
    const Tensor ends = lengths ? arguments.back() : Tensor();
    Tensors out{m.model(arguments[state.size()], training, &carry, ends)};
    out.insert(out.end(), carry.begin(), carry.end());
    return out;
  };
  Tensors in = state;
  in.push_back(x);
  if (lengths) in.push_back(*lengths);
  const Loc where = here();
  const Interruptible released;
  const Tensors out = with_values("model", m.model.parameters(), parameters.value_or(Values()), in, whole, where);
  return {out[0], {out.begin() + 1, out.end()}};
}

std::optional<Tensor> penalty(const PyModel& m, const std::optional<Values>& parameters) {
  bool any = false;
  const Function whole = [&](const Tensors&) {
    const Tensor p = m.model.penalty();
    any = p.defined();
    return any ? Tensors{p} : Tensors();
  };
  const Tensors out =
      with_values("model", m.model.parameters(), parameters.value_or(Values()), Tensors(), whole, here());
  return any ? std::optional(out[0]) : std::nullopt;
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<PyModel>(m, "_Model")
      .def_ro("dtype", &PyModel::dtype)
      .def_prop_ro("count", [](const PyModel& m) { return m.model.count(); })
      .def_prop_ro("without_states", &without_states)
      .def("table", [](const PyModel& m) { return m.model.table(); })
      .def(
          "parameters", [](const PyModel& m, nb::handle owner) { return handed_out(owner, m.model.parameters()); },
          "owner"_a)
      .def("constants", [](const PyModel& m) { return by_name(m.model.parameters(), false); })
      .def("initial",
           [](const PyModel& m, std::int64_t batch) {
             if (batch < 0) fail("initial", here(), "a batch of 0 or more, got {}", batch);
             return m.model.initial(batch);
           })
      .def("call", &call, "x"_a, "state"_a.none(), "parameters"_a.none(), "step"_a.none(), "lengths"_a.none())
      .def("save_config",
           [](const PyModel& m, const std::filesystem::path& path, const std::string& task) {
             save_model_config(path.string(), {task, m.shape, with_all_settings(m.options), m.dtype});
           })
      .def("penalty", &penalty, "parameters"_a.none())
      .def("updated", [](PyModel& m) { m.model.updated(); });
  m.def("_model", &make_model, "vocabulary"_a, "inputs"_a, "outputs"_a, "every_step"_a, "layers"_a, "input"_a,
        "embedding"_a, "head_init"_a, "bidirectional"_a, "layer_norm"_a, "residual"_a, "dropout"_a,
        "variational_dropout"_a, "zoneout"_a, "checkpoint_every"_a, "seed"_a, "dtype"_a);
}

}  // namespace reel::python
