// Constants that ops make for themselves.
#pragma once
#include <algorithm>
#include <optional>

#include "engine/autodiff/tape.h"
#include "ops/ops.h"

namespace reel {

/// Runs f, which makes a constant. It is recorded only while a program is traced, which then makes it itself.
template <class F>
Tensor make_constant(F&& f) {
  std::optional<NoGrad> no_grad;
  if (const Tape* tape = Tape::current(); tape && tape->mode() == Tape::Mode::eager) no_grad.emplace();
  return f();
}

/// f(i) for i < n, computed in f64 on the host, then cast to the dtype on the device. Throws Error with the name
/// if n is negative, OutOfMemory if there is no room.
template <class F>
Tensor filled(const char* name, std::int64_t n, DType dtype, Backend& backend, const Loc& where, F&& f) {
  if (n < 0) fail(name, where, "the number of elements is 0 or more, got {}", n);
  Tensor out;
  try {
    out = Tensor::empty({DType::f64, {n}, &backend});
  } catch (const RuleError& e) {  // too large for a shape
    fail(name, where, "{}", e.rule);
  }
  double values[1024];
  for (std::int64_t first = 0; first < n; first += std::ssize(values)) {
    const std::int64_t count = std::min(n - first, std::ssize(values));
    for (std::int64_t i = 0; i < count; ++i) values[i] = f(first + i);
    backend.write(out.data_as<double>() + first, values, static_cast<std::size_t>(count) * sizeof(double));
  }
  const NoGrad no_grad;
  return cast(out, dtype);
}

/// The shift of affine that makes it a product: 0 would turn a result of -0 into +0.
inline constexpr double no_shift = -0.0;

/// True if a number is within the range of i32.
inline bool fits_i32(double value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return value >= Limits::min() && value <= Limits::max();
}

/// The value of a scalar operand, which must be one of i32 if the other operand is. Throws Error with the op's name.
double whole(const char* op, const Arg& x, const Tensor& other);

/// An operand as a tensor: a scalar gets the dtype of the other operand, and a real tensor becomes complex if the other
/// is. Throws Error with the op's name.
Tensor operand(const char* op, const Arg& x, const Arg& other);

}  // namespace reel
