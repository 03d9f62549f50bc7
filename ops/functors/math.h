// Scalar functions under one set of names for all types that functors run on: scalars on the CPU and on a GPU, and SIMD
// batches, whose own functions argument-dependent lookup finds.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "engine/core/dtype.h"

namespace reel::math {

using std::abs, std::acos, std::arg, std::asin, std::atan, std::atan2, std::ceil, std::conj, std::copysign, std::cos,
    std::cosh, std::erf, std::erfc, std::exp, std::expm1, std::floor, std::fmod, std::hypot, std::imag, std::isfinite,
    std::isinf, std::isnan, std::log, std::log1p, std::max, std::min, std::nearbyint, std::pow, std::sin, std::sinh,
    std::sqrt, std::tan, std::tanh, std::trunc;

/// a b + c with one rounding; SIMD batches have their own.
template <class T>
REEL_HD inline T multiply_add(T a, T b, T c) {
  return std::fma(a, b, c);
}

/// x for arithmetic that wraps around where the result does not fit: unsigned for i32, whose overflow is undefined.
template <class T>
REEL_HD inline auto wrapping(T x) {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return static_cast<std::uint32_t>(x);
  else
    return x;
}

/// -x; SIMD batches have their own.
template <class T>
REEL_HD inline T negated(T x) {
  return T(-wrapping(x));
}

/// 1 / x, or an approximation that one Newton step makes exact; SIMD batches have their own.
template <class T>
REEL_HD inline T rough_inverse(T x) {
  return T(1) / x;
}

/// condition ? a : b; SIMD batches have their own.
template <class T>
REEL_HD inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}

/// The scalar type of T: T itself, or the elements of a SIMD batch.
template <class T>
struct ScalarOf {
  using type = T;
};
template <class T>
requires requires { typename T::value_type; }
struct ScalarOf<T> {
  using type = typename T::value_type;
};
template <class T>
using scalar_of = typename ScalarOf<T>::type;

/// A functor's parameter as a T: a scalar, or a SIMD batch filled with it.
template <class T>
REEL_HD inline T number(double x) {
  return T(static_cast<scalar_of<T>>(x));
}

