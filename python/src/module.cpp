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

/// The text of an error may have bytes that are no UTF-8, as those of a path, which PyErr_SetString would drop with all
/// the rest.
template <class E>
void set_text(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const E& e) {
    const std::string_view text = e.what();
    PyObject* const value = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (value) PyErr_SetObject(static_cast<PyObject*>(type), value);
    Py_XDECREF(value);
  }
}

template <class E>
nb::object exception(nb::module_& m, const char* name, nb::handle base, const char* doc) {
  nb::exception<E> type(m, name, base);
  type.attr("__doc__") = doc;
  nb::register_exception_translator(set_text<E>, type.ptr());
  return type;
}

}  // namespace

NB_MODULE(_reel, m) {
  using namespace reel;
  using namespace reel::python;
  nb::set_leak_warnings(false);  // tensors that PyTorch still holds when the process ends are no leak
  m.doc() = "Tensors, ops, gradients, scan and cells of Reel.";
  // The exception that was registered last is tried first, so derived ones follow their base.
  const nb::object error =
      exception<Error>(m, "Error", PyExc_RuntimeError,
                       "Bad input: the op or setting, the rule, the values, the line of the call, and a hint.");
  exception<SettingError>(m, "SettingError", error,
                          "A setting with a value that it cannot have, or that does not exist.");
  exception<OutOfMemory>(m, "OutOfMemory", error, "Not enough memory.");
  exception<IndexingError>(m, "IndexingError", nb::make_tuple(error, nb::handle(PyExc_IndexError)),
                           "A key of x[key] that does not go with x. It is an IndexError, too.");
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
