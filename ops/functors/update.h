// The optimisers' update rules, per element: parameter p, gradient g, and up to three state values of the optimiser. T
// is a scalar or a SIMD batch of scalars.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/device/kernels.h"
#include "ops/functors/domain.h"
#include "ops/functors/math.h"

namespace reel {

/// a / b, and 0 where b is 0: without an epsilon, that is where no gradient has come yet, or none for a long time.
template <class T>
REEL_HD inline T quotient_or_0(T a, T b) {
  using math::select;
  return select(b == T(0), T(0), a / b);
}

struct SgdRule {  // v <- momentum v + g; p <- p - rate v
  double rate, momentum;
  static constexpr int states = 1;
  template <class T>
  REEL_HD void operator()(T& p, T g, T& v, T&, T&) const {
    using math::number;
    v = number<T>(momentum) * v + g;
    p = p - number<T>(rate) * v;
  }
};
struct RmspropRule {  // s <- decay s + (1 - decay) g^2; p <- p - rate g / (sqrt(s) + eps), or / sqrt(s + eps)
  double rate, decay, epsilon;
  bool epsilon_inside;
  static constexpr int states = 1;
  template <class T>
  REEL_HD void operator()(T& p, T g, T& s, T&, T&) const {
    using math::number, math::sqrt;
    s = number<T>(decay) * s + number<T>(1 - decay) * g * g;
    const T root = epsilon_inside ? sqrt(s + number<T>(epsilon)) : sqrt(s) + number<T>(epsilon);
    p = p - quotient_or_0(number<T>(rate) * g, root);
  }
};
struct AdamRule {  // correction1 = 1 - beta1^t, correction2 = 1 - beta2^t at step t = 1, 2, ...; amsgrad keeps the
                   // largest v
  double rate, beta1, beta2, epsilon, correction1, correction2;
  bool amsgrad;
  static constexpr int states = 3;
  template <class T>
  REEL_HD void operator()(T& p, T g, T& m, T& v, T& largest) const {
    using math::max, math::number, math::sqrt;
    m = number<T>(beta1) * m + number<T>(1 - beta1) * g;
    v = number<T>(beta2) * v + number<T>(1 - beta2) * g * g;
    largest = amsgrad ? max(largest, v) : v;
    const T root = sqrt(largest) / number<T>(math::sqrt(correction2)) + number<T>(epsilon);
    p = p - quotient_or_0(number<T>(rate / correction1) * m, root);
  }
};
struct AdagradRule {  // s <- s + g^2; p <- p - rate g / (sqrt(s) + eps)
  double rate, epsilon;
  static constexpr int states = 1;
  template <class T>
  REEL_HD void operator()(T& p, T g, T& s, T&, T&) const {
    using math::number, math::sqrt;
    s = s + g * g;
    p = p - quotient_or_0(number<T>(rate) * g, sqrt(s) + number<T>(epsilon));
  }
};

using UpdateRules = TypeList<SgdRule, RmspropRule, AdamRule, AdagradRule>;

/// Before each rule: p <- (1 - rate share) p if decoupled (Loshchilov & Hutter 2019), else g <- g + share p (L2).
struct WeightDecay {
  double share = 0;
  bool decoupled = false;
  template <class T>
  REEL_HD void operator()(T& p, T& g, double rate) const {
    using math::number;
    if (share == 0) return;
    if (decoupled)
      p = number<T>(1 - rate * share) * p;
    else
      g = g + number<T>(share) * p;
  }
};

/// The values that change from step to step. They are in device memory, as learning rates are, so that a captured
/// update can be replayed at every step.
struct UpdateNumbers {
  double scale;                     // multiplies the gradients; NaN: skips the update
  double rate;                      // multiplies all learning rates
  double correction1, correction2;  // AdamRule's
};
// The kernels of an optimiser's step.

struct UpdatePlace {  // a parameter, its gradient and the optimiser's state, n elements each
  std::int64_t n;
  const double* rate;  // in device memory
  void* parameter;
  const void* gradient;
  void* state[3];
};
struct SquaresOf {
  std::int64_t n;
  const void* x;
  double* out;
};
struct UpdateArgs {  // an optimiser's step in place; rule indexes UpdateRules, params is the rule
  int rule;
  Params params;
  DType dtype;
  double limit;           // clips each gradient element to +-limit, after scaling
  WeightDecay decay;      // after clipping
  const double* numbers;  // the step's UpdateNumbers, in device memory
  std::vector<UpdatePlace> places;
};
struct SquaresArgs {  // *out = the sum of squares of each array's elements
  DType dtype;
  std::span<const SquaresOf> of;
};
struct ClipArgs {         // *scale = the factor that clips the gradients' norm to `limit`
  std::int64_t n;         // how many numbers: the loss and n - 1 sums of squares
  const double* numbers;  // in device memory, as scale is
  double limit;
  double* scale;  // NaN, which means no update, if the loss or the norm is not finite
};

/// The factor that clips gradients of this norm to `limit`.
REEL_HD inline double clip_scale(double norm, double limit) { return norm > limit ? limit / norm : 1; }
/// The same from the loss and n - 1 sums of squares, added in order; NaN if the loss or the norm is not finite.
REEL_HD inline double clip_scale(const double* values, std::int64_t n, double limit) {
  double squares = 0;
  for (std::int64_t i = 1; i < n; ++i) squares += values[i];
  const double norm = math::sqrt(squares);
  const bool finite = math::isfinite(values[0]) && math::isfinite(norm);
  return finite ? clip_scale(norm, limit) : std::numeric_limits<double>::quiet_NaN();
}
/// The column of f32 or f64 in a table of kernels, which has one for each.
inline std::size_t column_of(DType dtype) {
  return dispatch_floating(dtype, []<class T>(std::type_identity<T>) { return std::size_t{sizeof(T) == 8}; });
}
/// The rule with this step's values, for a parameter with learning rate `rate`.
template <class Rule>
REEL_HD Rule at_step(Rule rule, double rate, const UpdateNumbers& now) {
  rule.rate = rate * now.rate;
  if constexpr (requires { rule.correction1; }) {
    rule.correction1 = now.correction1;
    rule.correction2 = now.correction2;
  }
  return rule;
}

}  // namespace reel
