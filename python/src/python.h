// What the bindings share: the caller's line, arguments as Python gives them, and docstrings.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "engine/autodiff/tape.h"
#include "engine/scan/scan.h"
#include "ops/ops.h"

namespace nb = nanobind;

namespace reel::python {

/// The line of the innermost Python frame outside of this package, and of installed libraries if there is one, for
/// error messages: "train.py:12".
Loc here();
/// Sets the folders of this package and of Python's own modules, which here() skips.
void set_folders(const std::string& package, const std::vector<std::string>& libraries);

/// A key of x[key] that does not go with x: an IndexError in Python, too, as NumPy's.
struct IndexingError : Error {
  IndexingError(const std::string& rule, const Loc& where) : Error("index", rule + " (" + str(where) + ")") {}
};

/// The comment above a function's declaration in Reel's headers; throws when there is none.
const char* doc(const char* name);

/// An argument that is a tensor or an array of another library, which is shared where that is possible; nothing if it
/// is neither.
std::optional<Tensor> as_tensor(nb::handle x) noexcept;
/// Whether a function that is differentiated has computed x: the gradient of such a value would not know that its
/// elements are overwritten, or written to another tensor.
bool recorded(const Tensor& x);
/// Throws Error if it is: no gradient goes through a change in place. The message calls it `what`.
void refuse_recorded(const char* op, const Tensor& x, std::string_view what);
/// What reel.tensor(x) makes: a copy, also of numbers and lists. Throws Error where that does.
Tensor made_by_tensor(nb::handle x);
/// The same as as_tensor for an operand of an op: of an array of another dtype it is a copy, as reel.tensor() makes it.
/// Throws Error where that does, and for a tensor of PyTorch that requires a gradient; OverflowError for an integer
/// that is no double.
std::optional<Tensor> as_operand(nb::handle x);
/// Throws OverflowError for an integer that is no double, as float(x) does.
void check_double(nb::handle x);
/// An argument that is a number: of Python, or a scalar of NumPy.
std::optional<double> as_number(nb::handle x) noexcept;

/// A dtype, or its name as Reel, NumPy and PyTorch write it.
struct DTypeLike {
  DType value = DType::f32;
};
/// The name of a dtype in NumPy: "float32".
const char* numpy_name(DType dtype);

/// The seed or the stream of random numbers.
struct Seed {
  std::uint64_t value = 0;
  operator std::uint64_t() const { return value; }
};

/// A number that an op holds constant, as an exponent. A tensor is taken for its value, but not while something is
/// recorded or traced: its gradient would be lost without a word.
struct Number {
  double value = 0;
  operator double() const { return value; }
};
/// A function of ops.h whose numbers are such.
template <auto f>
struct Numbered;
template <class R, class... Args, R (*f)(Args...)>
struct Numbered<f> {
  template <class A>
  using Taken = std::conditional_t<std::is_same_v<A, double>, Number, A>;
  static R call(Taken<Args>... arguments) { return f(arguments...); }
};

/// One of two arguments that meet. A complex number of Python takes the precision of the tensor that it meets, as a
/// real one does.
struct Side {
  Arg given;
  bool complex;
  /// It, in the precision of what it meets.
  Tensor beside(const Arg& other) const {
    const bool takes = complex && !other.is_number() && is_differentiable(other->dtype());
    return takes ? cast(given, complex_of(other->dtype())) : given.tensor();
  }
};
/// f(a, b) of such.
template <class F>
Tensor meeting(const Side& a, const Side& b, F&& f) {
  if (a.complex) return f(Arg(a.beside(b.given), a.given.where), b.given);
  return b.complex ? f(a.given, Arg(b.beside(a.given), b.given.where)) : f(a.given, b.given);
}
template <Tensor (*f)(Arg, Arg)>
Tensor of_both(const Side& a, const Side& b) {
  return meeting(a, b, f);
}

/// A type of this module with these fields, for the results of an op that has several.
nb::object named_tuple(nb::module_& m, const char* name, const char* fields);

/// The shape of these extents; throws Error with the name of the function that got them.
Shape shape_of(const char* function, const Axes& extents);

/// Calls a Python step with flat lists, of which it returns two: the next state, and outputs. Errors name the function.
/// It must outlive the result.
Step step_of(const char* function, const nb::callable& f);

/// Never returns on another thread than the one that ends the interpreter, once it does: taking the GIL then ends a
/// thread as an exception would, which no destructor may throw.
void wait_if_ending() noexcept;

/// Releases the GIL for a long call. Other threads of Python run meanwhile, and a loop over time ends when the handler
/// of a signal raises an exception, as that of Ctrl-C does.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  bool outer_;
  nb::gil_scoped_release gil_;
};

