// Sums along rows in loop kernels (loop_reductions.cpp): some neighbouring lanes of a warp, `part` 0 to lanes - 1,
// share x(0) .. x(terms - 1). All lanes of a warp take part, those that are not `there` with no terms. Norms and
// deviations are computed in double, as the kernel for rows does (kernels/rows.cu).
#pragma once
#include "backends/cuda/codegen/device/loop.h"
#include "backends/shared/lp_norm.h"

namespace reel::generated {

template <class R>
REEL_HD cuda::DeviceComplex<R> from_lane(cuda::DeviceComplex<R> z, int distance) {
  return {from_lane(z.real(), distance), from_lane(z.imag(), distance)};
}

/// Combines the values of `lanes` lanes, for all of them.
template <int lanes, class T, class F>
REEL_HD T over_lanes(T value, F combine) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) value = combine(value, from_lane(value, distance));
  return value;
}

template <int lanes, class T>
REEL_HD T add_lanes(T value) {
  return over_lanes<lanes>(value, [](T a, T b) { return a + b; });
}

/// The terms of a lane: x(part), x(part + lanes), ... A few are read at once, so that their loads overlap.
template <int lanes, int terms, class X>
class Share {
 public:
  using T = decltype((*static_cast<X*>(nullptr))(0));

  REEL_HD Share(bool there, int part, X x) : there_(there), part_(part), x_(x) {
    if constexpr (held) each_place([&](int j, int k) { kept_[k] = x_(j); });
  }
  /// Calls f(j, x(j)) for each of them.
  template <class F>
  REEL_HD void each(F f) const {
    each_place([&](int j, int k) { f(j, held ? kept_[k] : x_(j)); });
  }

 private:
  static constexpr int whole = terms / lanes, all = (terms + lanes - 1) / lanes;
  static constexpr bool held = all <= 8;

  template <class F>
  REEL_HD void each_place(F f) const {
    if (!there_) return;
#pragma unroll 8
    for (int k = 0; k < whole; ++k) f(part_ + k * lanes, k);
    if (whole < all && part_ + whole * lanes < terms) f(part_ + whole * lanes, whole);
  }

  bool there_;
  int part_;
  X x_;
  T kept_[held ? all : 1];
};

template <int lanes, int terms, class T, class X>
REEL_HD T sum_of(bool there, int part, X x) {
  T mine = T(0);
  Share<lanes, terms, X>(there, part, x).each([&](int, auto v) { mine = mine + v; });
  return add_lanes<lanes>(mine);
}

REEL_HD inline double larger(double a, double b) { return a > b || a != a ? a : b; }  // NaN wins

/// x^(1/p) as an f32 needs it. For a whole p a step of Newton's method from the f32 root is cheaper than a power.
template <int whole>
REEL_HD double root(double x, double p) {
  if (whole == 2) return ::sqrt(x);
  if (whole > 2 && x > 1e-30 && x < 1e30) {
    const double y = ::exp2f(::log2f(static_cast<float>(x)) / whole), power = math::whole_power(y, whole - 1);
    return y - static_cast<float>(power * y - x) / static_cast<float>(whole * power);
  }
  return ::pow(x, 1 / p);
}

/// (sum |x|^p)^(1/p), scaled unless all powers are surely doubles. `whole` is p, or 0 if that is no small integer.
template <int lanes, int terms, int whole, class T, class X>
REEL_HD T norm_of(bool there, int part, X x, double p) {
  const Share<lanes, terms, X> share(there, part, x);
  const auto size = [](T v) { return ::fabs(static_cast<double>(v)); };
  constexpr bool single = sizeof(T) == sizeof(float);
  const bool scaled = !single || p > 6;
  double top = 1;
  if (scaled) {
    double mine = 0;
    share.each([&](int, T v) { mine = larger(mine, size(v)); });
    top = over_lanes<lanes>(mine, larger);
  }
  const bool plain = top > 0 && math::isfinite(top);  // all lanes go on, as they exchange values
  const LpScale scale = scaled && plain ? lp_scale(top) : LpScale{1, 1};
  double mine = 0;
  share.each([&](int, T v) {
    const double s = size(v) * scale.two * scale.one;
    mine += whole > 0 ? math::whole_power(s, whole) : ::pow(s, p);
  });
  const double sum = add_lanes<lanes>(mine);
  if (!plain) return static_cast<T>(top);
  return static_cast<T>(top * (single || whole == 2 ? root<whole>(sum, p) : ::pow(sum, 1 / p)));
}

/// Calls result(j, x(j) minus the mean, over the standard deviation) for each j of a row of a warp.
template <int lanes, int terms, class T, class X, class F>
REEL_HD void standardize(bool there, int part, X x, double epsilon, F result) {
  const Share<lanes, terms, X> share(there, part, x);
  constexpr double one = 1.0 / terms;
  double sum = 0, squares = 0;
  share.each([&](int, T v) { sum += v; });
  const double mean = add_lanes<lanes>(sum) * one;
  share.each([&](int, T v) {
    const double d = v - mean;
    squares += d * d;
  });
  const double factor = ::rsqrt(add_lanes<lanes>(squares) * one + epsilon);
  share.each([&](int j, T v) { result(j, static_cast<T>((v - mean) * factor)); });
}

}  // namespace reel::generated
