// Which element types a functor takes.
#pragma once
#include <type_traits>

#include "engine/dtype.h"

namespace reel {

enum Domain : unsigned { real_numbers = 1, complex_numbers = 2, integers = 4, booleans = 8 };

inline constexpr unsigned numbers = real_numbers | complex_numbers | integers;

template <class F>
constexpr bool takes(DType dtype) {
  const unsigned kind = is_floating(dtype)    ? real_numbers
                        : is_complex(dtype)   ? complex_numbers
                        : dtype == DType::i32 ? integers
                                              : booleans;
  return (static_cast<unsigned>(F::domain) & kind) != 0;
}

/// A list of types; index_of<F, List> is F's place in it: how an op names a kernel to a backend.
template <class... F>
struct TypeList {
  static constexpr int size = sizeof...(F);
};

template <class F, class List>
inline constexpr int index_of = -1;
template <class F, class First, class... Rest>
inline constexpr int index_of<F, TypeList<First, Rest...>> = [] {
  if (std::is_same_v<F, First>) return 0;
  const int after = index_of<F, TypeList<Rest...>>;
  return after < 0 ? -1 : 1 + after;
}();

}  // namespace reel
