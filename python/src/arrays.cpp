// Arrays of other libraries as tensors, and the other way: shared where memory allows, by DLPack.
#include "python/src/arrays.h"

#include <cstring>

namespace reel::python {

namespace {

constexpr const char* numpy_names[] = {"float32", "float64", "complex64", "complex128", "int32", "bool"};

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype wanted) {
  for (const DType d : all_dtypes) {
    if (dlpack_dtype(d) == wanted) return d;
  }
  return std::nullopt;
}

/// Memory of another library: its owner is released with the last tensor in it.
struct Adopted : Storage {
  nb::ndarray<> owner;
};

/// The backend that such storage returns to. Kernels never see it: the tensors' own backend is the CPU.
class Adopter : public Backend {
 public:
  std::string name() const override { return "python"; }
  Storage* allocate(std::size_t) override { unsupported("allocate"); }
  void release(Storage* storage) override {
    if (!Py_IsInitialized()) return;  // the interpreter is gone, and the owner with it
    const nb::gil_scoped_acquire gil;
    delete static_cast<Adopted*>(storage);
  }
  void read(void*, const void*, std::size_t) override { unsupported("read"); }
  void write(void*, const void*, std::size_t) override { unsupported("write"); }
};

Tensor adopt(const nb::ndarray<>& array, const Spec& spec) {
  static Adopter& adopter = *new Adopter;
  auto* memory = new Adopted;
  memory->owner = array;
  Tensor out = Tensor::borrow(*memory, static_cast<std::byte*>(array.data()), spec);
  memory->backend = &adopter;
  --memory->references;  // that of borrow(), so that the last tensor releases it
  return out;
}

[[noreturn]] void refuse_dtype(const Source& source) {
  const nb::object dtype = nb::getattr(source.x, "dtype", nb::none());
  fail(source.function, here(), "elements are f32, f64, c64, c128, i32 or bool, got {}. Hint: convert them first",
       nb::str(dtype).c_str());
}

template <class Array>
Spec spec_of(const Array& array, const Source& source) {
  const std::optional<DType> dtype = dtype_of_dlpack(array.dtype());
  if (!dtype) refuse_dtype(source);
  if (array.ndim() > Shape::max_rank)
    fail(source.function, here(), "at most {} axes, got {}", Shape::max_rank, array.ndim());
  std::array<std::int64_t, Shape::max_rank> extents{};
  for (std::size_t i = 0; i < array.ndim(); ++i) extents[i] = static_cast<std::int64_t>(array.shape(i));
  return {*dtype, Shape(std::span<const std::int64_t>(extents.data(), array.ndim())), &backend()};
}

template <class Array>
bool contiguous(const Array& array, const Shape& shape) {
  std::int64_t stride = 1;
  for (int i = shape.rank(); i-- > 0;) {
    if (shape[i] > 1 && array.stride(static_cast<std::size_t>(i)) != stride) return false;
    stride *= shape[i];
  }
  return true;
}

template <class Array>
Tensor copied(const Array& array, const Source& source) {
  Tensor out = Tensor::empty(spec_of(array, source));
  StridedLoop<2> loop;
  std::int64_t rest = out.numel();
  for (int i = 0; i < out.rank(); ++i) {
    rest = out.dim(i) ? rest / out.dim(i) : 0;
    loop.push(out.dim(i), {array.stride(static_cast<std::size_t>(i)), rest});
  }
  if (out.numel() > 0) out.backend().copy({out.dtype(), loop, array.data(), out.data()});
  return out;
}

/// PyTorch marks the results of conj() and imag instead of computing them, which DLPack cannot say.
nb::object resolved(nb::handle x) {
  if (!nb::hasattr(x, "resolve_conj")) return nb::borrow(x);
  return x.attr("resolve_conj")().attr("resolve_neg")();
}

/// A view of the object's buffer, if it has one. The view has strides; some buffers lack them, and nanobind reads them.
nb::object viewed(const nb::object& x) {
  if (!PyObject_CheckBuffer(x.ptr())) return x;
  PyObject* const view = PyMemoryView_FromObject(x.ptr());
  if (!view) throw nb::python_error();
  return nb::steal(view);
}

/// The capsule that an array's __dlpack__ hands out, or a view of its buffer if it has that alone. nanobind takes a
/// capsule once, but would take what __dlpack__ returns however often it is the same.
nb::object exchanged(const Source& source) {
  nb::object x = resolved(source.x);
  if (nb::hasattr(x, "__dlpack__")) {
    const nb::object give = x.attr("__dlpack__");
    try {
      try {
        x = give(nb::arg("max_version") = nb::make_tuple(1, 0));  // the one that can say "read-only"
      } catch (nb::python_error& e) {
        if (!e.matches(PyExc_TypeError)) throw;
        x = give();  // from before there were versions
      }
    } catch (nb::python_error&) {
      if (!PyObject_CheckBuffer(x.ptr())) throw;
      return viewed(x);
    }
  } else if (!PyCapsule_CheckExact(x.ptr())) {
    return viewed(x);
  }
  if (!PyCapsule_IsValid(x.ptr(), "dltensor") && !PyCapsule_IsValid(x.ptr(), "dltensor_versioned"))
    fail(source.function, here(),
         "an unused DLPack capsule is expected, {} gives none. Hint: __dlpack__ makes a new "
         "one at each call",
         nb::type_name(source.x.type()).c_str());
  return x;
}

/// Arrays of JAX never change, but their capsules do not say so.
bool never_changes(nb::handle x) {
  const nb::object module = nb::getattr(x.type(), "__module__", nb::none());
  return nb::isinstance<nb::str>(module) && std::string_view(nb::str(module).c_str()).starts_with("jax");
}

}  // namespace

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  return dispatch(dtype, []<class T>(std::type_identity<T>) { return nb::dtype<T>(); });
}

