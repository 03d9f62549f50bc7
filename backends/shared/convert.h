// Conversions between elements, the same for every backend and for generated kernels; except to i32 of NaN and of
// numbers that it does not hold, which is the processor's: x86 gives the least i32, a GPU 0 and the nearest i32.
#pragma once
#include "engine/core/dtype.h"

namespace reel {

/// x as a To: real numbers keep the real part, booleans say whether it is not 0.
template <class To, class From>
REEL_HD To element_cast(From x) {
  if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (is_complex_type<From> && is_complex_type<To>)
    return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
  else if constexpr (is_complex_type<From>)
    return static_cast<To>(x.real());
  else if constexpr (is_complex_type<To>)
    return To(static_cast<typename To::value_type>(x), 0);
  else
    return static_cast<To>(x);
}

}  // namespace reel
