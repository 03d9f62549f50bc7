// Conversions that every backend makes alike.
#pragma once
#include "engine/core/dtype.h"

namespace reel {

/// A constant as an element: its real part for real types, "not 0" for booleans.
template <class T>
T element_of(std::complex<double> value) {
  if constexpr (is_complex_type<T>)
    return T(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value != 0.0;
  else
    return static_cast<T>(value.real());
}

}  // namespace reel
