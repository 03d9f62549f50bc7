// reel.Tensor, and its elements as arrays of other libraries, which share them by DLPack.
#include <algorithm>
#include <limits>

#include "python/src/arrays.h"

namespace reel::python {

/// An array of another library, of which a function that takes a tensor gets a copy. One of PyTorch that requires a
/// gradient is none, as the copy would lose it.
struct ForeignArray {};

/// Memory for a tensor that __init__ makes, which nanobind knows by the name of the type alone.
struct Unmade {
  Tensor* place = nullptr;
};

}  // namespace reel::python

template <>
struct nanobind::detail::type_caster<reel::python::ForeignArray> {
  NB_TYPE_CASTER(reel::python::ForeignArray, const_name("numpy.ndarray"))
  bool from_python(handle x, std::uint32_t, cleanup_list*) noexcept {
    return ndarray_check(x) && !getattr(x, "requires_grad", none()).is(Py_True);
  }
};

template <>
struct nanobind::detail::type_caster<reel::python::Unmade> {
  NB_TYPE_CASTER(reel::python::Unmade, const_name<reel::Tensor>())
  bool from_python(handle x, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<reel::Tensor> self;
    if (!self.from_python(x, flags, cleanup)) return false;
    value = {self.operator reel::Tensor*()};
    return true;
  }
};

