// Functions of two elements. Predicates give booleans. A new one is written here, put into the list at the end, and
// gets its derivatives in ops/binary.cpp.
#pragma once
#include "ops/functors/domain.h"
#include "ops/functors/math.h"

namespace reel {

struct Add {
  static constexpr auto name = "add";
  static constexpr unsigned domain = numbers;
  static constexpr bool predicate = false;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  static constexpr auto name = "sub";
  static constexpr unsigned domain = numbers;
  static constexpr bool predicate = false;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  static constexpr auto name = "mul";
  static constexpr unsigned domain = numbers;
  static constexpr bool predicate = false;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  static constexpr auto name = "div";
  static constexpr unsigned domain = real_numbers | complex_numbers;
  static constexpr bool predicate = false;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    return a / b;
  }
};
struct Maximum {
  static constexpr auto name = "maximum";
  static constexpr unsigned domain = real_numbers | integers;
  static constexpr bool predicate = false;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    using math::select;
    return select(a < b, b, a);
  }
};
struct Minimum {
  static constexpr auto name = "minimum";
  static constexpr unsigned domain = real_numbers | integers;
  static constexpr bool predicate = false;
  template <class T>
  REEL_HD T operator()(T a, T b) const {
    using math::select;
    return select(b < a, b, a);
  }
};
struct Equal {
  static constexpr auto name = "equal";
  static constexpr unsigned domain = numbers | booleans;
  static constexpr bool predicate = true;
  template <class T>
  REEL_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  static constexpr auto name = "not_equal";
  static constexpr unsigned domain = numbers | booleans;
  static constexpr bool predicate = true;
  template <class T>
  REEL_HD bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  static constexpr auto name = "less";
  static constexpr unsigned domain = real_numbers | integers;
  static constexpr bool predicate = true;
  template <class T>
  REEL_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  static constexpr auto name = "less_equal";
  static constexpr unsigned domain = real_numbers | integers;
  static constexpr bool predicate = true;
  template <class T>
  REEL_HD bool operator()(T a, T b) const {
    return a <= b;
  }
};

using BinaryFunctors = TypeList<Add, Sub, Mul, Div, Maximum, Minimum, Equal, NotEqual, Less, LessEqual>;

}  // namespace reel
