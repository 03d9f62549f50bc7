// Elementwise kernels: map, zip, select, cast, fill. The tables by functor and dtype are generated from the functors'
// type lists.
#include <array>
#include <bit>
#include <cstring>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/piece.h"
#include "backends/cpu/simd/complex_simd.h"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/simd/vectors.h"
#include "backends/cpu/threads/enough.h"
#include "backends/shared/convert.h"
#include "backends/shared/words.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cpu {

namespace {

using ZipKernel = void (*)(const ZipArgs&);
constexpr std::size_t dtypes = std::size(all_dtypes);

/// Functions of complex numbers that the compiler does not vectorize, or would round in its own way.
template <class F, class T>
constexpr bool by_complexes = is_complex_type<T> &&
                              (std::is_same_v<F, Abs> || std::is_same_v<F, Sign> || std::is_same_v<F, Reciprocal> ||
                               std::is_same_v<F, Div> || std::is_same_v<F, Mul> || std::is_same_v<F, Square>);

template <class F, class T>
void map_piece(const Piece& p) {
  using Out = result_of<F, T>;
  const F& f = p.params->as<F>();
  const T* x = static_cast<const T*>(p.a);
  Out* out = static_cast<Out*>(p.out);
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<T, Out>)
    map_simd(p.n, x, out, f);
  else if constexpr (by_complexes<F, T>)
    map_complexes(p.n, x, out, f);
  else
    for (std::int64_t i = 0; i < p.n; ++i) out[i] = f(x[i]);
}

template <class F, class T>
void zip_piece(const Piece& p) {
  using Out = result_of<F, T>;
  const F& f = p.params->as<F>();
  const T *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
  Out* out = static_cast<Out*>(p.out);
  constexpr bool simd = std::is_floating_point_v<T> && std::is_same_v<T, Out>;
  const auto run = [&]<bool one_a, bool one_b>() {
    if constexpr (simd) {
      zip_simd<one_a, one_b>(p.n, a, b, out, f);
    } else if constexpr (by_complexes<F, T>) {
      zip_complexes<one_a, one_b>(p.n, a, b, out, f);
    } else {
      for (std::int64_t i = 0; i < p.n; ++i) out[i] = f(a[one_a ? 0 : i], b[one_b ? 0 : i]);
    }
  };
  if (p.one_a && p.one_b) {
    if (p.n == 0) return;
    zip_piece<F, T>({1, a, b, nullptr, out, p.params});  // not f(*a, *b): elements of vectors may have other bits
    std::fill_n(out + 1, p.n - 1, out[0]);
  } else if (p.one_a)
    run.template operator()<true, false>();
  else if (p.one_b)
    run.template operator()<false, true>();
  else
    run.template operator()<false, false>();
}

constexpr std::int64_t short_row = 64;

/// Is the operand broadcast along one axis of rows of n elements: one row for all (0, 1), or one element for each row
/// (1, 0)?
bool repeats(const StridedLoop<3>& loop, std::size_t operand) {
  const std::int64_t row = loop.strides[0][operand], column = loop.strides[1][operand];
  return (row == 0 && column == 1) || (row == 1 && column == 0);
}

/// Short rows fill vectors badly. If one operand is contiguous like the result and the other is broadcast, the latter
/// is expanded for a block of rows first, and one call handles the whole block. False for other loops.
template <class F, class T>
[[gnu::noinline]] bool zip_short_rows(const ZipArgs& args) {  // not inlined: its block would be in each call's frame
  const StridedLoop<3>& loop = args.loop;
  if (loop.dims[1] == 0 || loop.dims[1] >= short_row || loop.dims[0] < 4) return false;
  const std::int64_t n = loop.dims[1], rows = loop.dims[0];
  const auto full = [&](std::size_t k) { return loop.strides[0][k] == n && loop.strides[1][k] == 1; };
  if (!full(2) || !(full(0) ? repeats(loop, 1) : full(1) && repeats(loop, 0))) return false;
  constexpr std::int64_t block = 1024;
  alignas(64) T written[block];
  const std::int64_t high = block / n;
  const bool left = !full(0), by_row = loop.strides[1][left ? 0 : 1] == 0;
  const T* repeated = static_cast<const T*>(left ? args.a : args.b);
  const T* whole = static_cast<const T*>(left ? args.b : args.a);
  auto* out = static_cast<result_of<F, T>*>(args.out);
  for (std::int64_t r = 0; r < rows; r += high, whole += high * n, out += high * n) {
    const std::int64_t some = std::min(high, rows - r);
    for (std::int64_t k = 0; k < some && (by_row || r == 0); ++k) {
      for (std::int64_t j = 0; j < n; ++j) written[k * n + j] = by_row ? repeated[r + k] : repeated[j];
    }
    zip_piece<F, T>({some * n, left ? written : whole, left ? whole : written, nullptr, out, &args.params});
  }
  return true;
}