/// The product. Complex numbers use the textbook formula, which vectorises; std::complex also checks for lost
/// infinities.
template <class T>
REEL_HD inline T times(T a, T b) {
  if constexpr (is_complex_type<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return T(wrapping(a) * wrapping(b));
}

/// |z| without overflow, faster than the standard library's.
REEL_HD inline float abs(std::complex<float> z) {
  const auto re = static_cast<double>(z.real()), im = static_cast<double>(z.imag());
  return static_cast<float>(std::sqrt(re * re + im * im));
}
REEL_HD inline double abs(std::complex<double> z) {
  const double a = std::abs(z.real()), b = std::abs(z.imag()), most = a > b ? a : b, least = a > b ? b : a;
  const double ratio = least / (most > 0 ? most : 1);
  return most == INFINITY ? most : most * std::sqrt(1 + ratio * ratio);
}

/// |x|; of the least i32 itself, as -x is, too.
template <class T>
REEL_HD inline auto magnitude(T x) {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return x < 0 ? negated(x) : x;
  else
    return abs(x);
}

/// z / |z|, or 0; SIMD batches have their own. Very large and very small z are scaled first.
template <class T>
REEL_HD inline T unit(T z) {
  using R = typename T::value_type;
  constexpr R bound = sizeof(R) == 4 ? R(0x1p60) : R(0x1p500), factor = R(0x1p100);
  const R a = std::abs(z.real()), b = std::abs(z.imag()), most = a > b ? a : b;
  const R scale = most > bound ? 1 / factor : most < 1 / bound ? factor : R(1);
  const R x = z.real() * scale, y = z.imag() * scale, size = abs(T(x, y)), divisor = size == 0 ? R(1) : size;
  return T(x / divisor, y / divisor);
}

/// -1, 0 or 1; for complex z it is z / |z|, or 0.
template <class T>
REEL_HD inline T sign(T x) {
  if constexpr (is_complex_type<T>)
    return unit(x);
  else
    return select(x > T(0), T(1), select(x < T(0), T(-1), x));
}

/// The quotient. For complex numbers it has no branches, so it vectorises, and does not overflow if the result does
/// not: single precision is computed in double, double by Smith's formula (1962).
template <class T>
REEL_HD inline T over(T a, T b) {
  if constexpr (!is_complex_type<T>) {
    return a / b;
  } else if constexpr (sizeof(T) == 8) {
    const double p = a.real(), q = a.imag(), u = b.real(), v = b.imag(), size = u * u + v * v, one = 1 / size;
    const bool inside = size > 0 && size < INFINITY;
    return T(static_cast<float>((inside ? p * u + q * v : p) * one),
             static_cast<float>((inside ? q * u - p * v : q) * one));
  } else {
    const double u = b.real(), v = b.imag();
    const bool turn = std::abs(u) < std::abs(v);
    const double p = turn ? a.imag() : a.real(), q = turn ? -a.real() : a.imag(), most = turn ? v : u,
                 least = turn ? -u : v, ratio = most == 0 ? 0 : least / most, size = most + least * ratio;
    return T((p + q * ratio) / size, (q - p * ratio) / size);
  }
}

/// A complex number of any library; the GPU has its own.
template <class C>
concept ComplexNumber = is_complex_type<C>;

/// e^x - 1 and log(1 + x), without loss of precision for small complex x, or near -1; the square of a large one
/// overflows.
template <ComplexNumber C>
REEL_HD inline C expm1(C x) {
  using R = typename C::value_type;
  const R half = std::sin(x.imag() / 2), e = std::exp(x.real());
  return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half, e * std::sin(x.imag())};
}
template <ComplexNumber C>
REEL_HD inline C log1p(C x) {
  using R = typename C::value_type;
  const R a = x.real(), b = x.imag(), angle = std::atan2(b, 1 + a);
  if (std::abs(a) > R(1e15) || std::abs(b) > R(1e15))
    return {std::log(std::hypot((1 + a) / 2, b / 2)) + R(0.6931471805599453), angle};
  const R square_less_one = a * (2 + a) + b * b;  // |1 + x|^2 - 1
  return {square_less_one < R(-0.5) ? std::log(std::hypot(1 + a, b)) : std::log1p(square_less_one) / 2, angle};
}

template <ComplexNumber C>
REEL_HD inline bool isnan(C x) {
  return std::isnan(x.real()) || std::isnan(x.imag());
}
template <ComplexNumber C>
REEL_HD inline bool isinf(C x) {
  return std::isinf(x.real()) || std::isinf(x.imag());
}
template <ComplexNumber C>
REEL_HD inline bool isfinite(C x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

/// x^y; SIMD batches have their own. The library's complex 0^0 is NaN.
template <class T>
REEL_HD inline T power(T x, T y) {
  if constexpr (is_complex_type<T>) {
    if (y == T(0)) return T(1);
  }
  return pow(x, y);
}

/// The remainder with the sign of b, also of a zero, as in Python. It is that of the division, corrected: of a large
/// quotient, a - b floor(a / b) would have no right digit.
template <class T>
REEL_HD inline T remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = fmod(a, b);
    if (r == 0) return copysign(r, b);
    return (r < 0) == (b < 0) ? r : r + b;
  } else {
    // The quotient rounds up to the next integer at times, never down past one, so r is exact but for one b.
    const T q = floor(over(a, b)), r = multiply_add(-q, b, a);
    const auto exact = abs(q) < number<T>(sizeof(scalar_of<T>) == 8 ? 0x1p52 : 0x1p23) && r == r;
    if (any(!exact)) return lane_by_lane([](auto x, auto y) { return math::remainder(x, y); }, a, b);
    return select(r == T(0), copysign(r, b), select((r < T(0)) != (b < T(0)), r + b, r));
  }
}

