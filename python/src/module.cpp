// The module reel._reel: exceptions, and what the other files bind.
#include "python/src/python.h"

namespace {

/// What a cell of a plugin may throw, and nanobind has no words for.
void name_foreign(const std::exception_ptr& thrown, void* error) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception&) {
    throw;  // to the translators that know it
  } catch (...) {
    const std::string text =
        fmt::format("[cell] threw what is no std::exception. Hint: throw reel::Error(subject, rule) ({})",
                    reel::str(reel::python::here()));
    PyErr_SetString(static_cast<PyObject*>(error), text.c_str());
  }
}

}  // namespace

NB_MODULE(_reel, m) {
  using namespace reel;
  using namespace reel::python;
  nb::set_leak_warnings(false);  // tensors that PyTorch still holds when the process ends are no leak
  m.doc() = "Tensors, ops, gradients, scan and cells of Reel.";
  // The exception that was registered last is tried first, so derived ones follow their base.
  nb::exception<Error> error(m, "Error", PyExc_RuntimeError);
  nb::exception<SettingError>(m, "SettingError", error.ptr());
  nb::exception<OutOfMemory>(m, "OutOfMemory", error.ptr());
  const auto describe = [&](const char* name, const char* text) { m.attr(name).attr("__doc__") = text; };
  describe("Error", "Bad input: the op or setting, the rule, the values, the line of the call, and a hint.");
  describe("SettingError", "A setting with a value that it cannot have, or that does not exist.");
  describe("OutOfMemory", "Not enough memory.");
  nb::register_exception_translator(name_foreign, error.ptr());
  m.def("_set_folders", &set_folders);
  bind_interrupt(m);
  bind_tensor(m);
  bind_linalg(m);
  bind_create(m);
  bind_losses(m);
  bind_autodiff(m);
  bind_scan(m);
  bind_cells(m);
  bind_explain(m);
  bind_models(m);
  bind_optimizers(m);
  bind_files(m);
}
