// Sums along rows in loop kernels (loop_reductions.cpp): some neighbouring lanes of a warp, `part` 0 to lanes - 1,
// share x(0) .. x(terms - 1). All lanes of a warp take part, those without a row with no terms. Norms and deviations
// are computed in double, as the kernel for rows does (kernels/rows.cu).
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

template <int lanes, class T, class X>
REEL_HD T sum_of(int terms, int part, X x) {
  T mine = T(0);
#pragma unroll 4
  for (int j = part; j < terms; j += lanes) mine = mine + x(j);
  return add_lanes<lanes>(mine);
}

REEL_HD inline double larger(double a, double b) { return a > b || a != a ? a : b; }  // NaN wins

/// (sum |x|^p)^(1/p), scaled unless all powers are surely doubles.
template <int lanes, class T, class X>
REEL_HD T norm_of(int terms, int part, X x, double p) {
  const auto size = [&](int j) { return ::fabs(static_cast<double>(x(j))); };
  const bool scaled = sizeof(T) > sizeof(float) || p > 6;
  double top = 1;
  if (scaled) {
    double mine = 0;
    for (int j = part; j < terms; j += lanes) mine = larger(mine, size(j));
    top = over_lanes<lanes>(mine, larger);
  }
  const bool plain = top > 0 && math::isfinite(top);  // all lanes go on, as they exchange values
  const LpScale scale = scaled && plain ? lp_scale(top) : LpScale{1, 1};
  const int whole = whole_exponent(p);
  double mine = 0;
#pragma unroll 4
  for (int j = part; j < terms; j += lanes) {
    const double s = size(j) * scale.two * scale.one;
    mine += whole > 0 ? math::whole_power(s, whole) : ::pow(s, p);
  }
  const double sum = add_lanes<lanes>(mine);
  return static_cast<T>(plain ? top * (p == 2 ? ::sqrt(sum) : ::pow(sum, 1 / p)) : top);
}

/// Calls result(j, x(j) minus the mean, over the standard deviation) for each j of a row of a warp.
template <int lanes, class T, class X, class F>
REEL_HD void standardize(int terms, int part, X x, double epsilon, F result) {
  double sum = 0, squares = 0;
  for (int j = part; j < terms; j += lanes) sum += x(j);
  const double mean = add_lanes<lanes>(sum) / terms;
  for (int j = part; j < terms; j += lanes) {
    const double d = x(j) - mean;
    squares += d * d;
  }
  const double factor = 1 / ::sqrt(add_lanes<lanes>(squares) / terms + epsilon);
  for (int j = part; j < terms; j += lanes) result(j, static_cast<T>((x(j) - mean) * factor));
}

}  // namespace reel::generated