/// Range reduction of e^x for SIMD batches: x = k log 2 + r with integer k, so that e^x = 2^k e^r. Here
/// e^r - 1 = r + r^2 q(r). For single precision q has degree 4 and is fitted so that the error of e^r is at most 2^-28;
/// for double it is the Taylor series.
template <class T>
struct Halvings {
  T k, expm1_r;
  REEL_HD explicit Halvings(T x) {
    constexpr bool wide = sizeof(scalar_of<T>) == 8;
    k = nearbyint(x * number<T>(1.4426950408889634));
    const T high = number<T>(wide ? 0x1.62e42feep-1 : 0x1.62e4p-1),
            low = number<T>(wide ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cf79abcap-20);
    const T r = multiply_add(-k, low, multiply_add(-k, high, x));
    T q;
    if constexpr (wide) {
      constexpr int last = 13;
      double coefficient = 1;
      for (int i = 2; i <= last; ++i) coefficient /= i;
      q = number<T>(coefficient);
      for (int i = last; i > 2; --i) q = multiply_add(q, r, number<T>(coefficient *= i));
    } else {
      q = number<T>(0x1.6a2352p-10);
      for (double coefficient : {0x1.123a6cp-7, 0x1.5558f4p-5, 0x1.55549p-3, 0x1.fffffcp-2})
        q = multiply_add(q, r, number<T>(coefficient));
    }
    expm1_r = multiply_add(r * r, q, r);
  }
};

/// e^x, accurate to 1 ulp from overflow down to the smallest subnormal number; xsimd's own has an error of 1.5 ulp and
/// a smaller range at both ends.
template <class T>
REEL_HD inline T exponential(T x) {
  if constexpr (std::is_floating_point_v<T> || is_complex_type<T>) {
    return exp(x);  // the standard library's, and the GPU's, are good
  } else {
    constexpr bool wide = sizeof(scalar_of<T>) == 8;
    const T least = number<T>(wide ? -746.0 : -104.0), most = number<T>(wide ? 710.0 : 89.0);
    const Halvings<T> h(min(most, max(least, x)));  // on SIMD batches min and max return the second argument if NaN
    return scale_by_power(T(1) + h.expm1_r, h.k);   // from the SIMD library
  }
}

/// 1 / (1 + e) for 0 <= e <= 1, accurate to little more than half an ulp: 1 - r is exact, so the residual has only one
/// rounding.
template <class T>
REEL_HD inline T inverse_of_one_plus(T e) {
  const T r = rough_inverse(T(1) + e);
  return multiply_add(r, multiply_add(-r, e, T(1) - r), r);
}

/// e^x - 1; xsimd's own is infinite before the result is, and +0 for -0.
template <class T>
REEL_HD inline T exponential_less_one(T x) {
  if constexpr (std::is_floating_point_v<T> || is_complex_type<T>) {
    return expm1(x);
  } else {
    const auto large = x > number<T>(sizeof(scalar_of<T>) == 8 ? 709.0 : 88.0);
    const T y = select(x == T(0), x, expm1(x));
    return any(large) ? select(large, exponential(x), y) : y;  // the 1 is nothing beside it
  }
}

/// log(1 + x); xsimd's own is +0 for -0.
template <class T>
REEL_HD inline T logarithm_of_one_plus(T x) {
  if constexpr (std::is_floating_point_v<T> || is_complex_type<T>)
    return log1p(x);
  else
    return select(x == T(0), x, log1p(x));
}

/// The error function, which is +-1 to the last digit beyond the bound; xsimd's own overflows far out, to NaN, and is
/// off by up to 67 units of the last place in double precision.
template <class T>
REEL_HD inline T error_function(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return erf(x);
  } else if constexpr (sizeof(scalar_of<T>) == 8) {
    return lane_by_lane([](double v) { return erf(v); }, x);
  } else {
    const T bound = number<T>(4.5);
    return erf(min(bound, max(-bound, x)));  // NaN stays NaN, as in exponential
  }
}

/// a x^n + b x^(n - 1) + ..., the highest coefficient first.
template <class T, class... Coefficients>
REEL_HD inline T polynomial(T x, double highest, Coefficients... others) {
  T y = number<T>(highest);
  ((y = multiply_add(y, x, number<T>(others))), ...);
  return y;
}

