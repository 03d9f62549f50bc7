// Tensors that are made: constants and random numbers. None is recorded.
#include <nanobind/stl/complex.h>

#include <cmath>

#include "ops/constant.h"
#include "python/src/checked.h"
#include "python/src/python.h"

namespace reel::python {

/// The number that fills a tensor.
struct Filling {
  std::complex<double> value;
};

}  // namespace reel::python

namespace nanobind::detail {
template <>
struct type_caster<reel::python::Filling> {
  NB_TYPE_CASTER(reel::python::Filling, make_caster<std::complex<double>>::Name)
  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) {
    reel::python::check_double(source);
    make_caster<std::complex<double>> number;
    const bool good = number.from_python(source, flags, cleanup);
    if (good) value = {number.value};
    return good;
  }
};
}  // namespace nanobind::detail

namespace reel::python {

using namespace nb::literals;

namespace {
bool is_i32(double v) { return fits_i32(v) && v == std::floor(v); }
bool truncates_to_i32(double v) { return fits_i32(std::trunc(v)); }
constexpr ElementRule value_of_full{"full", is_i32, "an i32 is an integer of -2147483648..2147483647",
                                    ". Hint: dtype=\"f64\""};
constexpr ElementRule value_of_full_like{"full_like", is_i32, value_of_full.text,
                                         ". Hint: full(x.shape, ..., \"f64\")"};
constexpr ElementRule element_of_tensor{"tensor", truncates_to_i32, "i32 holds -2147483648..2147483647"};

/// The elements of a tensor in this dtype and shape, in memory of their own. Throws Error where the dtype would drop an
/// imaginary part, or a fraction.
template <const ElementRule& rule>
Tensor value_as(const Tensor& value, DType dtype, const Shape& shape, Loc where) {
  if (is_complex(value.dtype()) && !is_complex(dtype))
    fail(rule.name, where, "the value is {}, the tensor {}. Hint: real(), or dtype=\"{}\"", value.spec().str(),
         name_of(dtype), name_of(value.dtype()));
  const bool to_integers = dtype == DType::i32 && is_floating(value.dtype());
  const Tensor of_rule = to_integers ? checked<rule>({value, where}) : value;
  const Tensor x = expand({cast({of_rule, where}, dtype), where}, shape);
  if (x.id() != value.id()) return x;
  return reel::where({full({}, 1, DType::boolean, x.backend()), where}, x, x);
}

Tensor cast_to_i32(Arg x) { return cast({checked<element_of_tensor>(x), x.where}, DType::i32); }
}  // namespace

void bind_create(nb::module_& m) {
  const auto dtype = [] { return "dtype"_a = "f32"; };
  m.def(
      "arange", [](std::int64_t n, DTypeLike d) { return arange(n, d.value, backend(), here()); }, "n"_a,
      "dtype"_a = "i32", doc("arange"));
  m.def(
      "linspace",
      [](Number first, Number last, std::int64_t n, DTypeLike d) {
        return linspace(first, last, n, d.value, backend(), here());
      },
      "first"_a, "last"_a, "n"_a, dtype(), doc("linspace"));
  m.def(
      "full",
      [](const Axes& shape, const Tensor& value, DTypeLike d) {
        return value_as<value_of_full>(value, d.value, shape_of("full", shape), here());
      },
      "shape"_a, "value"_a, dtype(),
      "A tensor of this shape whose elements are those of a tensor, which has a gradient.");
  m.def(
      "full", [](const Axes& shape, Filling x, DTypeLike d) { return full(shape_of("full", shape), x.value, d.value); },
      "shape"_a, "value"_a, dtype(), doc("full"));
  m.def("_cast_to_i32", &cast_to_i32, "x"_a, "Integers of real elements, unless one does not fit i32.");
  m.def(
      "zeros", [](const Axes& shape, DTypeLike d) { return full(shape_of("zeros", shape), 0, d.value); }, "shape"_a,
      dtype(), "Zeros of this shape.");
  m.def(
      "ones", [](const Axes& shape, DTypeLike d) { return full(shape_of("ones", shape), 1, d.value); }, "shape"_a,
      dtype(), "Ones of this shape.");
  m.def(
      "full_like",
      [](Arg x, const Tensor& value) { return value_as<value_of_full_like>(value, x->dtype(), x->shape(), x.where); },
      "x"_a, "value"_a, "A tensor of x's shape whose elements are those of a tensor, which has a gradient.");
  m.def(
      "full_like", [](Arg x, Filling filling) { return full_like(x, filling.value); }, "x"_a, "value"_a,
      doc("full_like"));
  m.def("zeros_like", &zeros_like, "x"_a, doc("zeros_like"));
  m.def("ones_like", &ones_like, "x"_a, doc("ones_like"));
  m.def(
      "eye", [](std::int64_t n, DTypeLike d) { return eye(n, d.value, backend(), here()); }, "n"_a, dtype(),
      doc("eye"));

  m.def(
      "uniform",
      [](const Axes& shape, Number low, Number high, Seed seed, Seed stream, DTypeLike d) {
        return uniform(shape_of("uniform", shape), low, high, seed, stream, d.value, backend(), here());
      },
      "shape"_a, "low"_a = 0.0, "high"_a = 1.0, nb::kw_only(), "seed"_a, "stream"_a = Seed{}, dtype(), doc("uniform"));
  m.def(
      "normal",
      [](const Axes& shape, Number mean, Number deviation, Seed seed, Seed stream, DTypeLike d) {
        return normal(shape_of("normal", shape), mean, deviation, seed, stream, d.value, backend(), here());
      },
      "shape"_a, "mean"_a = 0.0, "deviation"_a = 1.0, nb::kw_only(), "seed"_a, "stream"_a = Seed{}, dtype(),
      doc("normal"));
  m.def(
      "bernoulli",
      [](const Axes& shape, Number p, Seed seed, Seed stream) {
        return bernoulli(shape_of("bernoulli", shape), p, seed, stream, backend(), here());
      },
      "shape"_a, "p"_a, nb::kw_only(), "seed"_a, "stream"_a = Seed{}, doc("bernoulli"));
  m.def(
      "integers",
      [](const Axes& shape, std::int64_t low, std::int64_t high, Seed seed, Seed stream) {
        return integers(shape_of("integers", shape), low, high, seed, stream, backend(), here());
      },
      "shape"_a, "low"_a, "high"_a, nb::kw_only(), "seed"_a, "stream"_a = Seed{}, doc("integers"));
  m.def(
      "permutation",
      [](std::int64_t n, Seed seed, Seed stream) { return permutation(n, seed, stream, backend(), here()); }, "n"_a,
      nb::kw_only(), "seed"_a, "stream"_a = Seed{}, doc("permutation"));
  m.def(
      "dropout", [](Arg x, Number p, Seed seed, Seed stream) { return dropout(x, p, seed, stream); }, "x"_a, "p"_a,
      nb::kw_only(), "seed"_a, "stream"_a = Seed{}, doc("dropout"));
  m.def(
      "hann_window",
      [](std::int64_t n, bool periodic, DTypeLike d) { return hann_window(n, periodic, d.value, backend(), here()); },
      "n"_a, "periodic"_a = true, dtype(), doc("hann_window"));
}

}  // namespace reel::python

bool nanobind::detail::type_caster<reel::python::Seed>::from_python(handle source, std::uint32_t, cleanup_list*) {
  PyObject* const number = PyBool_Check(source.ptr()) ? nullptr : PyNumber_Index(source.ptr());
  const unsigned long long n = number ? PyLong_AsUnsignedLongLong(number) : 0;
  Py_XDECREF(number);
  const bool good = number && !PyErr_Occurred();
  PyErr_Clear();
  if (!good)
    reel::fail("random", reel::python::here(), "seed and stream are integers from 0 to 2^64 - 1, got {}",
               nb::repr(source).c_str());
  value = {n};
  return true;
}
