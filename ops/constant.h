// Constants that ops make for themselves.
#pragma once
#include <optional>

#include "engine/autodiff/tape.h"
#include "ops/arg.h"

namespace reel {

/// Runs f, which makes a constant. It is recorded only where a program is traced, which then makes it itself.
template <class F>
Tensor make_constant(F&& f) {
  std::optional<NoGrad> no_grad;
  if (const Tape* tape = Tape::current(); tape && tape->mode() == Tape::Mode::eager) no_grad.emplace();
  return f();
}

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
