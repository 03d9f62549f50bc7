// Element types. Real and complex floating point are differentiable; i32 and boolean are for indices and masks.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#ifdef __CUDACC__
#define REEL_HD __host__ __device__  // code that the CPU and GPUs share
#else
#define REEL_HD
#endif

namespace reel {

enum class DType : std::uint8_t { f32, f64, c64, c128, i32, boolean };

inline constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::c64, DType::c128, DType::i32, DType::boolean};

/// Calls f with std::type_identity<T>, T the C++ type of the dtype.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::c64:
      return f(std::type_identity<std::complex<float>>{});
    case DType::c128:
      return f(std::type_identity<std::complex<double>>{});
    case DType::i32:
      return f(std::type_identity<std::int32_t>{});
    case DType::boolean:
      return f(std::type_identity<bool>{});
  }
  throw std::logic_error("reel: internal: dtype out of range");
}

/// The same for f32 and f64; throws for others.
template <class F>
decltype(auto) dispatch_floating(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(std::type_identity<float>{});
  if (dtype == DType::f64) return f(std::type_identity<double>{});
  throw std::logic_error("reel: internal: f32 or f64 expected");
}

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;

/// The dtype of elements of the C++ type T.
template <class T>
constexpr DType dtype_of() {
  static_assert(
      std::is_floating_point_v<T> || is_complex_type<T> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, bool>,
      "elements are float, double, complex of either, std::int32_t or bool");
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::c64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::c128;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
}

/// The size of an element in bytes.
constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {4, 8, 8, 16, 4, 1};
  return sizes[static_cast<int>(dtype)];
}
/// "f32"
constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "c64", "c128", "i32", "bool"};
  return names[static_cast<int>(dtype)];
}
/// True for c64 and c128.
constexpr bool is_complex(DType dtype) { return dtype == DType::c64 || dtype == DType::c128; }
/// True for f32 and f64.
constexpr bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
/// True for the types that have gradients.
constexpr bool is_differentiable(DType dtype) { return is_floating(dtype) || is_complex(dtype); }
/// f32 for c64, f64 for c128, the type itself otherwise.
constexpr DType real_of(DType dtype) {
  return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
}
/// c64 for f32, c128 for f64, the type itself otherwise.
constexpr DType complex_of(DType dtype) {
  return dtype == DType::f32 ? DType::c64 : dtype == DType::f64 ? DType::c128 : dtype;
}

}  // namespace reel
