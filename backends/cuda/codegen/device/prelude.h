// Replaces the standard headers that the functors include, for NVRTC, which has none: each of them maps to this file
// (kernel_source.cpp). No other compiler sees it.
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

namespace std {

using ::int32_t, ::int64_t, ::uint32_t, ::uint64_t, ::uint8_t;
using size_t = decltype(sizeof(0));

template <class T>
struct type_identity {
  using type = T;
};
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
};
template <class, class>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
T declval();
template <class F, class... T>
inline constexpr bool is_invocable_v = requires {
  declval<F>()(declval<T>()...);
};

struct string_view {
  const char* text;
  constexpr string_view(const char* t) : text(t) {}
};
struct logic_error {
  explicit logic_error(const char*) {}
};

/// Only a declaration that the headers need: generated kernels use those of complex.h.
template <class R>
struct complex {
  using value_type = R;
  R re, im;
  constexpr complex(R a = R(), R b = R()) : re(a), im(b) {}
  constexpr R real() const { return re; }
  constexpr R imag() const { return im; }
};
template <class R>
constexpr R real(const complex<R>& z) {
  return z.real();
}
template <class R>
constexpr R imag(const complex<R>& z) {
  return z.imag();
}
template <class R>
constexpr complex<R> conj(const complex<R>& z) {
  return {z.real(), -z.imag()};
}
template <class R>
R arg(const complex<R>& z) {
  return ::atan2(z.imag(), z.real());
}

template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}

#define REEL_FUNCTION(name)                           \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
#define REEL_FUNCTION2(name)                                      \
  inline float name(float x, float y) { return ::name##f(x, y); } \
  inline double name(double x, double y) { return ::name(x, y); }
REEL_FUNCTION(acos)
REEL_FUNCTION(asin)
REEL_FUNCTION(asinh)
REEL_FUNCTION(atan)
REEL_FUNCTION(ceil)
REEL_FUNCTION(cos)
REEL_FUNCTION(cosh)
REEL_FUNCTION(erf)
REEL_FUNCTION(erfc)
REEL_FUNCTION(exp)
REEL_FUNCTION(expm1)
REEL_FUNCTION(floor)
REEL_FUNCTION(log)
REEL_FUNCTION(log1p)
REEL_FUNCTION(nearbyint)
REEL_FUNCTION(sin)
REEL_FUNCTION(sinh)
REEL_FUNCTION(sqrt)
REEL_FUNCTION(tan)
REEL_FUNCTION(tanh)
REEL_FUNCTION(trunc)
REEL_FUNCTION2(atan2)
REEL_FUNCTION2(copysign)
REEL_FUNCTION2(fmod)
REEL_FUNCTION2(hypot)
REEL_FUNCTION2(pow)
#undef REEL_FUNCTION
#undef REEL_FUNCTION2
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return ::fma(a, b, c); }
template <class T>
constexpr bool isnan(T x) {
  return x != x;
}
template <class T>
constexpr bool isinf(T x) {
  return x == x && x - x != T(0);
}
template <class T>
constexpr bool isfinite(T x) {
  return x - x == T(0);
}

}  // namespace std
