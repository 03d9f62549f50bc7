// The recurrent cells of cells/, with their settings.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "cells/cell.h"
#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

namespace {

using Values = std::map<std::string, Tensor>;

struct PyCell {
  std::string name;
  std::unique_ptr<Cell> cell;
  DType dtype;

  Tensors state_or_initial(const std::optional<Tensors>& state, const Tensor& batch_of, int axis) const {
    if (state) {
      check_state(*state, batch_of.rank() > axis ? batch_of.dim(axis) : 0);
      return *state;
    }
    return cell->initial(batch_of.dim(axis));
  }
  void check_state(const Tensors& state, std::int64_t batch) const {
    const std::vector<State> expected = cell->states();
    if (state.size() != expected.size())
      fail(name.c_str(), here(), "the state is {} tensors, got {}", expected.size(), state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      const Spec wanted{expected[i].complex ? complex_of(dtype) : dtype, {batch, expected[i].width}, &backend()};
      if (!(state[i].spec() == wanted))
        fail(name.c_str(), here(), "state {} ({}) must be {}, got {}", i, expected[i].name, wanted.str(),
             state[i].spec().str());
    }
  }
  void check_input(const Tensor& x, int rank, const char* shape) const {
    if (x.rank() != rank || x.dim(-1) != cell->input || x.dtype() != dtype)
      fail(name.c_str(), here(), "the input must be {} {} with i = {}, got {}", name_of(dtype), shape, cell->input,
           x.spec().str());
  }

  /// Runs `f` with these values in place of the cell's parameters: f is traced, and its consts are replaced.
  Tensors with(const Values& parameters, const Tensors& in, const Function& f, const Loc& where) const {
    std::map<std::uint64_t, Tensor> by_id;
    for (const auto& [key, value] : parameters) {
      const auto& own = cell->parameters();
      const auto found = std::find_if(own.begin(), own.end(), [&](const Parameter& p) { return p.name == key; });
      if (found == own.end()) fail(name.c_str(), where, "no parameter is called \"{}\"", key);
      if (!(found->value.spec() == value.spec()))
        fail(name.c_str(), where, "parameter {} is {}, got {}", key, found->value.spec().str(), value.spec().str());
      by_id[found->value.id()] = value;
    }
    if (parameters.empty()) return f(in);
    std::vector<Spec> specs;
    for (const Tensor& t : in) specs.push_back(t.spec());
    Traced traced = trace(specs, f);
    for (Tensor& c : traced.consts) {
      if (const auto found = by_id.find(c.id()); found != by_id.end()) c = found->second;
    }
    return eval(traced.program, in, traced.consts);
  }
};

std::string text_of(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value) ? "on" : "off";
  return nb::cast<std::string>(nb::str(value));
}

/// ". Hint: its settings are width, depth"
std::string known(const CellType& type) {
  std::string text;
  for (const Setting& s : type.settings) text += (text.empty() ? ". Hint: its settings are " : ", ") + s.name;
  return text;
}

PyCell make_cell(const std::string& name, std::int64_t input_size, std::int64_t hidden_size, std::uint64_t seed,
                 DTypeLike dtype, const nb::kwargs& settings) {
  if (!is_floating(dtype.value)) fail("cell", here(), "dtype is f32 or f64, got {}", name_of(dtype.value));
  const CellType& type = cell_type(name);
  std::map<std::string, std::string> given;
  for (const auto [key, value] : settings) {
    const auto setting = nb::cast<std::string>(key);
    const auto same = [&](const Setting& s) { return s.name == setting; };
    if (std::none_of(type.settings.begin(), type.settings.end(), same))
      throw SettingError(name + "." + setting, fmt::format("the cell {} has no such setting{}", name, known(type)));
    given[setting] = text_of(value);
  }
  Init init(seed, dtype.value);
  return {name, type.make(input_size, hidden_size, Settings(name, type.settings, given), init), dtype.value};
}

nb::dict cells() {
  nb::dict all;
  for (const CellType& type : cell_registry()) {
    nb::dict settings;
    for (const Setting& s : type.settings) {
      nb::dict setting;
      constexpr const char* kinds[] = {"integer", "real", "choice"};
      setting["kind"] = kinds[static_cast<int>(s.kind)];
      setting["default"] = s.fallback;
      setting["help"] = s.help;
      if (!s.choices.empty()) setting["choices"] = nb::tuple(nb::cast(s.choices));
      settings[s.name.c_str()] = setting;
    }
    nb::dict cell;
    cell["help"] = type.help;
    cell["source"] = type.source;
    cell["settings"] = settings;
    all[type.name.c_str()] = cell;
  }
  return all;
}