const char* numpy_name(DType dtype) { return numpy_names[static_cast<int>(dtype)]; }

Tensor imported(const Source& source, bool copy) {
  copy = copy || never_changes(source.x);
  const nb::object x = exchanged(source);
  nb::ndarray<> writable;
  if (!copy && nb::try_cast(x, writable, false) && writable.device_type() == nb::device::cpu::value) {
    const Spec spec = spec_of(writable, source);
    const auto address = reinterpret_cast<std::uintptr_t>(writable.data());
    if (contiguous(writable, spec.shape) && address % size_of(spec.dtype) == 0 && spec.shape.numel() > 0)
      return adopt(writable, spec);
  }
  nb::ndarray<nb::ro> any(writable);  // a capsule is taken once
  if (!any.is_valid() && !nb::try_cast(x, any, false)) {
    if (nb::hasattr(nb::getattr(source.x, "dtype", nb::none()), "isnative"))
      refuse_dtype(source);  // NumPy: other bytes
    fail(source.function, here(), "an array is expected, got {}", nb::type_name(source.x.type()).c_str());
  }
  if (any.device_type() != nb::device::cpu::value)
    fail(source.function, here(), "the array must be in the host's memory");
  return copied(any, source);
}

void refuse_gradient(const Source& source) {
  const nb::object required = nb::getattr(source.x, "requires_grad", nb::none());
  if (!required.is(Py_True)) return;
  const nb::object dtype = nb::getattr(source.x, "dtype"), shape = nb::getattr(source.x, "shape");
  fail(source.function, here(),
       "PyTorch's tensor requires a gradient, which would be lost: {}, shape {}. Hint: pass it as an argument to what "
       "reel.torch.function or reel.torch.wrap makes, or detach() it",
       nb::str(dtype).c_str(), nb::str(nb::tuple(shape)).c_str());
}

void check_double(nb::handle x) {
  if (PyLong_Check(x.ptr()) && PyLong_AsDouble(x.ptr()) == -1 && PyErr_Occurred()) throw nb::python_error();
}

std::optional<double> as_number(nb::handle x) noexcept {
  PyObject* const p = x.ptr();
  if (PyFloat_Check(p)) return PyFloat_AS_DOUBLE(p);
  if (nb::isinstance<Tensor>(x)) return std::nullopt;
  const bool whole = PyLong_CheckExact(p) || PyBool_Check(p);  // not asked for attributes: one that lacks is slow
  const bool scalar = !whole && PyObject_HasAttrString(p, "__array_interface__") && !PySequence_Check(p);  // of NumPy
  if (!whole && ((!PyLong_Check(p) && !scalar) || PyObject_HasAttrString(p, "__dlpack__"))) return std::nullopt;
  if (PyObject* const imaginary = scalar ? PyObject_GetAttrString(p, "imag") : nullptr) {
    const bool complex = PyComplex_Check(imaginary) || PyObject_IsTrue(imaginary) != 0;
    Py_DECREF(imaginary);
    if (complex) return std::nullopt;
  }
  const double value = PyFloat_AsDouble(p);
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return value;
}

