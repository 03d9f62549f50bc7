// map, zip, select, cast, fill: one element at a time. Tables by functor and dtype are made from the functors' type
// lists.
#include <array>
#include <cstring>

#include "backends/cpu/cpu.h"
#include "backends/cpu/simd.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cpu {

namespace {

using MapKernel = void (*)(const MapArgs&);
using ZipKernel = void (*)(const ZipArgs&);
constexpr std::size_t dtypes = std::size(all_dtypes);

template <class F, class T>
void map_kernel(const MapArgs& a) {
  using Out = result_of<F, T>;
  const F& f = *static_cast<const F*>(a.params);
  const T* x = static_cast<const T*>(a.x);
  Out* out = static_cast<Out*>(a.out);
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<T, Out>)
    map_simd(a.n, x, out, f);
  else
    for (std::int64_t i = 0; i < a.n; ++i) out[i] = f(x[i]);
}

template <class F, class T>
void zip_kernel(const ZipArgs& args) {
  using Out = result_of<F, T>;
  const F& f = *static_cast<const F*>(args.params);
  const T* const a0 = static_cast<const T*>(args.a);
  const T* const b0 = static_cast<const T*>(args.b);
  Out* const out0 = static_cast<Out*>(args.out);
  const std::int64_t n = args.loop.inner_dim();
  const auto stride = args.loop.inner_stride();
  const std::int64_t sa = stride[0], sb = stride[1], so = stride[2];
  constexpr bool simd = std::is_floating_point_v<T> && std::is_same_v<T, Out>;
  args.loop.for_each_run([&](const Loop<3>::Offsets& at) {
    const T *a = a0 + at[0], *b = b0 + at[1];
    Out* out = out0 + at[2];
    if constexpr (simd) {
      if (so == 1 && sa == 1 && sb == 1) return zip_simd<false, false>(n, a, b, out, f);
      if (so == 1 && sa == 1 && sb == 0) return zip_simd<false, true>(n, a, b, out, f);
      if (so == 1 && sa == 0 && sb == 1) return zip_simd<true, false>(n, a, b, out, f);
    }
    for (std::int64_t i = 0; i < n; ++i) out[i * so] = f(a[i * sa], b[i * sb]);
  });
}

/// A kernel, and the bytes of an element that it makes.
template <class Kernel>
struct Entry {
  Kernel kernel = nullptr;
  std::int64_t bytes = 0;
};

template <class F, class Kernel, template <class, class> class Make>
constexpr std::array<Entry<Kernel>, dtypes> row() {
  std::array<Entry<Kernel>, dtypes> kernels{};
  const auto put = [&]<class T>(std::type_identity<T>) {
    if constexpr (takes<F>(dtype_of<T>()))
      kernels[static_cast<std::size_t>(dtype_of<T>())] = {Make<F, T>::kernel, sizeof(result_of<F, T>)};
  };
  for (DType d : all_dtypes) dispatch(d, put);
  return kernels;
}

template <class F, class T>
struct MakeMap {
  static constexpr MapKernel kernel = map_kernel<F, T>;
};
template <class F, class T>
struct MakeZip {
  static constexpr ZipKernel kernel = zip_kernel<F, T>;
};

template <class... F>
constexpr auto map_table(TypeList<F...>) {
  return std::array{row<F, MapKernel, MakeMap>()...};
}
template <class... F>
constexpr auto zip_table(TypeList<F...>) {
  return std::array{row<F, ZipKernel, MakeZip>()...};
}

const auto maps = map_table(UnaryFunctors{});
const auto zips = zip_table(BinaryFunctors{});

}  // namespace

namespace {

constexpr std::int64_t enough = 1 << 15;  // elements that are worth a second thread

template <class P>
P* move(P* p, std::int64_t bytes) {
  return reinterpret_cast<P*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(bytes));
}

}  // namespace

void Cpu::map(const MapArgs& a) {
  const auto& [kernel, bytes] = maps[static_cast<std::size_t>(a.functor)][static_cast<std::size_t>(a.dtype)];
  if (a.n < enough) return kernel(a);
  const auto in = static_cast<std::int64_t>(size_of(a.dtype));
  shared(a.n, enough, [&](std::int64_t first, std::int64_t last) {
    kernel({a.functor, a.params, a.dtype, last - first, move(a.x, first * in), move(a.out, first * bytes)});
  });
}

void Cpu::zip(const ZipArgs& a) {
  const auto& [kernel, bytes] = zips[static_cast<std::size_t>(a.functor)][static_cast<std::size_t>(a.dtype)];
  if (team_.threads() == 1 || a.loop.numel() < enough) return kernel(a);
  const auto in = static_cast<std::int64_t>(size_of(a.dtype));
  const auto along_outermost_axis = [&](std::int64_t first, std::int64_t last) {
    Loop<3> part = a.loop;
    part.dims[0] = last - first;
    const auto& stride = a.loop.strides[0];
    kernel({a.functor, a.params, a.dtype, part, move(a.a, first * stride[0] * in), move(a.b, first * stride[1] * in),
            move(a.out, first * stride[2] * bytes)});
  };
  shared(a.loop.dims[0], 1, along_outermost_axis, a.loop.rank == 1 ? 64 : 1);
}

void Cpu::fill(const FillArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    T value;
    if constexpr (is_complex_type<T>)
      value = T(a.value);
    else if constexpr (std::is_same_v<T, bool>)
      value = a.value != 0.0;
    else
      value = static_cast<T>(a.value.real());
    std::fill_n(static_cast<T*>(a.out), a.n, value);
  });
}

void Cpu::cast(const CastArgs& a) {
  dispatch(a.from, [&]<class From>(std::type_identity<From>) {
    dispatch(a.to, [&]<class To>(std::type_identity<To>) {
      const From* in = static_cast<const From*>(a.in);
      To* out = static_cast<To*>(a.out);
      for (std::int64_t i = 0; i < a.n; ++i) {
        if constexpr (std::is_same_v<To, bool>)
          out[i] = in[i] != From(0);
        else if constexpr (is_complex_type<From> && is_complex_type<To>)
          out[i] = To(in[i]);
        else if constexpr (is_complex_type<From>)
          out[i] = static_cast<To>(in[i].real());
        else if constexpr (is_complex_type<To>)
          out[i] = To(static_cast<typename To::value_type>(in[i]));
        else
          out[i] = static_cast<To>(in[i]);
      }
    });
  });
}

namespace {
/// By masks of bits, which vectorises, as a choice by bool does not.
template <class Word>
void select_words(const SelectArgs& s) {
  const Word *a = static_cast<const Word*>(s.a), *b = static_cast<const Word*>(s.b);
  const auto* condition = reinterpret_cast<const std::uint8_t*>(s.condition);
  Word* out = static_cast<Word*>(s.out);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const auto mask = static_cast<Word>(0 - static_cast<Word>(condition[i]));
    out[i] = static_cast<Word>((a[i] & mask) | (b[i] & ~mask));
  }
}
}  // namespace

void Cpu::select(const SelectArgs& s) {
  switch (s.element_bytes) {
    case 1:
      return select_words<std::uint8_t>(s);
    case 4:
      return select_words<std::uint32_t>(s);
    case 8:
      return select_words<std::uint64_t>(s);
    default: {
      const auto *a = static_cast<const std::complex<double>*>(s.a), *b = static_cast<const std::complex<double>*>(s.b);
      auto* out = static_cast<std::complex<double>*>(s.out);
      for (std::int64_t i = 0; i < s.n; ++i) out[i] = s.condition[i] ? a[i] : b[i];
    }
  }
}

}  // namespace reel::cpu
