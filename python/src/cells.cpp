// The recurrent cells of cells/, with their settings.
#include <dlfcn.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <filesystem>

#include "cells/plugin.h"
#include "python/src/parameters.h"

namespace reel::python {

using namespace nb::literals;

namespace {

Tensors with(const PyCell& c, const std::optional<Values>& parameters, const Tensors& in, const Function& f,
             const Loc& where) {
  return with_values(c.name, c.cell->parameters(), parameters.value_or(Values()), in, f, where);
}

void check_state(const PyCell& c, const Tensors& state, std::int64_t batch) {
  const std::vector<State> expected = c.cell->states();
  if (state.size() != expected.size())
    fail(c.name.c_str(), here(), "the state is {} tensors, got {}", expected.size(), state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Spec wanted{expected[i].complex ? complex_of(c.dtype) : c.dtype, {batch, expected[i].width}, &backend()};
    if (!(state[i].spec() == wanted))
      fail(c.name.c_str(), here(), "state {} ({}) must be {}, got {}", i, expected[i].name, wanted.str(),
           state[i].spec().str());
  }
}

void check_input(const PyCell& c, const Tensor& x, int rank, const char* shape) {
  if (x.rank() != rank || x.dim(-1) != c.cell->input || x.dtype() != c.dtype)
    fail(c.name.c_str(), here(), "the input must be {} {} with i = {}, got {}", name_of(c.dtype), shape, c.cell->input,
         x.spec().str());
}

void check_symbols(const PyCell& c, const Tensor& symbols, const Tensor& table) {
  if (symbols.rank() != 2 || symbols.dtype() != DType::i32)
    fail(c.name.c_str(), here(), "with a table the input must be symbols i32 [T, B], got {}", symbols.spec().str());
  if (table.rank() != 2 || table.dim(1) != c.cell->input || table.dtype() != c.dtype)
    fail(c.name.c_str(), here(), "the table must be {} [symbols, i] with i = {}, got {}", name_of(c.dtype),
         c.cell->input, table.spec().str());
}

PyCell make_cell(const std::string& name, std::int64_t input_size, std::int64_t hidden_size, Seed seed, DTypeLike dtype,
                 const nb::kwargs& settings) {
  if (!is_floating(dtype.value)) fail("cell", here(), "dtype is f32 or f64, got {}", name_of(dtype.value));
  const CellType& type = known_cell(name);
  const std::map<std::string, std::string> texts = settings_of(type, settings);
  const Settings given(name, type.settings, texts);
  Init init(seed, dtype.value);
  PyCell made{name, type.make(input_size, hidden_size, given, init), dtype.value, seed, texts};
  for (const auto& [setting, why] : given.without_effect()) {
    const std::string text = fmt::format("{} = {} has no effect: {}", setting, given.values().at(setting), why);
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) throw nb::python_error();  // where warnings are errors
  }
  return made;
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
      if (!s.only_if.empty()) setting["only_if"] = s.only_if;
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

/// The settings given that have no effect beside others, with the reason.
std::vector<std::pair<std::string, std::string>> without_effect(const std::string& cell, const nb::dict& settings) {
  const CellType& type = known_cell(cell);
  return Settings(cell, type.settings, settings_of(type, settings)).without_effect();
}

void load(const std::filesystem::path& path) {
  // A plugin has no symbols of Reel of its own: those of this module become visible to it.
  Dl_info module;
  if (dladdr(reinterpret_cast<const void*>(&load), &module))
    dlopen(module.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  load_plugin(path);
}

/// The outputs hs [T, B, n] at each sequence's last step, [B, n].
Tensor last_of(const Tensor& hs, const Tensor& lengths) {
  if (!lengths.defined()) return at(hs, hs.dim(0) - 1);
  const std::int64_t B = hs.dim(1);
  const Tensor rows = (maximum(lengths, 1.0) - 1.0) * static_cast<double>(B) + arange(B, DType::i32, hs.backend());
  return embedding(rows, reshape(hs, {hs.dim(0) * B, -1}));
}

std::pair<Tensor, Tensors> run(const PyCell& c, const Tensor& xs, const std::optional<Tensors>& state,
                               const std::optional<Values>& parameters, const std::optional<Tensor>& table,
                               const std::optional<Tensor>& lengths, bool every_step, bool reverse,
                               std::int64_t checkpoint_every) {
  if (table) {
    check_symbols(c, xs, *table);
  } else {
    check_input(c, xs, 3, "[T, B, i]");
  }
  const Loc where = here();
  const std::int64_t batch = xs.dim(1);
  if (state) check_state(c, *state, batch);
  if (lengths) check_lengths(c.name, *lengths, xs.dim(0), batch);
  const ScanOptions options{.reverse = reverse, .checkpoint_every = checkpoint_every};
  const Function whole = [&](const Tensors& arguments) {
    CellInput in = table ? CellInput(arguments[0], arguments[1]) : CellInput(arguments[0]);
    in.every_step = every_step;
    auto first = arguments.begin() + (table ? 2 : 1);
    if (lengths) in.lengths = *first++;
    const Sequence all =
        scan(*c.cell, state ? Tensors(first, arguments.end()) : c.cell->initial(batch), in, options, where);
    Tensors out{all.hs};
    if (!every_step) out[0] = c.cell->recurrent() ? c.cell->output(all.last) : last_of(all.hs, in.lengths);
    out.insert(out.end(), all.last.begin(), all.last.end());
    return out;
  };
  Tensors in{xs};
  if (table) in.push_back(*table);
  if (lengths) in.push_back(*lengths);
  if (state) in.insert(in.end(), state->begin(), state->end());
  const Interruptible released;
  const Tensors out = with(c, parameters, in, whole, where);
  return {out[0], {out.begin() + 1, out.end()}};
}

Tensors step(const PyCell& c, const Tensors& state, const Tensor& x, const std::optional<Values>& parameters) {
  if (!c.cell->recurrent()) fail(c.name.c_str(), here(), "this cell processes a whole sequence at once. Hint: run()");
  check_input(c, x, 2, "[B, i]");
  check_state(c, state, x.dim(0));
  Tensors in = state;
  in.push_back(x);
  const auto one = [&](const Tensors& a) { return c.cell->step(Tensors(a.begin(), a.end() - 1), a.back()); };
  const Loc where = here();
  const GilRelease released;
  return with(c, parameters, in, one, where);
}

Tensors initial(const PyCell& c, std::int64_t batch, const std::optional<Values>& parameters) {
  if (batch < 0) fail("initial", here(), "a batch of 0 or more, got {}", batch);
  const auto first = [&](const Tensors&) { return c.cell->initial(batch); };
  return with(c, parameters, {}, first, here());
}

Tensor output(const PyCell& c, const Tensors& state, const std::optional<Values>& parameters) {
  check_state(c, state, state.empty() || state[0].rank() == 0 ? 0 : state[0].dim(0));
  const auto one = [&](const Tensors& s) { return Tensors{c.cell->output(s)}; };
  return with(c, parameters, state, one, here()).at(0);
}

}  // namespace

void bind_cells(nb::module_& m) {
  nb::class_<PyCell>(m, "Cell", nb::is_weak_referenceable(),
                     "A recurrent cell with its parameters. reel.cell() makes one.")
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
          "parameters", [](nb::handle self) { return handed_out(self, nb::cast<PyCell&>(self).cell->parameters()); },
          nb::sig("def parameters(self) -> dict[str, Tensor]"),
          "The trained parameters by name. Tensor.assign() changes them.")
      .def(
          "constants", [](const PyCell& c) { return by_name(c.cell->parameters(), false); },
          nb::sig("def constants(self) -> dict[str, Tensor]"), "The parameters that are not trained.")
      .def("initial", &initial, "batch"_a, nb::kw_only(), "parameters"_a.none() = nb::none(),
           "The state before the first step. `parameters` replace the cell's own, as in step(): some cells learn this "
           "state.")
      .def("step", &step, "state"_a, "x"_a, "parameters"_a.none() = nb::none(),
           "One time step: state and x [B, i] -> the next state. `parameters` replace the cell's own, by name, for "
           "gradients with respect to them; give them to initial() and output(), too.")
      .def("output", &output, "state"_a, nb::kw_only(), "parameters"_a.none() = nb::none(),
           "The output that belongs to a state, [B, output_size]. `parameters` replace the cell's own, as in step(): "
           "some cells compute their output with weights.")
      .def("run", &run, "xs"_a, "state"_a.none() = nb::none(), "parameters"_a.none() = nb::none(), nb::kw_only(),
           "table"_a.none() = nb::none(), "lengths"_a.none() = nb::none(), "every_step"_a = true, "reverse"_a = false,
           "checkpoint_every"_a = 0,
           "A whole sequence xs [T, B, i] -> outputs [T, B, output_size] and the last state. `parameters` replace the "
           "cell's own, by name, for gradients with respect to them. With a table [symbols, i], xs are symbols i32 "
           "[T, B], which index its rows. With lengths i32 [B], sequence b has lengths[b] steps and the rest is "
           "padding, "
           "over which its state holds still. every_step=False gives the last output alone, [B, output_size].")
      .def(
          "updated", [](const PyCell& c) { c.cell->updated(); },
          "Projects the parameters onto their constraints; call it after each change of them.")
      .def_ro("_seed", &PyCell::seed)
      .def_ro("_settings", &PyCell::settings)
      .def("__reduce__",
           [](nb::handle self) {
             const nb::module_ restore = nb::module_::import_("reel._restore");
             return nb::make_tuple(restore.attr("cell"), restore.attr("cell_arguments")(self));
           })
      .def("__repr__", [](const PyCell& c) {
        return fmt::format("Cell({}, input_size={}, hidden_size={}, dtype={})", c.name, c.cell->input, c.cell->hidden,
                           name_of(c.dtype));
      });
  m.def("cell", &make_cell, "name"_a, "input_size"_a, "hidden_size"_a, "seed"_a = Seed{1}, "dtype"_a = "f32",
        "settings"_a,
        "A recurrent cell by name, with its settings: cell(\"srnn\", 2, 128, width=16). cells() lists names and "
        "settings. Throws SettingError for an unknown name, setting or value.");
  m.def("load_plugin", &load, "path"_a,
        "Loads a shared library with cells of your own, written in C++ and made by reel_add_plugin "
        "(docs/how-to/cell.md); one that is loaded already stays as it is. `import reel` loads those that REEL_PLUGINS "
        "names in the environment, with : between them. "
        "Throws Error naming the file if it is none, or was compiled for another version of Reel.");
  m.def("_plugins", &loaded_plugins);
  m.def("_without_effect", &without_effect);
  m.def("cells", &cells,
        "All cells by name: help, source, and settings with kind, default, help, choices, and when they are "
        "read, if not always: \"style=tunable\".");
}

}  // namespace reel::python
