// reel.explain: what becomes of a step in Python on its way to kernels. reel/_explain.py has what users call.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>

#include <filesystem>

#include "python/src/parameters.h"
#include "tasks/explain/cell.h"
#include "tasks/explain/graphs.h"
#include "tasks/explain/render.h"
#include "tasks/io/files.h"

namespace reel::python {

namespace {

using explain::Explanation;

explain::StepOptions options_of(std::int64_t batch, std::int64_t length, bool backward, int measured, double rate) {
  if (batch < 1 || length < 0)
    fail("explain", here(), "batch is 1 or more and length 0 or more, got {} and {}", batch, length);
  if (measured < 0 || rate < 0)
    fail("explain", here(), "measure and rate are 0 or more, got {} and {}", measured, rate);
  return {.batch = batch, .length = length, .backward = backward, .measured = measured, .product_rate = 1e9 * rate};
}

Explanation explain_function(const nb::callable& f, const std::string& title, const Tensors& state, const Tensors& xs,
                             std::int64_t length, const std::vector<std::pair<std::string, Tensor>>& named,
                             bool backward, int measured, double rate, const std::vector<std::string>& folders) {
  const explain::StepOptions options = options_of(1, length, backward, measured, rate);
  explain::ArgumentNames names;
  for (const auto& [name, tensor] : named) names.consts[tensor.id()] = name;
  const Step step = step_of("explain", f);
  const Interruptible released;
  Explanation e = explain::explain_step(title, step, state, xs, names, options);
  e.source_folders = folders;
  return e;
}

Explanation explain_a_cell(const PyCell& c, std::int64_t batch, std::int64_t length, bool backward, int measured,
                           double rate) {
  if (!c.cell->recurrent())
    fail(c.name.c_str(), here(), "this cell has no step: it processes a whole sequence at once");
  const explain::StepOptions options = options_of(batch, length, backward, measured, rate);
  explain::ArgumentNames names{.carries = {}, .xs = {"x"}, .consts = {}};
  for (const State& s : c.cell->states()) names.carries.push_back(s.name);
  for (const Parameter& p : c.cell->parameters()) names.consts[p.value.id()] = p.name;
  const Step step = [&](const Tensors& state, const Tensors& x) -> Next {
    const Tensors next = c.cell->step(state, x[0]);
    return {next, {c.cell->output(next)}};
  };
  const Tensor x = uniform({length, batch, c.cell->input}, -1, 1, 1, 0, c.dtype);
  const std::string title = fmt::format("{}: {} units, {} inputs; {} steps of a batch of {}, {}", c.name,
                                        c.cell->hidden, c.cell->input, length, batch, name_of(c.dtype));
  const Interruptible released;
  return explain::explain_step(title, step, c.cell->initial(batch), {x}, names, options);
}

}  // namespace

void bind_explain(nb::module_& m) {
  nb::class_<Explanation>(m, "Explanation",
                          "What reel.explain() found out: str() is a text, a notebook shows a page with graphs.")
      .def("__str__", [](const Explanation& e) { return explain::text(e); })
      .def(
          "text", [](const Explanation& e, const std::string& pass) { return explain::text(e, pass); },
          nb::arg("of_pass") = "", "The text; with the name of a pass, what this pass does alone.")
      .def(
          "html", [](const Explanation& e) { return explain::html(e); },
          "One page that needs no other file: graphs, if Graphviz is installed, a slider over the passes, tables.")
      .def(
          "dot", [](const Explanation& e) { return explain::dot(e); }, "The graph in the language of Graphviz.")
      .def(
          "save",
          [](const Explanation& e, const std::filesystem::path& path) {
            write_atomically(path.string(), explain::html(e));
          },
          nb::arg("path"), "Writes the page to a file.")
      .def("_repr_html_", [](const Explanation& e) {
        return "<iframe style=\"width:100%;height:860px;border:0\" srcdoc=\"" + explain::escaped(explain::html(e)) +
               "\"></iframe>";
      });
  m.def("_explain", &explain_function);
  m.def("_explain_cell", &explain_a_cell);
}

}  // namespace reel::python
