// cast, select, fill.
#include <cmath>
#include <cstring>

#include "backends/cuda/elementwise.h"

namespace reel::cuda {

namespace {

template <class To>
struct As {
  template <class From>
  __device__ To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>)
      return x != From(0);
    else if constexpr (is_complex_type<From> && is_complex_type<To>)
      return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    else if constexpr (is_complex_type<From>)
      return static_cast<To>(x.real());
    else if constexpr (is_complex_type<To>)
      return To(static_cast<typename To::value_type>(x), 0);
    else
      return static_cast<To>(x);
  }
};

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

/// Packs first, if the arrays are laid for them, then what is left.
template <class Word, int per>
__global__ void select_elements(std::int64_t n, bool packs, const bool* condition, const Word* a, const Word* b,
                                Word* out) {
  std::int64_t done = 0;
  if (packs) {
    const std::int64_t whole = n / per;
    using Words = Pack<Word, per>;
    for (std::int64_t g = thread(); g < whole; g += all_threads()) {
      const auto which = reinterpret_cast<const Pack<bool, per>*>(condition)[g];
      const Words x = reinterpret_cast<const Words*>(a)[g], y = reinterpret_cast<const Words*>(b)[g];
      Words chosen;
#pragma unroll
      for (int k = 0; k < per; ++k) chosen.at[k] = which.at[k] ? x.at[k] : y.at[k];
      reinterpret_cast<Words*>(out)[g] = chosen;
    }
    done = whole * per;
  }
  for (std::int64_t i = done + thread(); i < n; i += all_threads()) out[i] = condition[i] ? a[i] : b[i];
}

template <class Word, int per>
__global__ void fill_elements(std::int64_t n, bool packs, Word value, Word* out) {
  std::int64_t done = 0;
  if (packs) {
    const std::int64_t whole = n / per;
    Pack<Word, per> values;
#pragma unroll
    for (int k = 0; k < per; ++k) values.at[k] = value;
    for (std::int64_t g = thread(); g < whole; g += all_threads()) reinterpret_cast<Pack<Word, per>*>(out)[g] = values;
    done = whole * per;
  }
  for (std::int64_t i = done + thread(); i < n; i += all_threads()) out[i] = value;
}

}  // namespace

void Cuda::cast(const CastArgs& a) {
  if (a.n == 0) return;
  dispatch(a.from, [&]<class From>(std::type_identity<From>) {
    dispatch(a.to, [&]<class To>(std::type_identity<To>) {
      using T = device_type<To>;
      map_all(As<T>(), a.n, static_cast<const device_type<From>*>(a.in), static_cast<T*>(a.out), stream());
    });
  });
  launched("cast", {a.n});
}

void Cuda::select(const SelectArgs& s) {
  if (s.n == 0) return;
  with_word(s.element_bytes, [&]<class Word>(Word) {
    constexpr int per = neighbours<Word>;
    const bool packs = aligned(s.condition, per) && aligned(s.a, 16) && aligned(s.b, 16) && aligned(s.out, 16);
    select_elements<Word, per><<<blocks_for(packs ? s.n / per : s.n), threads_per_block, 0, stream()>>>(
        s.n, packs, s.condition, static_cast<const Word*>(s.a), static_cast<const Word*>(s.b),
        static_cast<Word*>(s.out));
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
      constexpr int per = neighbours<Word>;
      const bool packs = aligned(a.out, 16);
      fill_elements<Word, per><<<blocks_for(packs ? a.n / per : a.n), threads_per_block, 0, stream()>>>(
          a.n, packs, word, static_cast<Word*>(a.out));
    });
  });
  launched("fill", {a.n});
}

}  // namespace reel::cuda
