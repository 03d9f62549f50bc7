// cast, select, fill.
#include <cmath>
#include <cstring>

#include "backends/cuda/elementwise.h"

namespace reel::cuda {

namespace {

template <class From, class To>
__global__ void cast_elements(std::int64_t n, const From* in, To* out) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) {
    if constexpr (std::is_same_v<To, bool>)
      out[i] = in[i] != From(0);
    else if constexpr (is_complex_type<From> && is_complex_type<To>)
      out[i] =
          To(static_cast<typename To::value_type>(in[i].real()), static_cast<typename To::value_type>(in[i].imag()));
    else if constexpr (is_complex_type<From>)
      out[i] = static_cast<To>(in[i].real());
    else if constexpr (is_complex_type<To>)
      out[i] = To(static_cast<typename To::value_type>(in[i]), 0);
    else
      out[i] = static_cast<To>(in[i]);
  }
}

/// Elements as words of their size.
struct alignas(16) Sixteen {
  std::uint64_t low, high;
};
template <class F>
void with_word(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      return f(Sixteen{});
  }
}

template <class Word>
__global__ void select_elements(std::int64_t n, const bool* condition, const Word* a, const Word* b, Word* out) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) out[i] = condition[i] ? a[i] : b[i];
}

template <class Word>
__global__ void fill_elements(std::int64_t n, Word value, Word* out) {
  for (std::int64_t i = thread(); i < n; i += all_threads()) out[i] = value;
}

}  // namespace

void Cuda::cast(const CastArgs& a) {
  if (a.n == 0) return;
  dispatch(a.from, [&]<class From>(std::type_identity<From>) {
    dispatch(a.to, [&]<class To>(std::type_identity<To>) {
      using F = device_type<From>;
      using T = device_type<To>;
      cast_elements<F, T><<<blocks_for(a.n), threads_per_block, 0, stream()>>>(a.n, static_cast<const F*>(a.in),
                                                                               static_cast<T*>(a.out));
    });
  });
  launched("cast", {a.n});
}

void Cuda::select(const SelectArgs& s) {
  if (s.n == 0) return;
  with_word(s.element_bytes, [&]<class Word>(Word) {
    select_elements<<<blocks_for(s.n), threads_per_block, 0, stream()>>>(
        s.n, s.condition, static_cast<const Word*>(s.a), static_cast<const Word*>(s.b), static_cast<Word*>(s.out));
  });
  launched("select", {s.n});
}

void Cuda::fill(const FillArgs& a) {
  if (a.n == 0) return;
  if (a.value == 0.0 && !std::signbit(a.value.real()) && !std::signbit(a.value.imag())) {
    const std::size_t bytes = static_cast<std::size_t>(a.n) * size_of(a.dtype);
    return check(cudaMemsetAsync(a.out, 0, bytes, stream()), "fill");
  }
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    T value;
    if constexpr (is_complex_type<T>)
      value = T(a.value);
    else if constexpr (std::is_same_v<T, bool>)
      value = a.value != 0.0;
    else
      value = static_cast<T>(a.value.real());
    with_word(sizeof(T), [&]<class Word>(Word word) {
      std::memcpy(&word, &value, std::min(sizeof value, sizeof word));  // they are the same
      fill_elements<<<blocks_for(a.n), threads_per_block, 0, stream()>>>(a.n, word, static_cast<Word*>(a.out));
    });
  });
  launched("fill", {a.n});
}

}  // namespace reel::cuda
