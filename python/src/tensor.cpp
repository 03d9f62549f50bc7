// reel.Tensor, and its elements as arrays of other libraries: shared where memory allows, by DLPack.
#include <nanobind/ndarray.h>

#include "python/src/python.h"

namespace reel::python {

namespace {

constexpr const char* numpy_names[] = {"float32", "float64", "complex64", "complex128", "int32", "bool"};

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  return dispatch(dtype, []<class T>(std::type_identity<T>) { return nb::dtype<T>(); });
}

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

/// An array of another library, and the function that got it, for error messages.
struct Source {
  nb::handle x;
  const char* function;
};

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

/// Shares the array's memory if it can be written, is contiguous, aligned, and on the host; copies it otherwise.
Tensor imported(const Source& source, bool copy) {
  const nb::object x = resolved(source.x);
  nb::ndarray<> writable;
  if (!copy && nb::try_cast(x, writable, false) && writable.device_type() == nb::device::cpu::value) {
    const Spec spec = spec_of(writable, source);
    const auto address = reinterpret_cast<std::uintptr_t>(writable.data());
    if (contiguous(writable, spec.shape) && address % size_of(spec.dtype) == 0 && spec.shape.numel() > 0)
      return adopt(writable, spec);
  }
  nb::ndarray<nb::ro> any;
  if (!nb::try_cast(x, any, false)) {
    if (nb::hasattr(nb::getattr(x, "dtype", nb::none()), "isnative")) refuse_dtype(source);  // of NumPy: other bytes
    fail(source.function, here(), "an array is expected, got {}", nb::type_name(x.type()).c_str());
  }
  if (any.device_type() != nb::device::cpu::value)
    fail(source.function, here(), "the array must be in the host's memory");
  return copied(any, source);
}

/// A tensor of PyTorch that requires a gradient would lose it here.
void refuse_gradient(const Source& source) {
  const nb::object required = nb::getattr(source.x, "requires_grad", nb::none());
  if (!required.is(Py_True)) return;
  const nb::object dtype = nb::getattr(source.x, "dtype"), shape = nb::getattr(source.x, "shape");
  fail(source.function, here(),
       "PyTorch's tensor requires a gradient, which would be lost: {}, shape {}. Hint: pass it as an argument to what "
       "reel.torch.function or reel.torch.wrap makes, or detach() it",
       nb::str(dtype).c_str(), nb::str(nb::tuple(shape)).c_str());
}

const Tensor& with_value(const Tensor& x, const char* what) {
  if (!x.concrete())
    fail(what, here(), "this tensor has no value: it stands for one while a program is traced. Hint: use reel.where");
  return x;
}

/// Throws Error for a value that the current tape has recorded: its gradient would not know of an assignment.
void refuse_recorded(const Tensor& x, const char* what) {
  const Tape* const tape = Tape::current();
  if (!tape || x.id() < tape->first_id()) return;
  for (std::size_t i = tape->size(); i-- > 0;) {
    for (const Tensor& out : tape->outputs(tape->node(i))) {
      if (out.id() == x.id())
        fail("assign", here(),
             "{} was computed in a function that is differentiated, and no gradient goes through assign. Hint: use the "
             "new value itself, or return it (has_aux=True) and assign it afterwards",
             what);
    }
  }
}

nb::object item(const Tensor& x, const char* what) {
  with_value(x, what);
  if (x.numel() != 1) fail(what, here(), "one element expected, shape is {}", x.shape().str());
  return dispatch(x.dtype(), [&]<class T>(std::type_identity<T>) -> nb::object {
    const T value = *x.data_as<T>();
    if constexpr (is_complex_type<T>)
      return nb::steal(PyComplex_FromDoubles(static_cast<double>(value.real()), static_cast<double>(value.imag())));
    else
      return nb::cast(value);
  });
}

template <class... Options>
nb::ndarray<Options...> exported(nb::handle self) {
  Tensor& x = nb::cast<Tensor&>(self);
  with_value(x, "numpy");
  std::array<std::size_t, Shape::max_rank> extents{};
  for (int i = 0; i < x.rank(); ++i) extents[static_cast<std::size_t>(i)] = static_cast<std::size_t>(x.dim(i));
  return nb::ndarray<Options...>(x.data(), static_cast<std::size_t>(x.rank()), extents.data(), self, nullptr,
                                 dlpack_dtype(x.dtype()), nb::device::cpu::value);
}

nb::object numpy(nb::handle self) { return nb::cast(exported<nb::numpy, nb::ro>(self)); }

/// As format() does for the element of a scalar; without a format, what str() gives.
nb::object formatted(nb::handle self, const std::string& spec) {
  if (spec.empty()) return nb::str(self);
  const Tensor& x = nb::cast<const Tensor&>(self);
  if (x.rank() > 0)
    fail("format", here(), "a format is for a scalar, got {} for {}. Hint: x.numpy()", spec, x.spec().str());
  return nb::module_::import_("builtins").attr("format")(item(x, "format"), spec);
}

/// A copy. Where a function is differentiated or traced, a tensor is never overwritten, and it is its own copy.
nb::object deep_copy(nb::handle self, nb::handle) {
  const bool own = !nb::cast<const Tensor&>(self).concrete() || Tape::current();
  return own ? nb::borrow(self) : nb::cast(imported({self, "deepcopy"}, true));
}

nb::object array(nb::handle self, nb::handle dtype, nb::handle copy) {
  nb::object shared = numpy(self);
  if (!dtype.is_none()) shared = shared.attr("astype")(dtype, nb::arg("copy") = false);
  return nb::cast<bool>(nb::bool_(copy)) ? shared.attr("copy")() : shared;
}

}  // namespace

