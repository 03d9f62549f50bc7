// Creates tensors. Constants made by full() are ops of a traced program, so that it makes them itself rather than keeps
// tensors that were made while it was traced. Nothing else here is recorded.
#include <cmath>
#include <cstring>

#include "engine/autodiff/primitives.h"
#include "ops/attributes.h"
#include "ops/constant.h"
#include "ops/ops.h"

namespace reel {

namespace {

struct Full {
  Spec spec;
  std::complex<double> value;
  bool operator==(const Full& other) const {  // bits: -0.0 is another number than 0.0, and NaN the same as itself
    return spec == other.spec && std::memcmp(&value, &other.value, sizeof value) == 0;
  }
  static constexpr Traits traits{
      .name = "full", .kind = Kind::movement, .saves = Saves::nothing, .differentiable = false};
  Spec infer(Inputs) const { return spec; }
  void run(Inputs, Tensor& out) const {
    out.backend().fill({.dtype = spec.dtype, .n = out.numel(), .value = value, .out = out.data()});
  }
};
REEL_OP(Full)
REEL_ATTRIBUTES(Full, {"value", attribute(op.value.real(), op.value.imag())})

/// Throws RuleError unless tensors of this dtype can hold the value.
void check_value(std::complex<double> value, DType dtype) {
  if (dtype == DType::i32 && !fits_i32(value.real())) rule_error("{} does not fit i32. Hint: f64 has it", value.real());
  if (dtype == DType::i32 && value.real() != std::floor(value.real()))
    rule_error("{} is not an integer, and the dtype is i32. Hint: f32 has it", value.real());
  if (!is_complex(dtype) && value.imag() != 0)
    rule_error("{} + {}i is complex, and the dtype is {}. Hint: c64 has it", value.real(), value.imag(),
               name_of(dtype));
}

}  // namespace

Tensor full(const Shape& shape, std::complex<double> value, DType dtype, Backend& backend) {
  try {
    check_value(value, dtype);
  } catch (const RuleError& e) {
    throw Error("full", e.rule);
  }
  return make_constant([&] { return apply(Full{{dtype, shape, &backend}, value}, {}, Loc::current()); });
}

Tensor arange(std::int64_t n, DType dtype, Backend& backend, Loc where) {
  if (dtype == DType::i32 && n > std::int64_t{1} << 31)
    fail("arange", where, "{} does not fit i32. Hint: f64 has it", n - 1);
  return filled("arange", n, dtype, backend, where, [](std::int64_t i) { return static_cast<double>(i); });
}

Tensor linspace(double first, double last, std::int64_t n, DType dtype, Backend& backend, Loc where) {
  return filled("linspace", n, dtype, backend, where, [=](std::int64_t i) {
    const double t = n == 1 ? 0 : static_cast<double>(i) / static_cast<double>(n - 1);
    if (std::isfinite(first) && std::isfinite(last)) return std::lerp(first, last, t);
    return i == 0 ? first : i == n - 1 ? last : first + t * (last - first);  // lerp makes NaN the last value at times
  });
}

Tensor full_like(Arg x, std::complex<double> value) {
  named("full_like", x, [&] { check_value(value, x->dtype()); });
  return full(x->shape(), value, x->dtype(), x->backend());
}
Tensor zeros_like(Arg x) { return full_like(x, 0); }
Tensor ones_like(Arg x) { return full_like(x, 1); }

namespace primitive {
Tensor full(const Spec& spec, double value) { return reel::full(spec.shape, value, spec.dtype, *spec.backend); }
}  // namespace primitive

}  // namespace reel