template <class F, class T>
void zip_kernel(const ZipArgs& args) {
  const std::int64_t n = args.loop.inner_dim();
  const auto stride = args.loop.inner_stride();
  const std::int64_t sa = stride[0], sb = stride[1], so = stride[2];
  // operands of one shape: nearly every small op
  if (args.loop.rank <= 1 && (n == 1 || (sa == 1 && sb == 1 && so == 1)))
    return zip_piece<F, T>({n, args.a, args.b, nullptr, args.out, &args.params});
  if (args.loop.rank == 2 && zip_short_rows<F, T>(args)) return;
  using Out = result_of<F, T>;
  const F& f = args.params.as<F>();
  const T* const a0 = static_cast<const T*>(args.a);
  const T* const b0 = static_cast<const T*>(args.b);
  Out* const out0 = static_cast<Out*>(args.out);
  // Runs may be short, so those along the axis before the innermost one have a loop of their own, with pointers in
  // registers.
  StridedLoop<3> outer = args.loop;
  if (outer.rank > 0) --outer.rank;
  const std::int64_t runs = outer.inner_dim();
  const auto step = outer.inner_stride();
  const auto each_run = [&](auto&& run) {
    if (n == 0) return;
    outer.for_each_run([&](const StridedLoop<3>::Offsets& at) {
      const T *a = a0 + at[0], *b = b0 + at[1];
      Out* out = out0 + at[2];
      for (std::int64_t i = 0; i < runs; ++i, a += step[0], b += step[1], out += step[2]) run(a, b, out);
    });
  };
  const auto pieces = [&]<bool one_a, bool one_b>() {
    if constexpr (std::is_floating_point_v<T> && std::is_same_v<T, Out>) {  // runs may be short: call directly
      if (n % static_cast<std::int64_t>(xsimd::batch<T>::size) == 0)
        each_run([&](const T* a, const T* b, Out* out) { zip_batches<one_a, one_b>(n, a, b, out, f); });
      else
        each_run([&](const T* a, const T* b, Out* out) { zip_simd<one_a, one_b>(n, a, b, out, f); });
    } else
      each_run([&](const T* a, const T* b, Out* out) {
        zip_piece<F, T>({n, a, b, nullptr, out, &args.params, one_a, one_b});
      });
  };
  if (so == 1 && sa == 0 && sb == 1) return pieces.template operator()<true, false>();
  if (so == 1 && sa == 1 && sb == 0) return pieces.template operator()<false, true>();
  if (so == 1 && sa == 1 && sb == 1) return pieces.template operator()<false, false>();
  each_run([&](const T* a, const T* b, Out* out) {
    if (n == 1 || (so == 1 && sa == 0 && sb == 0))
      return zip_piece<F, T>({n, a, b, nullptr, out, &args.params, true, true});
    for (std::int64_t i = 0; i < n; ++i) out[i * so] = f(a[i * sa], b[i * sb]);
  });
}

template <class From, class To>
void cast_piece(const Piece& p) {
  const From* in = static_cast<const From*>(p.a);
  To* out = static_cast<To*>(p.out);
  for (std::int64_t i = 0; i < p.n; ++i) out[i] = element_cast<To>(in[i]);
}

/// Bytes widened to Word.
template <class Word>
Vector<Word> widened(const std::uint8_t* from) {
#ifdef __AVX512F__  // GCC 12 would convert the bytes one by one
  if constexpr (sizeof(Word) == 4)
    return std::bit_cast<Vector<Word>>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  else if constexpr (sizeof(Word) == 8)
    return std::bit_cast<Vector<Word>>(_mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  else
#endif
    return __builtin_convertvector((load<std::uint8_t, lanes<Word>>(from)), Vector<Word>);
}

/// a where c is true, b elsewhere.
template <class Word>
void select_piece(const Piece& p) {
  const Word *a = static_cast<const Word*>(p.a), *b = static_cast<const Word*>(p.b);
  const auto* condition = static_cast<const std::uint8_t*>(p.c);
  Word* out = static_cast<Word*>(p.out);
  const std::int64_t n = p.n;
  std::int64_t i = 0;
  if constexpr (std::is_integral_v<Word>) {
    for (; i + lanes<Word> <= n; i += lanes<Word>)
      store(out + i, widened<Word>(condition + i) != 0 ? load(a + i) : load(b + i));
  }
  for (; i < n; ++i) out[i] = condition[i] ? a[i] : b[i];
}

PieceKernel select_kernel(std::size_t element_bytes) {
  return dispatch_width(element_bytes,
                        []<class Word>(std::type_identity<Word>) -> PieceKernel { return select_piece<Word>; });
}

PieceKernel cast_kernel(DType from, DType to) {
  return dispatch(from, [&]<class From>(std::type_identity<From>) {
    return dispatch(to, []<class To>(std::type_identity<To>) -> PieceKernel { return cast_piece<From, To>; });
  });
}

/// A kernel, and the bytes of an element of its result.
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
  static constexpr PieceKernel kernel = map_piece<F, T>;
};
template <class F, class T>
struct MakeZip {
  static constexpr ZipKernel kernel = zip_kernel<F, T>;
};
template <class F, class T>
struct MakeZipPiece {
  static constexpr PieceKernel kernel = zip_piece<F, T>;
};

