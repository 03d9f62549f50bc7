// Linear algebra, spectra and Fourier transforms. Ops with several results return named tuples.
#include <nanobind/stl/shared_ptr.h>

#include "ops/functors/linalg.h"
#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

nb::object named_tuple(nb::module_& m, const char* name, const char* fields) {
  nb::object type = nb::module_::import_("collections").attr("namedtuple")(name, fields);
  type.attr("__module__") = "reel._reel";
  m.attr(name) = type;
  return type;
}

namespace {
/// Declares an op of a matrix whose result has these fields.
template <class F>
void bind_fields(nb::module_& m, const char* name, const char* result, const char* fields, F f) {
  nb::object type = named_tuple(m, result, fields);
  const std::string signature =
      fmt::format("def {}(A: Tensor | float | typing.SupportsComplex | numpy.ndarray) -> {}", name, result);
  m.def(
      name,
      [f, type = type.release()](Arg A) {  // the module keeps the type
        Tensors parts;
        {
          const GilRelease released;
          parts = f(A);
        }
        return type(*nb::tuple(nb::cast(parts)));
      },
      "A"_a, doc(name), nb::sig(signature.c_str()));
}

FftOptions fft_options(std::optional<std::int64_t> n, std::int64_t axis, const std::string& norm) {
  if (norm != "backward" && norm != "ortho" && norm != "forward")
    fail("fft", here(), "norm is \"backward\", \"ortho\" or \"forward\", got \"{}\"", norm);
  return {n, axis, norm == "ortho" ? FftNorm::ortho : norm == "forward" ? FftNorm::forward : FftNorm::backward};
}

template <Tensor (*f)(Arg, const FftOptions&)>
void bind_fft(nb::module_& m, const char* name) {
  m.def(
      name,
      [](Arg x, std::optional<std::int64_t> n, std::int64_t axis, const std::string& norm) {
        return f(x, fft_options(n, axis, norm));
      },
      "x"_a, "n"_a.none() = nb::none(), "axis"_a = -1, "norm"_a = "backward", doc(name));
}

StftOptions stft_options(std::int64_t size, std::optional<std::int64_t> hop, const std::optional<Tensor>& window,
                         bool centre, bool onesided, const std::string& norm) {
  StftOptions out{.size = size, .hop = hop, .centre = centre, .onesided = onesided};
  if (window) out.window = *window;
  out.norm = fft_options({}, -1, norm).norm;
  return out;
}
}  // namespace