/// Releases the GIL for an op, but not while a step is traced, which computes nothing.
class GilRelease {
 public:
  GilRelease() {
    if (const Tape* tape = Tape::current(); !tape || tape->mode() == Tape::Mode::eager) gil_.emplace();
  }
  ~GilRelease() {
    if (gil_) wait_if_ending();
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  std::optional<nb::gil_scoped_release> gil_;
};
using Released = nb::call_guard<GilRelease>;

void bind_interrupt(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_array_api(nb::class_<Tensor>& tensor);
void bind_indexing(nb::class_<Tensor>& tensor);
void bind_explain(nb::module_& m);
void bind_elementwise(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_ops(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_linalg(nb::module_& m);
void bind_create(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_autodiff(nb::module_& m);
void bind_scan(nb::module_& m);
void bind_cells(nb::module_& m);
void bind_models(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_files(nb::module_& m);

}  // namespace reel::python

namespace nanobind::detail {

/// Functions that take a tensor take an array, too, by an implicit conversion, which signatures would not show.
template <>
struct type_caster<reel::Tensor> : type_caster_base<reel::Tensor> {
  static constexpr auto Name = io_name("Tensor | numpy.ndarray", "Tensor");
};

/// An op's argument: a tensor, an array, or a number, and the line of the Python code that passes it.
template <>
struct type_caster<reel::Arg> {
  using Value = reel::Arg;
  static constexpr auto Name = const_name("Tensor | float | typing.SupportsComplex | numpy.ndarray");
  template <class>
  using Cast = const reel::Arg&;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, std::uint32_t, cleanup_list*) {  // throws, so no caster of a container may use it
    reel::Tensor* tensor = nullptr;
    if (try_cast(source, tensor) && tensor) {
      value.emplace(*tensor, reel::python::here());
    } else if (const auto number = reel::python::as_number(source)) {
      value.emplace(*number, reel::python::here());
    } else {
      held = reel::python::as_operand(source);
      if (!held) return false;
      value.emplace(*held, reel::python::here());
    }
    return true;
  }
  operator const reel::Arg&() const { return *value; }

 private:
  std::optional<reel::Tensor> held;
  std::optional<reel::Arg> value;
};

/// The same, and whether it is a complex number of Python.
template <>
struct type_caster<reel::python::Side> : type_caster<reel::Arg> {
  using Value = reel::python::Side;
  template <class>
  using Cast = reel::python::Side;
  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) {
    complex = PyComplex_Check(source.ptr());
    return type_caster<reel::Arg>::from_python(source, flags, cleanup);
  }
  operator reel::python::Side() const { return {type_caster<reel::Arg>::operator const reel::Arg&(), complex}; }

 private:
  bool complex = false;
};

/// Axes and extents: one number or a sequence of them, also an array; None for none.
template <>
struct type_caster<std::vector<std::int64_t>> {
  NB_TYPE_CASTER(std::vector<std::int64_t>, const_name("int | collections.abc.Sequence[int] | numpy.ndarray"))
  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    value.clear();
    if (source.is_none()) return true;
    const auto add = [&](PyObject* item) {
      PyObject* const number = PyBool_Check(item) ? nullptr : PyNumber_Index(item);
      const long long n = number ? PyLong_AsLongLong(number) : -1;
      Py_XDECREF(number);
      const bool good = number && !PyErr_Occurred();
      PyErr_Clear();
      if (good) value.push_back(n);
      return good;
    };
    if (PyIndex_Check(source.ptr()) && !PySequence_Check(source.ptr())) return add(source.ptr());
    if (!PyTuple_Check(source.ptr()) && !PyList_Check(source.ptr()) &&
        !PyObject_HasAttrString(source.ptr(), "__array_interface__"))  // of NumPy
      return false;
    PyObject* const items = PySequence_Fast(source.ptr(), "a sequence is expected");
    if (!items) {
      PyErr_Clear();
      return false;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(items); ++i)
      good = add(PySequence_Fast_GET_ITEM(items, i));
    Py_DECREF(items);
    return good;
  }
  static handle from_cpp(const std::vector<std::int64_t>& source, rv_policy, cleanup_list*) noexcept {
    PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(source.size()));
    for (std::size_t i = 0; tuple && i < source.size(); ++i)
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(source[i]));
    return tuple;
  }
};

template <>
struct type_caster<reel::python::Seed> {
  NB_TYPE_CASTER(reel::python::Seed, const_name("int"))
  bool from_python(handle source, std::uint32_t, cleanup_list*);  // throws, so no caster of a container may use it
  static handle from_cpp(reel::python::Seed seed, rv_policy, cleanup_list*) noexcept {
    return PyLong_FromUnsignedLongLong(seed.value);
  }
};

template <>
struct type_caster<reel::python::Number> {
  NB_TYPE_CASTER(reel::python::Number, const_name("float"))
  bool from_python(handle source, std::uint32_t, cleanup_list*);  // throws, so no caster of a container may use it
};

template <>
struct type_caster<reel::python::DTypeLike> {
  NB_TYPE_CASTER(reel::python::DTypeLike, const_name("DType | str | type"))
  bool from_python(handle source, std::uint32_t, cleanup_list*);  // throws, so no caster of a container may use it
  static handle from_cpp(reel::python::DTypeLike, rv_policy, cleanup_list*) noexcept { return nullptr; }
};

}  // namespace nanobind::detail
