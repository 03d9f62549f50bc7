// Tensors that are made: constants and random numbers. None is recorded.
#include <nanobind/stl/complex.h>

#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

void bind_create(nb::module_& m) {
  using Number = std::complex<double>;
  const auto dtype = [] { return "dtype"_a = "f32"; };
  m.def(
      "arange", [](std::int64_t n, DTypeLike d) { return arange(n, d.value, backend(), here()); }, "n"_a,
      "dtype"_a = "i32", doc("arange"));
  m.def(
      "linspace",
      [](double first, double last, std::int64_t n, DTypeLike d) {
        return linspace(first, last, n, d.value, backend(), here());
      },
      "first"_a, "last"_a, "n"_a, dtype(), doc("linspace"));
  m.def(
      "full",
      [](const Axes& shape, Number value, DTypeLike d) { return full(shape_of("full", shape), value, d.value); },
      "shape"_a, "value"_a, dtype(), doc("full"));
  m.def(
      "zeros", [](const Axes& shape, DTypeLike d) { return full(shape_of("zeros", shape), 0, d.value); }, "shape"_a,
      dtype(), "Zeros of this shape.");
  m.def(
      "ones", [](const Axes& shape, DTypeLike d) { return full(shape_of("ones", shape), 1, d.value); }, "shape"_a,
      dtype(), "Ones of this shape.");
  m.def(
      "full_like", [](Arg x, Number value) { return full_like(x, value); }, "x"_a, "value"_a, doc("full_like"));
  m.def("zeros_like", &zeros_like, "x"_a, doc("zeros_like"));
  m.def("ones_like", &ones_like, "x"_a, doc("ones_like"));
  m.def(
      "eye", [](std::int64_t n, DTypeLike d) { return eye(n, d.value); }, "n"_a, dtype(), doc("eye"));

  m.def(
      "uniform",
      [](const Axes& shape, double low, double high, std::uint64_t seed, std::uint64_t stream, DTypeLike d) {
        return uniform(shape_of("uniform", shape), low, high, seed, stream, d.value, backend(), here());
      },
      "shape"_a, "low"_a = 0.0, "high"_a = 1.0, nb::kw_only(), "seed"_a, "stream"_a = 0, dtype(), doc("uniform"));
  m.def(
      "normal",
      [](const Axes& shape, double mean, double deviation, std::uint64_t seed, std::uint64_t stream, DTypeLike d) {
        return normal(shape_of("normal", shape), mean, deviation, seed, stream, d.value, backend(), here());
      },
      "shape"_a, "mean"_a = 0.0, "deviation"_a = 1.0, nb::kw_only(), "seed"_a, "stream"_a = 0, dtype(), doc("normal"));
  m.def(
      "bernoulli",
      [](const Axes& shape, double p, std::uint64_t seed, std::uint64_t stream) {
        return bernoulli(shape_of("bernoulli", shape), p, seed, stream, backend(), here());
      },
      "shape"_a, "p"_a, nb::kw_only(), "seed"_a, "stream"_a = 0, doc("bernoulli"));
  m.def(
      "integers",
      [](const Axes& shape, std::int64_t low, std::int64_t high, std::uint64_t seed, std::uint64_t stream) {
        return integers(shape_of("integers", shape), low, high, seed, stream, backend(), here());
      },
      "shape"_a, "low"_a, "high"_a, nb::kw_only(), "seed"_a, "stream"_a = 0, doc("integers"));
  m.def(
      "permutation",
      [](std::int64_t n, std::uint64_t seed, std::uint64_t stream) {
        return permutation(n, seed, stream, backend(), here());
      },
      "n"_a, nb::kw_only(), "seed"_a, "stream"_a = 0, doc("permutation"));
  m.def(
      "dropout", [](Arg x, double p, std::uint64_t seed, std::uint64_t stream) { return dropout(x, p, seed, stream); },
      "x"_a, "p"_a, nb::kw_only(), "seed"_a, "stream"_a = 0, doc("dropout"));
  m.def(
      "hann_window",
      [](std::int64_t n, bool periodic, DTypeLike d) { return hann_window(n, periodic, d.value, backend(), here()); },
      "n"_a, "periodic"_a = true, dtype(), doc("hann_window"));
}

}  // namespace reel::python