void bind_linalg(nb::module_& m) {
#define REEL_BIND_MATRIX(f) m.def(#f, static_cast<Tensor (*)(Arg)>(&reel::f), "A"_a, Released(), doc(#f));
  REEL_BIND_MATRIX(inverse)
  REEL_BIND_MATRIX(cholesky)
  REEL_BIND_MATRIX(det)
  REEL_BIND_MATRIX(matrix_exp)
  REEL_BIND_MATRIX(skew)
  REEL_BIND_MATRIX(cayley)
  REEL_BIND_MATRIX(householder_product)
  REEL_BIND_MATRIX(polar_factor)
  REEL_BIND_MATRIX(eigvals)
  REEL_BIND_MATRIX(spectral_radius)
  nb::class_<LeadingColumns>(m, "LeadingColumns", "What warm_spectral_radius carries over from call to call.");
  m.def(
      "leading_columns", &leading_columns, "n"_a,
      "For f64 matrices of n rows, one at a time, that change little from call to call; None where it would not pay.");
  m.def("warm_spectral_radius", &warm_spectral_radius, "A"_a, "leading"_a.none(), Released(),
        doc("warm_spectral_radius"));
  m.def("cayley", static_cast<Tensor (*)(Arg, Arg)>(&cayley), "A"_a, "D"_a, Released(),
        "The Cayley transform times diag(D), D [..., n] of signs: for some D it reaches every orthogonal W. Helfrich, "
        "Willmott and Ye (2018).");
  m.def("matrix_exp_derivative", &matrix_exp_derivative, "A"_a, "E"_a, Released(), doc("matrix_exp_derivative"));
  m.def("pinv", &pinv, "A"_a, "rcond"_a = -1.0, Released(), doc("pinv"));
  m.def("lstsq", &lstsq, "A"_a, "B"_a, Released(), doc("lstsq"));
  m.def("skew_from_vector", &skew_from_vector, "v"_a, "n"_a, Released(), doc("skew_from_vector"));
  m.def("householder_apply", &householder_apply, "x"_a, "U"_a, Released(), doc("householder_apply"));
  m.def("sylvester", &sylvester, "A"_a, "B"_a, "C"_a, Released(), doc("sylvester"));
  m.def(
      "solve", [](Arg A, Arg B, bool adjoint) { return solve(A, B, {adjoint}); }, "A"_a, "B"_a, nb::kw_only(),
      "adjoint"_a = false, Released(), doc("solve"));
  m.def(
      "triangular_solve",
      [](Arg A, Arg B, bool upper, bool unit_diagonal, bool adjoint, double tolerance) {
        return triangular_solve(A, B, {upper, unit_diagonal, adjoint, tolerance});
      },
      "A"_a, "B"_a, nb::kw_only(), "upper"_a = false, "unit_diagonal"_a = false, "adjoint"_a = false,
      "tolerance"_a = 0.0, Released(), doc("triangular_solve"));
  bind_fields(m, "lu", "LuResult", "P L U", [](Arg A) -> Tensors {
    Lu r = lu(A);
    return {r.P, r.L, r.U};
  });
  bind_fields(m, "qr", "QrResult", "Q R", [](Arg A) -> Tensors {
    Qr r = qr(A);
    return {r.Q, r.R};
  });
  bind_fields(m, "slogdet", "SlogdetResult", "sign log_abs", [](Arg A) -> Tensors {
    SignAndLog r = slogdet(A);
    return {r.sign, r.log_abs};
  });
  bind_fields(m, "eig", "EigResult", "values vectors", [](Arg A) -> Tensors {
    EigResult r = eig(A);
    return {r.values, r.vectors};
  });
  bind_fields(m, "eigh", "EighResult", "values vectors", [](Arg A) -> Tensors {
    EigResult r = eigh(A);
    return {r.values, r.vectors};
  });
  bind_fields(m, "svd", "SvdResult", "U S Vh", [](Arg A) -> Tensors {
    SvdResult r = svd(A);
    return {r.U, r.S, r.Vh};
  });
  bind_fields(m, "schur", "SchurResult", "Q T", [](Arg A) -> Tensors {
    SchurResult r = schur(A);
    return {r.Q, r.T};
  });

  bind_fft<fft>(m, "fft");
  bind_fft<ifft>(m, "ifft");
  bind_fft<rfft>(m, "rfft");
  bind_fft<irfft>(m, "irfft");
  m.def(
      "fft2", [](Arg x, const std::string& norm) { return fft2(x, fft_options({}, -1, norm).norm); }, "x"_a,
      "norm"_a = "backward", doc("fft2"));
  m.def(
      "ifft2", [](Arg y, const std::string& norm) { return ifft2(y, fft_options({}, -1, norm).norm); }, "y"_a,
      "norm"_a = "backward", doc("ifft2"));
  m.def("frame", &frame, "x"_a, "size"_a, "hop"_a, Released(), doc("frame"));
  m.def("overlap_add", &overlap_add, "x"_a, "hop"_a, Released(), doc("overlap_add"));
  m.def(
      "stft",
      [](Arg x, std::int64_t size, std::optional<std::int64_t> hop, const std::optional<Tensor>& window, bool centre,
         bool onesided,
         const std::string& norm) { return stft(x, stft_options(size, hop, window, centre, onesided, norm)); },
      "x"_a, "size"_a, "hop"_a.none() = nb::none(), "window"_a.none() = nb::none(), nb::kw_only(), "centre"_a = true,
      "onesided"_a = true, "norm"_a = "backward", doc("stft"));
  m.def(
      "istft",
      [](Arg y, std::int64_t size, std::optional<std::int64_t> hop, const std::optional<Tensor>& window, bool centre,
         bool onesided, const std::string& norm, std::optional<std::int64_t> length) {
        return istft(y, stft_options(size, hop, window, centre, onesided, norm), length);
      },
      "y"_a, "size"_a, "hop"_a.none() = nb::none(), "window"_a.none() = nb::none(), nb::kw_only(), "centre"_a = true,
      "onesided"_a = true, "norm"_a = "backward", "length"_a.none() = nb::none(), doc("istft"));
}

}  // namespace reel::python