template <class... F>
constexpr auto map_table(TypeList<F...>) {
  return std::array{row<F, PieceKernel, MakeMap>()...};
}
template <class... F>
constexpr auto zip_table(TypeList<F...>) {
  return std::array{row<F, ZipKernel, MakeZip>()...};
}
template <class... F>
constexpr auto zip_piece_table(TypeList<F...>) {
  return std::array{row<F, PieceKernel, MakeZipPiece>()...};
}

const auto maps = map_table(UnaryFunctors{});
const auto zips = zip_table(BinaryFunctors{});
const auto zip_pieces = zip_piece_table(BinaryFunctors{});

}  // namespace

namespace {

template <class P>
P* move(P* p, std::int64_t bytes) {
  return reinterpret_cast<P*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(bytes));
}

}  // namespace

void resolve(FusedCall& call) {
  const auto functor = static_cast<std::size_t>(call.functor), dtype = static_cast<std::size_t>(call.dtype);
  switch (call.kind) {
    case FusedCall::Kind::map:
      call.kernel = reinterpret_cast<FusedCall::Kernel>(maps[functor][dtype].kernel);
      break;
    case FusedCall::Kind::zip:
      call.kernel = reinterpret_cast<FusedCall::Kernel>(zip_pieces[functor][dtype].kernel);
      break;
    case FusedCall::Kind::select:
      call.kernel = reinterpret_cast<FusedCall::Kernel>(select_kernel(size_of(call.dtype)));
      break;
    case FusedCall::Kind::cast:
      call.kernel = reinterpret_cast<FusedCall::Kernel>(cast_kernel(call.dtype, call.to));
      break;
    case FusedCall::Kind::roll:
      break;
  }
}

void Cpu::map(const MapArgs& a) {
  const auto& [kernel, bytes] = maps[static_cast<std::size_t>(a.functor)][static_cast<std::size_t>(a.dtype)];
  const auto in = static_cast<std::int64_t>(size_of(a.dtype));
  shared(a.n, enough_elements, [&](std::int64_t first, std::int64_t last) {
    kernel({last - first, move(a.x, first * in), nullptr, nullptr, move(a.out, first * bytes), &a.params});
  });
}

void Cpu::zip(const ZipArgs& a) {
  const auto& [kernel, bytes] = zips[static_cast<std::size_t>(a.functor)][static_cast<std::size_t>(a.dtype)];
  if (pool_.threads() == 1 || a.loop.numel() < enough_elements) return kernel(a);
  const auto in = static_cast<std::int64_t>(size_of(a.dtype));
  const auto along_outermost_axis = [&](std::int64_t first, std::int64_t last) {
    StridedLoop<3> part = a.loop;
    part.dims[0] = last - first;
    const auto& stride = a.loop.strides[0];
    kernel({a.functor, a.params, a.dtype, part, move(a.a, first * stride[0] * in), move(a.b, first * stride[1] * in),
            move(a.out, first * stride[2] * bytes)});
  };
  shared(a.loop.dims[0], 1, along_outermost_axis, a.loop.rank == 1 ? 64 : 1);
}

void Cpu::fill(const FillArgs& a) {
  dispatch(a.dtype,
           [&]<class T>(std::type_identity<T>) { std::fill_n(static_cast<T*>(a.out), a.n, element_cast<T>(a.value)); });
}

void Cpu::cast(const CastArgs& a) {
  const auto in = static_cast<std::int64_t>(size_of(a.from)), out = static_cast<std::int64_t>(size_of(a.to));
  shared(a.n, enough_elements, [&](std::int64_t first, std::int64_t last) {
    cast_kernel(a.from, a.to)({last - first, move(a.in, first * in), nullptr, nullptr, move(a.out, first * out)});
  });
}

void Cpu::select(const SelectArgs& s) {
  const auto bytes = static_cast<std::int64_t>(size_of(s.dtype));
  shared(s.n, enough_elements, [&](std::int64_t first, std::int64_t last) {
    select_kernel(size_of(s.dtype))({last - first, move(s.a, first * bytes), move(s.b, first * bytes),
                                     s.condition + first, move(s.out, first * bytes)});
  });
}

}  // namespace reel::cpu