namespace reel::python {

namespace {

/// Whether a program is traced, such as the step of a scan: its tensors have no values.
bool traces() {
  const Tape* const tape = Tape::current();
  return tape && tape->mode() == Tape::Mode::symbolic;
}

const Tensor& with_value(const Tensor& x, const char* what) {
  if (x.concrete()) return x;
  if (!traces()) fail(what, here(), "this tensor has no value: it belongs to a step that has ended or another thread");
  fail(what, here(), "this tensor has no value: it stands for one while a program is traced. Hint: {}",
       std::string_view(what) == "bool" ? "use reel.where" : "compute with the tensor itself, by Reel's functions");
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

int owners(const Tensor& x) {
  const Storage* const memory = x.storage();
  if (!memory) return 0;
  return memory->backend == &x.backend() ? memory->references.load() : std::numeric_limits<int>::max();
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

/// A copy. A value that has a gradient, or is used in a traced step, is never overwritten: it is its own copy.
nb::object copy(nb::handle self) {
  const Tensor& x = nb::cast<const Tensor&>(self);
  return !x.concrete() || traces() || recorded(x) ? nb::borrow(self) : nb::cast(imported({self, "copy"}, true));
}

/// The method of Tensor that is an operator between an array of NumPy and a tensor, and the one with both exchanged.
struct Operator {
  std::string_view ufunc;
  const char *method, *reversed;
  bool compares = false;
};
constexpr Operator operators[] = {
    {"add", "__add__", "__radd__"},
    {"subtract", "__sub__", "__rsub__"},
    {"multiply", "__mul__", "__rmul__"},
    {"divide", "__truediv__", "__rtruediv__"},
    {"floor_divide", "__floordiv__", "__rfloordiv__"},
    {"remainder", "__mod__", "__rmod__"},
    {"power", "__pow__", "__rpow__"},
    {"matmul", "__matmul__", "__rmatmul__"},
    {"bitwise_and", "__and__", "__rand__"},
    {"bitwise_or", "__or__", "__ror__"},
    {"bitwise_xor", "__xor__", "__rxor__"},
    {"less", "__lt__", "__gt__", true},
    {"less_equal", "__le__", "__ge__", true},
    {"greater", "__gt__", "__lt__", true},
    {"greater_equal", "__ge__", "__le__", true},
    {"equal", "__eq__", "__eq__", true},
    {"not_equal", "__ne__", "__ne__", true},
};

/// What NumPy calls for np.exp(tensor), and for array + tensor. The operators are those of Tensor; the others would
/// give arrays, which have no gradient, so they are refused.
nb::object array_ufunc(nb::handle, nb::handle ufunc, const std::string& method, const nb::args& in,
                       const nb::kwargs& options) {
  const auto name = nb::cast<std::string>(ufunc.attr("__name__"));
  const auto found =
      std::find_if(std::begin(operators), std::end(operators), [&](const Operator& o) { return o.ufunc == name; });
  if (found == std::end(operators) || method != "__call__" || in.size() != 2 || options.size() > 0) {
    constexpr std::pair<std::string_view, const char*> others[] = {
        {"absolute", "abs"}, {"isfinite", "is_finite"}, {"isinf", "is_inf"}, {"isnan", "is_nan"},
        {"log10", "log"},    {"log2", "log"},           {"negative", "neg"}};
    std::string ours = name;
    for (const auto& [theirs, known_as] : others) {
      if (name == theirs) ours = known_as;
    }
    if (options.contains("out"))
      fail(name.c_str(), here(),
           "NumPy cannot write into an array what it computes of a tensor, as for array += tensor. "
           "Hint: array = array + tensor, or x.numpy(), which has no gradient");
    const bool known = method == "__call__" && nb::hasattr(nb::module_::import_("reel"), ours.c_str());
    fail(name.c_str(), here(), "NumPy's function takes no tensor of Reel. Hint: {}x.numpy(), which has no gradient",
         known ? "reel." + ours + ", or " : "");
  }
  const bool left = nb::isinstance<Tensor>(in[0]);
  nb::object other = in[left ? 1 : 0];
  // A scalar of NumPy is an array here where it is compared.
  if (found->compares && !nb::isinstance<Tensor>(other) && nb::cast<int>(nb::getattr(other, "ndim", nb::int_(1))) == 0)
    other = other.attr("__getitem__")(nb::tuple());
  nb::object y = in[left ? 0 : 1].attr(left ? found->method : found->reversed)(other);
  if (!y.is(Py_NotImplemented)) return y;
  if (name == "equal" || name == "not_equal") return nb::bool_(name == "not_equal");  // as between any two objects
  throw nb::type_error(fmt::format("unsupported operand types for {}: '{}' and '{}'", name,
                                   nb::type_name(in[0].type()).c_str(), nb::type_name(in[1].type()).c_str())
                           .c_str());
}

nb::object array(nb::handle self, nb::handle dtype, nb::handle copy) {
  const nb::object shared = numpy(self);
  const nb::object as = dtype.is_none() ? shared : shared.attr("astype")(dtype, nb::arg("copy") = false);
  if (copy.is(Py_False) && !as.is(shared))
    throw nb::value_error(
        fmt::format("another dtype needs a copy: {}; got copy=False", nb::str(dtype).c_str()).c_str());
  return copy.is(Py_True) ? as.attr("copy")() : as;
}

}  // namespace

bool recorded(const Tensor& x) {
  const Tape* const tape = Tape::current();
  if (!tape || x.id() < tape->first_id()) return false;
  for (std::size_t i = tape->size(); i-- > 0;) {
    for (const Tensor& out : tape->outputs(tape->node(i))) {
      if (out.id() == x.id()) return true;
    }
  }
  return false;
}

void refuse_recorded(const char* op, const Tensor& x, std::string_view what) {
  if (recorded(x))
    fail(op, here(),
         "{} was computed in a function that is differentiated, and no gradient goes through a change in place. Hint: "
         "compute the new value by ops, or return it (has_aux=True) and make the change afterwards",
         what);
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

  // A dtype equals its name, and has its hash. The enumeration calls bool "boolean", a word that Python does not have.
  dtype.attr("__eq__") = nb::cpp_function(
      [](nb::handle self, nb::handle other) -> nb::object {
        if (!PyUnicode_Check(other.ptr())) return self.is(other) ? nb::bool_(true) : nb::borrow(Py_NotImplemented);
        return nb::bool_(nb::cast<std::string>(other) == name_of(nb::cast<DType>(self)));
      },
      nb::name("__eq__"), nb::scope(dtype), nb::is_method(), nb::arg("other").none(),
      nb::sig("def __eq__(self, other: object) -> bool"));
  dtype.attr("__hash__") =
      nb::cpp_function([](DType self) { return nb::hash(nb::str(std::string(name_of(self)).c_str())); },
                       nb::name("__hash__"), nb::scope(dtype), nb::is_method());

  nb::class_<Tensor> tensor(
      m, "Tensor", nb::is_weak_referenceable(),
      "Elements of one dtype in a block of memory, row-major. A tensor is never changed by an op; "
      "assign() overwrites its elements.");
  tensor
      .def(
          "__init__", [](Unmade self, nb::handle values) { new (self.place) Tensor(made_by_tensor(values)); },
          nb::arg("values"), nb::sig("def __init__(self, values: object) -> None"), "The same as reel.tensor(values).")
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
      .def_prop_ro(
          "_owners", [](const Tensor& x) { return owners(x); },
          "How many tensors hold this memory, those on tapes included; many where another library has it.")
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
          "item", [](const Tensor& x) { return item(x, "item"); }, nb::sig("def item(self) -> typing.Any"),
          "The only element, as a Python number.")
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
              fail("assign", here(), "{} cannot replace {}", source.spec().str(), x.spec().str());
            refuse_recorded("assign", x, "the tensor"), refuse_recorded("assign", source, "the source");
            x.assign(source);
          },
          nb::arg("source"),
          "Overwrites the elements with those of a tensor of the same dtype and shape. No gradient goes through it: a "
          "function that is differentiated cannot assign to or from what it has computed.")
      .def("__repr__", [](const Tensor& x) { return "Tensor(" + x.str() + ")"; })
      .def("__format__", &formatted, nb::arg("spec"))
      .def("__copy__", &copy)
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return copy(self); }, nb::arg("memo"))
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(nb::module_::import_("reel").attr("tensor"), nb::make_tuple(numpy(self)));
           })
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; });
  nb::implicitly_convertible<ForeignArray, Tensor>();
  tensor.attr("__array_priority__") = 1000;
  tensor.def("__array_ufunc__", &array_ufunc, nb::arg("ufunc"), nb::arg("method"), nb::arg("inputs"),
             nb::arg("options"));
  bind_indexing(tensor);
  bind_array_api(tensor);
  bind_elementwise(m, tensor);
  bind_ops(m, tensor);
  // The last method, since in the stub its name hides the module from those after it.
  tensor.def("numpy", &numpy, nb::sig("def numpy(self) -> numpy.ndarray"),
             "A read-only NumPy array that shares the elements. No gradient goes through it: in a function that is "
             "differentiated, what is computed from the array counts as constant.");

  m.def(
      "from_dlpack",
      [](nb::handle x) {
        if (nb::isinstance<Tensor>(x)) return nb::cast<Tensor>(x);  // with its gradient
        refuse_gradient({x, "from_dlpack"});
        if (nb::hasattr(x, "filled"))  // NumPy's masked arrays
          nb::module_::import_("reel._create").attr("_refuse_masked")(x, "from_dlpack");
        return imported({x, "from_dlpack"}, false);
      },
      nb::arg("x").none(),
      "A tensor that shares the memory of an array of another library (NumPy, PyTorch): any object with __dlpack__ or "
      "a buffer. Copies if the memory is read-only, not contiguous or not aligned. Throws Error for other dtypes and "
      "devices, for masked elements, and for a tensor of PyTorch that requires a gradient; what __dlpack__ raises "
      "passes through.");
  m.def("_shared", [](nb::handle x) { return imported({x, "asarray"}, false); });
  m.def("_copied", [](nb::handle x) { return imported({x, "tensor"}, true); });
  m.def("_refuse_gradient", [](const char* function, nb::handle x) { refuse_gradient({x, function}); });
  m.def("_numpy_name", [](DType d) { return numpy_name(d); });
  m.def("_dtype", [](DTypeLike d) { return d.value; });
  m.def("_recording", [] { return Tape::current() != nullptr; });
  m.def("_recorded", [](const Tensor& x) { return !x.concrete() || recorded(x); });
}

}  // namespace reel::python