std::optional<Tensor> as_tensor(nb::handle x) noexcept {
  try {
    if (Tensor* tensor = nullptr; nb::try_cast(x, tensor) && tensor) return *tensor;
    if (PyComplex_Check(x.ptr()))
      return Tensor::full({}, {PyComplex_RealAsDouble(x.ptr()), PyComplex_ImagAsDouble(x.ptr())}, DType::c128);
    if (!nb::ndarray_check(x)) return std::nullopt;
    return imported({x, "asarray"}, false);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

Tensor made_by_tensor(nb::handle x) { return nb::cast<Tensor>(nb::module_::import_("reel").attr("tensor")(x)); }

std::optional<Tensor> as_operand(nb::handle x) {
  if (nb::isinstance<Tensor>(x)) return as_tensor(x);
  check_double(x);
  refuse_gradient({x, "operand"});
  if (nb::hasattr(x, "filled")) return made_by_tensor(x);  // NumPy's masked arrays: an error if elements are masked
  std::optional<Tensor> shared = as_tensor(x);
  if (shared || !nb::ndarray_check(x) || !nb::hasattr(x, "dtype")) return shared;
  const nb::str kind(nb::getattr(x.attr("dtype"), "kind", nb::str("f")));
  if (!std::strchr("iufcb", *kind.c_str())) return std::nullopt;  // texts, say, which equal no tensor
  return made_by_tensor(x);                                       // of int64 or float16, say, or an error
}

}  // namespace reel::python

bool nanobind::detail::type_caster<reel::python::Number>::from_python(handle source, std::uint32_t, cleanup_list*) {
  using namespace reel;
  if (const Tensor* tensor = nullptr; try_cast(source, tensor) && tensor && Tape::current())
    fail("number", python::here(),
         "this argument is a number, got a tensor, {}, whose gradient would be lost. Hint: write the function with ops "
         "of tensors (pow(x, a), where(x > 0, x, a * x)), or float(x) for a constant",
         tensor->spec().str());
  const double number = PyFloat_AsDouble(source.ptr());
  if (number == -1 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) throw python_error();
    PyErr_Clear();
    return false;
  }
  value = {number};
  return true;
}

bool nanobind::detail::type_caster<reel::python::DTypeLike>::from_python(handle source, std::uint32_t, cleanup_list*) {
  using namespace reel;
  DType found;
  if (try_cast(source, found, false)) {
    value = {found};
    return true;
  }
  std::string name;
  if (source.is(reinterpret_cast<PyObject*>(&PyFloat_Type)))
    name = "float64";
  else if (source.is(reinterpret_cast<PyObject*>(&PyComplex_Type)))
    name = "complex128";
  else if (PyType_Check(source.ptr()))  // bool, numpy.float32
    name = nb::str(source.attr("__name__")).c_str();
  else if (PyUnicode_Check(source.ptr()) || nb::hasattr(source, "itemsize"))  // numpy.dtype, torch.dtype
    name = nb::str(source).c_str();
  std::string_view wanted = name;
  if (wanted.starts_with("torch.")) wanted.remove_prefix(6);
  if (wanted == "bool_" || wanted == "boolean") wanted = "bool";  // numpy.bool_, before NumPy 2; our DType's name
  for (const DType d : all_dtypes) {
    if (wanted == name_of(d) || wanted == python::numpy_name(d)) {
      value = {d};
      return true;
    }
  }
  const bool whole = wanted.starts_with("int") || wanted.starts_with("uint");
  fail("dtype", python::here(), "f32, f64, c64, c128, i32 or bool is expected, got {}{}",
       name.empty() ? nb::repr(source).c_str() : name.c_str(), whole ? ". Hint: i32" : "");
}
