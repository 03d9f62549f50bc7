// Constants that ops make for themselves.
#pragma once
#include <optional>

#include "engine/autodiff/tape.h"

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

}  // namespace reel
