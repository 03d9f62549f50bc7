// Elementwise ops: the unary ones from the list of functors, the binary ones, and Python's operators.
#include "ops/told_as.h"
#include "python/src/integers.h"
#include "python/src/python.h"

namespace reel::python {

namespace {

using namespace nb::literals;
using BinaryOp = Tensor (*)(Arg, Arg);

// Errors name the function that the user called: a + 1 is computed by affine, and a > b by b < a.
Tensor add(Arg a, Arg b) {
  return told_as("add", "", {&a, &b}, [&] { return a + b; });
}
Tensor subtract(Arg a, Arg b) {
  return told_as("subtract", "", {&a, &b}, [&] { return a - b; });
}
Tensor multiply(Arg a, Arg b) {
  return told_as("multiply", "", {&a, &b}, [&] { return a * b; });
}
Tensor divide(Arg a, Arg b) {
  return told_as("divide", "", {&a, &b}, [&] { return a / b; });
}
Tensor less(Arg a, Arg b) { return a < b; }
Tensor less_equal(Arg a, Arg b) { return a <= b; }
Tensor greater(Arg a, Arg b) {
  return told_as("greater", "", {&a, &b}, [&] { return a > b; });
}
Tensor greater_equal(Arg a, Arg b) {
  return told_as("greater_equal", "", {&a, &b}, [&] { return a >= b; });
}
Tensor product(Arg a, Arg b) { return matmul(a, b); }

Tensor invert(Arg x) { return x->dtype() == DType::i32 ? affine(x, -1, -1) : logical_not(x); }

/// Of integers as ** has them.
Tensor power_of(Arg x, Number exponent) {
  if (x.tensor("power").dtype() != DType::i32) return power(x, exponent);
  return told_as("power", "pow", [&] { return raise(x, {exponent, x.where}); });
}

/// A function of a tensor, or of a number, which is a scalar in f32 then.
template <Tensor (*f)(Arg)>
Tensor of_any(Arg x) {
  return x.is_number() ? f({Tensor::full({}, x.number()), x.where}) : f(x);
}

/// An operand with the precision of the more precise one of both.
Tensor promoted(const Tensor& x, DType other) {
  const bool widens = is_differentiable(x.dtype()) && is_differentiable(other) && real_of(other) == DType::f64;
  return widens ? cast(x, is_complex(x.dtype()) ? DType::c128 : DType::f64) : x;
}

/// Python would repeat a sequence as often as an i32 tensor of one element says, which __index__ makes an integer.
void refuse_repetition(nb::handle other) {
  PyObject* const p = other.ptr();
  const bool list = PyList_Check(p) || PyTuple_Check(p);
  if (!list && !PyUnicode_Check(p) && !PyBytes_Check(p) && !PyByteArray_Check(p)) return;
  throw nb::type_error(fmt::format("*: a tensor or a number is expected, got a {}{}",
                                   nb::type_name(other.type()).c_str(), list ? ". Hint: reel.tensor([...])" : "")
                           .c_str());
}

/// An operator of Python. Precisions promote as NumPy's do; a complex number takes that of the tensor, as a real one.
template <BinaryOp op, bool reversed = false>
nb::object apply_operator(const Tensor& self, nb::handle other) {
  std::optional<Tensor> tensor;
  const std::optional<double> number = as_number(other);
  if (!number) tensor = as_operand(other);
  if (tensor && PyComplex_Check(other.ptr()) && is_differentiable(self.dtype()))
    tensor = cast(*tensor, complex_of(self.dtype()));
  if constexpr (op == &multiply) {
    if (!number && !tensor) refuse_repetition(other);
  }
  if (!number && !tensor) return nb::borrow(Py_NotImplemented);
  const Loc where = here();
  Tensor left = self;
  if (tensor && tensor->dtype() != self.dtype()) {
    left = promoted(self, tensor->dtype());
    tensor = promoted(*tensor, self.dtype());
    if constexpr (op == &product) {  // the others take real beside complex
      if (is_complex(tensor->dtype()) && is_floating(left.dtype())) left = cast(left, tensor->dtype());
      if (is_complex(left.dtype()) && is_floating(tensor->dtype())) tensor = cast(*tensor, left.dtype());
    }
  }
  const Arg a(left, where), b = number ? Arg(*number, where) : Arg(*tensor, where);
  Tensor y;
  {
    const GilRelease released;
    y = reversed ? op(b, a) : op(a, b);
  }
  return nb::cast(std::move(y));
}

}  // namespace

void bind_elementwise(nb::module_& m, nb::class_<Tensor>& tensor) {
#define REEL_BIND(F, f)                                     \
  m.def(#f, &of_any<&reel::f>, "x"_a, Released(), doc(#f)); \
  tensor.def(#f, static_cast<Tensor (*)(Arg)>(&reel::f), Released(), doc(#f));
  REEL_UNARY_FUNCTIONS(REEL_BIND)
  for (const auto& [name, f] :
       std::initializer_list<std::pair<const char*, Tensor (*)(Arg)>>{{"conj", &of_any<&reel::conj>},
                                                                      {"imag", &of_any<&reel::imag>},
                                                                      {"real", &of_any<&reel::real>},
                                                                      {"angle", &of_any<&reel::angle>}}) {
    m.def(name, f, "x"_a, Released(), doc(name));
    tensor.def(name, f, Released(), doc(name));
  }
  m.def("affine", &Numbered<&affine>::call, "x"_a, "scale"_a, "shift"_a, Released(), doc("affine"));
  m.def("leaky_relu", &Numbered<&leaky_relu>::call, "x"_a, "slope"_a = 0.01, Released(), doc("leaky_relu"));
  m.def("elu", &Numbered<&elu>::call, "x"_a, "alpha"_a = 1.0, Released(), doc("elu"));
  m.def("clamp", &Numbered<&clamp>::call, "x"_a, "low"_a, "high"_a, Released(), doc("clamp"));
  m.def("power", &power_of, "x"_a, "exponent"_a, Released(), doc("power"));
  m.def("scale_gradient", &Numbered<&scale_gradient>::call, "x"_a, "factor"_a, Released(), doc("scale_gradient"));
  m.def("stop_gradient", &stop_gradient, "x"_a, Released(), doc("stop_gradient"));

  m.def("add", &of_both<&add>, "a"_a, "b"_a, Released(), "a + b; shapes broadcast.");
  m.def("subtract", &of_both<&subtract>, "a"_a, "b"_a, Released(), "a - b; shapes broadcast.");
  m.def("multiply", &of_both<&multiply>, "a"_a, "b"_a, Released(), "a b for each element; shapes broadcast.");
  m.def("divide", &of_both<&divide>, "a"_a, "b"_a, Released(), "a / b; shapes broadcast.");
  m.def("less", &less, "a"_a, "b"_a, Released(), "a < b for each element: bool.");
  m.def("less_equal", &less_equal, "a"_a, "b"_a, Released(), "a <= b for each element: bool.");
  m.def("greater", &greater, "a"_a, "b"_a, Released(), "a > b for each element: bool.");
  m.def("greater_equal", &greater_equal, "a"_a, "b"_a, Released(), "a >= b for each element: bool.");
  m.def("pow", &of_both<&raise>, "a"_a, "b"_a, Released(), doc("pow"));
  m.def("remainder", &modulo, "a"_a, "b"_a, Released(), doc("remainder"));
#define REEL_BIND_BINARY(f) m.def(#f, &reel::f, "a"_a, "b"_a, Released(), doc(#f));
  REEL_BIND_BINARY(atan2)
  REEL_BIND_BINARY(hypot)
  REEL_BIND_BINARY(complex)
  REEL_BIND_BINARY(polar)
  REEL_BIND_BINARY(relu_backward)
  REEL_BIND_BINARY(tanh_backward)
  REEL_BIND_BINARY(sigmoid_backward)
  REEL_BIND_BINARY(maximum)
  REEL_BIND_BINARY(minimum)
  REEL_BIND_BINARY(logical_and)
  REEL_BIND_BINARY(logical_or)
  REEL_BIND_BINARY(logical_xor)
  m.def("equal", &of_both<&reel::equal>, "a"_a, "b"_a, Released(), doc("equal"));
  m.def("not_equal", &of_both<&reel::not_equal>, "a"_a, "b"_a, Released(), doc("not_equal"));
  m.def(
      "modrelu",
      [](Arg z, Arg b, double inside, double shift, double divide) {
        return modrelu(z, b, {inside, shift, divide});
      },
      "z"_a, "b"_a, nb::kw_only(), "inside"_a = 0.0, "shift"_a = 0.0, "divide"_a = 0.0, Released(), doc("modrelu"));

#define REEL_OPERATOR(name, f)                                                   \
  tensor.def("__" #name "__", &apply_operator<&f>, "other"_a, nb::is_operator(), \
             nb::sig("def __" #name "__(self, other: object) -> Tensor"));
#define REEL_REVERSED(name, f)                                                          \
  tensor.def("__r" #name "__", &apply_operator<&f, true>, "other"_a, nb::is_operator(), \
             nb::sig("def __r" #name "__(self, other: object) -> Tensor"));
#define REEL_BOTH(name, f) REEL_OPERATOR(name, f) REEL_REVERSED(name, f)
  REEL_BOTH(add, add)
  REEL_BOTH(sub, subtract)
  REEL_BOTH(mul, multiply)
  REEL_BOTH(truediv, divide)
  REEL_BOTH(floordiv, floor_divide)
  REEL_BOTH(mod, modulo)
  REEL_BOTH(pow, raise)
  REEL_BOTH(matmul, product)
  REEL_BOTH(and, reel::logical_and)
  REEL_BOTH(or, reel::logical_or)
  REEL_BOTH(xor, reel::logical_xor)
  REEL_OPERATOR(lt, less)
  REEL_OPERATOR(le, less_equal)
  REEL_OPERATOR(gt, greater)
  REEL_OPERATOR(ge, greater_equal)
  REEL_OPERATOR(eq, reel::equal)
  REEL_OPERATOR(ne, reel::not_equal)
  tensor.def(
      "__neg__", [](Arg x) { return -x; }, Released());
  tensor.def("__pos__", [](const Tensor& x) { return x; });
  tensor.def(
      "__abs__", [](Arg x) { return abs(x); }, Released());
  tensor.def("__invert__", &invert, Released());
}

}  // namespace reel::python