/// x Phi(x), where Phi is the normal distribution. Where it is small it is computed as such: the 1 + erf of the usual
/// formula cancels. Beyond the bounds it is 0.
template <class T>
REEL_HD inline T gelu(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T root = T(0.7071067811865476);
    constexpr double rest = sizeof(T) == 8 ? -4.833646656726457e-17 : 0.7071067811865476 - static_cast<double>(root);
    const T at = x < T(-40) ? T(-40) : x, z = -at * root;
    T twice = erfc(z);
    if (at < 0) {  // erfc there has many times the relative error of z, so it is corrected by what z lost
      const T lost = multiply_add(-at, root, -z) - at * static_cast<T>(rest);
      twice -= lost * T(1.1283791670955126) * exp(-z * z);
    }
    return T(0.5) * at * twice;
  } else if constexpr (sizeof(scalar_of<T>) == 8) {
    return lane_by_lane([](double v) { return math::gelu(v); }, x);
  } else {
    const T bound = number<T>(14.5), at = max(-bound, x), size = min(bound, abs(at));  // NaN stays NaN
    const T square = size * size, lost = multiply_add(size, size, -square), half = number<T>(0.5);
    const T e = exponential(-half * square), bell = multiply_add(-half * lost, e, e), u = T(1) / (T(1) + half * size);
    // Fitted: Phi(-x) e^(x^2 / 2) / u for x > 1, and (Phi(x) - 1/2) / x of the square for |x| < 1.
    const T tail = bell * u *
                   polynomial(u, 0x1.a0e32cp-5, -0x1.272e84p-2, 0x1.2d2da2p-1, -0x1.fe5996p-2, 0x1.333aa4p-4,
                              0x1.476ccap-6, 0x1.3a6bbp-3, 0x1.97ef46p-3, 0x1.9888e4p-3);
    const T slope = polynomial(square, -0x1.ff867cp-18, 0x1.dbb0b6p-14, -0x1.36f96p-10, 0x1.46ce26p-7, -0x1.105832p-4,
                               0x1.988454p-2);
    return at * select(size < T(1), multiply_add(at, slope, half), select(at < T(0), tail, T(1) - tail));
  }
}

/// The angle of the point (b, a). xsimd's own divides a by b, so |a| = |b| are made finite and not 0 for it.
template <class T>
REEL_HD inline T angle_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return atan2(a, b);
  } else {
    const auto even = abs(a) == abs(b);
    return atan2(select(even && a != T(0), copysign(T(1), a), a), select(even, copysign(T(1), b), b));
  }
}

/// sqrt(a^2 + b^2). xsimd's own squares over- and underflow, so both are scaled by a power of 2 where one is very large
/// or both are very small.
template <class T>
REEL_HD inline T hypotenuse(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return hypot(a, b);
  } else {
    constexpr bool wide = sizeof(scalar_of<T>) == 8;
    const T p = abs(a), q = abs(b), most = select(p < q, q, p), infinite = number<T>(INFINITY);
    const T up = number<T>(wide ? 0x1p600 : 0x1p90), down = number<T>(wide ? 0x1p-600 : 0x1p-90);
    const auto large = most > number<T>(wide ? 0x1p500 : 0x1p60), small = most < number<T>(wide ? 0x1p-500 : 0x1p-50);
    const T scale = select(large, down, select(small, up, T(1))), back = select(large, up, select(small, down, T(1)));
    const T x = a * scale, y = b * scale;
    const T root = sqrt(multiply_add(x, x, y * y)) * back;
    return select(p == infinite || q == infinite, infinite, root);  // also beside NaN, as C has it
  }
}

/// The larger or the smaller of both, NaN if one of them is; of equal ones the first.
template <class T>
REEL_HD inline T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<scalar_of<T>>)
    return select(a < b || isnan(b), b, a);
  else
    return select(a < b, b, a);
}
template <class T>
REEL_HD inline T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<scalar_of<T>>)
    return select(b < a || isnan(b), b, a);
  else
    return select(b < a, b, a);
}

/// log x; xsimd's own is wrong for subnormal doubles.
template <class T>
REEL_HD inline T logarithm(T x) {
  if constexpr (std::is_floating_point_v<T> || is_complex_type<T>) {
    return log(x);
  } else {
    constexpr bool wide = sizeof(scalar_of<T>) == 8;
    const auto small = x < number<T>(wide ? 0x1p-1022 : 0x1p-126);
    const T factor = number<T>(0x1p60), shift = number<T>(60 * 0.6931471805599453);
    return log(select(small, x * factor, x)) - select(small, shift, T(0));
  }
}

}  // namespace reel::math