const char* numpy_name(DType dtype) { return numpy_names[static_cast<int>(dtype)]; }

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

std::optional<Tensor> as_operand(nb::handle x) {
  if (!nb::isinstance<Tensor>(x)) refuse_gradient({x, "operand"});
  return as_tensor(x);
}

Shape shape_of(const char* function, const Axes& extents) {
  try {
    return Shape(extents);
  } catch (const RuleError& e) {
    fail(function, here(), "{}", e.rule);
  }
}

void bind_tensor(nb::module_& m) {
  nb::enum_<DType> dtype(m, "DType", "The type of a tensor's elements.");
  for (const DType d : all_dtypes) dtype.value(d == DType::boolean ? "boolean" : std::string(name_of(d)).c_str(), d);

  nb::class_<Tensor> tensor(
      m, "Tensor",
      "Elements of one dtype in a block of memory, row-major. A tensor is never changed by an op; "
      "assign() overwrites its elements.");
  tensor
      .def_prop_ro(
          "shape", [](const Tensor& x) { return Axes(x.shape().begin(), x.shape().end()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The extent of each axis.")
      .def_prop_ro("dtype", &Tensor::dtype, "The type of the elements.")
      .def_prop_ro("ndim", &Tensor::rank, "The number of axes.")
      .def_prop_ro("size", &Tensor::numel, "The number of elements.")
      .def_prop_ro("nbytes", &Tensor::bytes, "The size of the elements in bytes.")
      .def_prop_ro("concrete", &Tensor::concrete, "False for a tensor that stands for a value while a step is traced.")
      .def_prop_ro("version", &Tensor::version, "How often assign() changed the memory.")
      .def_prop_ro(
          "_storage", [](const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.storage()); },
          "What tensors that share memory have in common.")
      .def("numpy", &numpy, nb::sig("def numpy(self) -> numpy.ndarray"),
           "A read-only NumPy array that shares the elements.")
      .def("__array__", &array, nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none())
      .def(
          "__dlpack__",
          [](nb::handle self, const nb::kwargs& options) {
            nb::object source = nb::borrow(self);
            nb::dict rest;
            for (const auto [key, value] : options) {
              if (nb::cast<std::string>(key) != "copy")
                rest[key] = value;
              else if (value.is(Py_True))
                source = nb::cast(imported({self, "dlpack"}, true));
            }
            return nb::cast(exported<nb::array_api>(source)).attr("__dlpack__")(**rest);
          },
          "The elements as a DLPack capsule, which shares them; with copy=True, a copy of them.")
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); })
      .def(
          "item", [](const Tensor& x) { return item(x, "item"); }, "The only element, as a Python number.")
      .def(
          "tolist", [](nb::handle self) { return numpy(self).attr("tolist")(); }, "The elements in nested lists.")
      .def("__bool__", [](const Tensor& x) { return static_cast<bool>(nb::bool_(item(x, "bool"))); })
      .def("__float__", [](const Tensor& x) { return nb::float_(item(x, "float")); })
      .def("__int__", [](const Tensor& x) { return nb::int_(item(x, "int")); })
      .def("__complex__",
           [](const Tensor& x) {
             const nb::handle type = reinterpret_cast<PyObject*>(&PyComplex_Type);
             return type(item(x, "complex"));
           })
      .def(
          "assign",
          [](Tensor& x, const Tensor& source) {
            with_value(x, "assign"), with_value(source, "assign");
            if (!(source.spec() == x.spec()))
              fail("assign", here(), "{} does not take the place of {}", source.spec().str(), x.spec().str());
            refuse_recorded(x, "the tensor"), refuse_recorded(source, "the source");
            x.assign(source);
          },
          nb::arg("source"),
          "Overwrites the elements with those of a tensor of the same dtype and shape. No gradient goes through it: a "
          "function that is differentiated cannot assign to or from what it has computed.")
      .def("__repr__", [](const Tensor& x) { return "Tensor(" + x.str() + ")"; })
      .def("__format__", &formatted, nb::arg("spec"))
      .def("__deepcopy__", &deep_copy, nb::arg("memo"))
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(nb::module_::import_("reel").attr("tensor"), nb::make_tuple(numpy(self)));
           })
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; });
  tensor.attr("__array_priority__") = 1000;
  tensor.attr("__array_ufunc__") = nb::none();  // numpy_array + tensor is a tensor
  bind_indexing(tensor);
  bind_array_api(tensor);
  bind_elementwise(m, tensor);
  bind_ops(m, tensor);

  m.def(
      "from_dlpack",
      [](nb::handle x) {
        return refuse_gradient({x, "from_dlpack"}), imported({x, "from_dlpack"}, false);
      },
      nb::arg("x"),
      "A tensor that shares the memory of an array of another library (NumPy, PyTorch): any object with __dlpack__ or "
      "a buffer. Copies if the memory is read-only, not contiguous or not aligned. Throws Error for other dtypes and "
      "devices, and for a tensor of PyTorch that requires a gradient.");
  m.def("_shared", [](nb::handle x) { return imported({x, "asarray"}, false); });
  m.def("_copied", [](nb::handle x) { return imported({x, "tensor"}, true); });
  m.def("_refuse_gradient", [](const char* function, nb::handle x) { refuse_gradient({x, function}); });
  m.def("_numpy_name", [](DType d) { return numpy_name(d); });
  m.def("_dtype", [](DTypeLike d) { return d.value; });
}

}  // namespace reel::python