std::pair<Tensor, Tensors> run(const PyCell& c, const Tensor& xs, const std::optional<Tensors>& state,
                               const std::optional<Values>& parameters, bool reverse, std::int64_t checkpoint_every) {
  c.check_input(xs, 3, "[T, B, i]");
  const Loc where = here();
  Tensors in = c.state_or_initial(state, xs, 1);
  const bool given = state.has_value();
  const ScanOptions options{.reverse = reverse, .checkpoint_every = checkpoint_every};
  const Function whole = [&](const Tensors& arguments) {
    const Tensors first =
        given ? Tensors(arguments.begin(), arguments.end() - 1) : c.cell->initial(arguments.back().dim(1));
    const Sequence all = scan(*c.cell, first, arguments.back(), options, where);
    Tensors out{all.hs};
    out.insert(out.end(), all.last.begin(), all.last.end());
    return out;
  };
  in.push_back(xs);
  const Values values = parameters.value_or(Values());
  const Interruptible released;
  const Tensors out = c.with(values, in, whole, where);
  return {out[0], {out.begin() + 1, out.end()}};
}

Tensors step(const PyCell& c, const Tensors& state, const Tensor& x, const std::optional<Values>& parameters) {
  if (!c.cell->recurrent()) fail(c.name.c_str(), here(), "this cell processes a whole sequence at once. Hint: run()");
  c.check_input(x, 2, "[B, i]");
  c.check_state(state, x.dim(0));
  Tensors in = state;
  in.push_back(x);
  const auto one = [&](const Tensors& a) { return c.cell->step(Tensors(a.begin(), a.end() - 1), a.back()); };
  return c.with(parameters.value_or(Values()), in, one, here());
}

nb::dict parameters(const PyCell& c, bool trained) {
  nb::dict out;
  for (const Parameter& p : c.cell->parameters()) {
    if (p.trained == trained) out[p.name.c_str()] = p.value;
  }
  return out;
}

}  // namespace

void bind_cells(nb::module_& m) {
  nb::class_<PyCell>(m, "Cell", "A recurrent cell with its parameters. reel.cell() makes one.")
      .def_ro("name", &PyCell::name, "The name that reel.cell() takes.")
      .def_ro("dtype", &PyCell::dtype, "The dtype of inputs and of real parameters.")
      .def_prop_ro(
          "input_size", [](const PyCell& c) { return c.cell->input; }, "The width of an input, i.")
      .def_prop_ro(
          "hidden_size", [](const PyCell& c) { return c.cell->hidden; }, "The number of hidden units, n.")
      .def_prop_ro(
          "output_size", [](const PyCell& c) { return c.cell->outputs(); }, "The width of an output.")
      .def_prop_ro(
          "recurrent", [](const PyCell& c) { return c.cell->recurrent(); },
          "False for a cell without step(), which processes a whole sequence at once.")
      .def_prop_ro(
          "states",
          [](const PyCell& c) {
            nb::list out;
            for (const State& s : c.cell->states()) out.append(nb::make_tuple(s.name, s.width, s.complex));
            return out;
          },
          nb::sig("def states(self) -> list[tuple[str, int, bool]]"),
          "Name, width, and whether it is complex, of each tensor of the state; each is [B, width].")
      .def(
          "parameters", [](const PyCell& c) { return parameters(c, true); },
          nb::sig("def parameters(self) -> dict[str, Tensor]"),
          "The trained parameters by name. Tensor.assign() changes them.")
      .def(
          "constants", [](const PyCell& c) { return parameters(c, false); },
          nb::sig("def constants(self) -> dict[str, Tensor]"), "The parameters that are not trained.")
      .def(
          "initial",
          [](const PyCell& c, std::int64_t batch) {
            if (batch < 0) fail("initial", here(), "a batch of 0 or more, got {}", batch);
            return c.cell->initial(batch);
          },
          "batch"_a, "The state before the first step.")
      .def("step", &step, "state"_a, "x"_a, "parameters"_a.none() = nb::none(),
           "One time step: state and x [B, i] -> the next state. `parameters` replace the cell's own, by name, for "
           "gradients with respect to them.")
      .def(
          "output",
          [](const PyCell& c, const Tensors& state) {
            c.check_state(state, state.empty() || state[0].rank() == 0 ? 0 : state[0].dim(0));
            return c.cell->output(state);
          },
          "state"_a, "The output that belongs to a state, [B, output_size].")
      .def("run", &run, "xs"_a, "state"_a.none() = nb::none(), "parameters"_a.none() = nb::none(), nb::kw_only(),
           "reverse"_a = false, "checkpoint_every"_a = 0,
           "A whole sequence xs [T, B, i] -> outputs [T, B, output_size] and the last state. `parameters` replace the "
           "cell's own, by name, for gradients with respect to them.")
      .def(
          "updated", [](const PyCell& c) { c.cell->updated(); },
          "Projects the parameters onto their constraints; call it after each change of them.")
      .def("__repr__", [](const PyCell& c) {
        return fmt::format("Cell({}, input_size={}, hidden_size={}, dtype={})", c.name, c.cell->input, c.cell->hidden,
                           name_of(c.dtype));
      });
  m.def("cell", &make_cell, "name"_a, "input_size"_a, "hidden_size"_a, "seed"_a = 1, "dtype"_a = "f32", "settings"_a,
        "A recurrent cell by name, with its settings: cell(\"srnn\", 2, 128, width=16). cells() lists names and "
        "settings. Throws SettingError for an unknown name, setting or value.");
  m.def("cells", &cells, "All cells by name: help, source, and settings with kind, default, help and choices.");
}

}  // namespace reel::python
