// The element types that a functor supports.
#pragma once
#include <type_traits>

#include "engine/core/dtype.h"

namespace reel {

enum Domain : unsigned { real_numbers = 1, complex_numbers = 2, integer_numbers = 4, booleans = 8 };

inline constexpr unsigned fields = real_numbers | complex_numbers;
inline constexpr unsigned numbers = fields | integer_numbers;

template <class F>
constexpr bool takes(DType dtype) {
  const unsigned kind = is_floating(dtype)    ? real_numbers
                        : is_complex(dtype)   ? complex_numbers
                        : dtype == DType::i32 ? integer_numbers
                                              : booleans;
  return (static_cast<unsigned>(F::domain) & kind) != 0;
}

/// The type of F's result on elements of type T.
template <class F, class T>
struct ResultOf {
  using type = decltype([] {
    if constexpr (std::is_invocable_v<F, T>)
      return F{}(T{});
    else
      return F{}(T{}, T{});
  }());
};
template <class F, class T>
using result_of = typename ResultOf<F, T>::type;

/// The dtype of F's result on elements of dtype d, which F must support.
template <class F>
DType result_dtype(DType d) {
  return dispatch(d, []<class T>(std::type_identity<T>) {
    if constexpr (takes<F>(dtype_of<T>()))
      return dtype_of<result_of<F, T>>();
    else
      return dtype_of<T>();
  });
}

/// Does F return bool? Such a function has no derivative.
template <class F>
inline constexpr bool is_predicate = [] {
  if constexpr (takes<F>(DType::f32))
    return std::is_same_v<result_of<F, float>, bool>;
  else
    return takes<F>(DType::boolean);
}();

/// A list of types. index_of<F, List> is F's index in it, by which an op tells a backend the kernel.
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