bool nanobind::detail::type_caster<reel::python::DTypeLike>::from_python(handle source, std::uint32_t,
                                                                         cleanup_list*) noexcept {
  using namespace reel;
  DType found;
  if (try_cast(source, found, false)) {
    value = {found};
    return true;
  }
  PyObject* text = nullptr;
  if (PyUnicode_Check(source.ptr()))
    text = Py_NewRef(source.ptr());
  else if (source.is(reinterpret_cast<PyObject*>(&PyFloat_Type)))
    text = PyUnicode_FromString("float64");
  else if (source.is(reinterpret_cast<PyObject*>(&PyBool_Type)))
    text = PyUnicode_FromString("bool");
  else if (PyType_Check(source.ptr()))  // numpy.float32
    text = PyObject_GetAttrString(source.ptr(), "__name__");
  else if (PyObject_HasAttrString(source.ptr(), "itemsize"))  // numpy.dtype, torch.dtype
    text = PyObject_Str(source.ptr());
  const char* name = text ? PyUnicode_AsUTF8(text) : nullptr;
  bool good = false;
  if (name) {
    std::string_view wanted = name;
    if (wanted.starts_with("torch.")) wanted.remove_prefix(6);
    for (const DType d : all_dtypes) {
      if (wanted == name_of(d) || wanted == python::numpy_name(d)) value = {d}, good = true;
    }
  }
  PyErr_Clear();
  Py_XDECREF(text);
  return good;
}
