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

template <bool one_a, bool one_b, class F, class T>
void zip_run(std::int64_t n, const T* a, const T* b, result_of<F, T>* out, const F& f) {
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<T, result_of<F, T>>)
    zip_simd<one_a, one_b>(n, a, b, out, f);
  else if constexpr (by_complexes<F, T>)
    zip_complexes<one_a, one_b>(n, a, b, out, f);
  else {
    REEL_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[one_a ? 0 : i], b[one_b ? 0 : i]);
  }
}

template <class F, class T>
[[gnu::noinline]] void zip_piece(const Piece& p) {  // inlined into other kernels, it takes minutes to compile
  const F& f = p.params->as<F>();
  const T *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
  auto* out = static_cast<result_of<F, T>*>(p.out);
  if (p.one_a && p.one_b) {
    if (p.n == 0) return;
    zip_run<false, false>(1, a, b, out, f);  // not f(*a, *b): elements of vectors may have other bits
    std::fill_n(out + 1, p.n - 1, out[0]);
  } else if (p.one_a) {
    zip_run<true, false>(p.n, a, b, out, f);
  } else if (p.one_b) {
    zip_run<false, true>(p.n, a, b, out, f);
  } else {
    zip_run<false, false>(p.n, a, b, out, f);
  }
}

/// Runs of the innermost axis, one after the other; strides and steps are in elements.
struct Runs {
  std::int64_t runs, n;
  StridedLoop<3>::Offsets step, stride;  // from run to run, and within one
  const void *a, *b;
  void* out;
  const Params* params;
};
using RunsKernel =
    void (*)(Runs);  // by value: what is stored could change it otherwise, for all that the compiler knows

/// Contiguous runs, or with one_a or one_b those whose operand is one element for each run.
template <class F, class T, bool one_a, bool one_b>
void contiguous_runs(Runs r) {
  using Out = result_of<F, T>;
  const F& f = r.params->as<F>();
  const auto each_run = [&](auto&& run) {
    const T *a = static_cast<const T*>(r.a), *b = static_cast<const T*>(r.b);
    Out* out = static_cast<Out*>(r.out);
    for (std::int64_t i = 0; i < r.runs; ++i, a += r.step[0], b += r.step[1], out += r.step[2]) run(a, b, out);
  };
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<T, Out>) {
    if (r.n % static_cast<std::int64_t>(xsimd::batch<T>::size) == 0)
      return each_run([&](const T* a, const T* b, Out* out) { zip_batches<one_a, one_b>(r.n, a, b, out, f); });
  }
  each_run([&](const T* a, const T* b, Out* out) { zip_run<one_a, one_b>(r.n, a, b, out, f); });
}

template <class F, class T>
void strided_runs(Runs r) {
  const F& f = r.params->as<F>();
  const T *a = static_cast<const T*>(r.a), *b = static_cast<const T*>(r.b);
  auto* out = static_cast<result_of<F, T>*>(r.out);
  const auto [sa, sb, so] = r.stride;
  const bool pieces = r.n == 1 || (so == 1 && sa == 0 && sb == 0);
  for (std::int64_t k = 0; k < r.runs; ++k, a += r.step[0], b += r.step[1], out += r.step[2]) {
    if (pieces)
      zip_piece<F, T>({r.n, a, b, nullptr, out, r.params, true, true});
    else
      for (std::int64_t i = 0; i < r.n; ++i) out[i * so] = f(a[i * sa], b[i * sb]);
  }
}

constexpr std::int64_t short_row = 64;

/// Is the operand broadcast along one axis of rows of n elements: one row for all (0, 1), or one element for each row
/// (1, 0)?
bool repeats(const StridedLoop<3>& loop, std::size_t operand) {
  const std::int64_t row = loop.strides[0][operand], column = loop.strides[1][operand];
  return (row == 0 && column == 1) || (row == 1 && column == 0);
}

bool is_contiguous(const StridedLoop<3>& loop, std::size_t operand) {
  return loop.strides[0][operand] == loop.dims[1] && loop.strides[1][operand] == 1;
}

/// Are the rows too short to fill vectors, and is at least one operand broadcast, the other one contiguous like the
/// result or broadcast, too?
bool has_short_rows(const StridedLoop<3>& loop) {
  if (loop.rank != 2 || loop.dims[1] == 0 || loop.dims[1] >= short_row || loop.dims[0] < 4) return false;
  const bool left = repeats(loop, 0), right = repeats(loop, 1);
  return is_contiguous(loop, 2) && (left || right) && (left || is_contiguous(loop, 0)) &&
         (right || is_contiguous(loop, 1));
}

/// Writes each of `rows` elements n times, and up to a vector beyond.
template <class T>
void write_rows(const T* from, std::int64_t rows, std::int64_t n, T* to) {
  for (std::int64_t k = 0; k < rows; ++k, to += n) {
    if constexpr (std::is_same_v<T, bool> || is_complex_type<T>) {
      std::fill_n(to, n, from[k]);
    } else {
      const Vector<T> all = Vector<T>{} + from[k];
      for (std::int64_t j = 0; j < n; j += lanes<T>) store(to + j, all);
    }
  }
}

/// An operand of short rows, a block of rows at a time: where it lies, or expanded if it is broadcast.
template <class T>
class BlockOfRows {
 public:
  static constexpr std::int64_t size = 1024;

  BlockOfRows(const StridedLoop<3>& loop, std::size_t operand, const void* data)
      : data_(static_cast<const T*>(data)),
        row_(loop.strides[0][operand]),
        n_(loop.dims[1]),
        one_a_row_(loop.strides[1][operand] == 0) {
    const std::int64_t rows = std::min(size / n_, loop.dims[0]);
    for (std::int64_t k = 0; row_ == 0 && k < rows; ++k) std::copy_n(data_, n_, written_ + k * n_);
  }
  const T* rows(std::int64_t first, std::int64_t count) {
    if (row_ != 0 && !one_a_row_) return data_ + first * row_;
    if (one_a_row_) write_rows(data_ + first, count, n_, written_);
    return written_;
  }

 private:
  const T* data_;
  std::int64_t row_, n_;
  bool one_a_row_;
  alignas(64) T written_[size + lanes<T>];
};

/// One call handles a whole block of rows.
template <class F, class T>
void short_rows(const ZipArgs& args) {
  const std::int64_t n = args.loop.dims[1], rows = args.loop.dims[0], high = BlockOfRows<T>::size / n;
  BlockOfRows<T> a(args.loop, 0, args.a), b(args.loop, 1, args.b);
  auto* out = static_cast<result_of<F, T>*>(args.out);
  for (std::int64_t r = 0; r < rows; r += high, out += high * n) {
    const std::int64_t some = std::min(high, rows - r);
    zip_piece<F, T>({some * n, a.rows(r, some), b.rows(r, some), nullptr, out, &args.params});
  }
}

/// Bytes widened to Word.
template <class Word>
Vector<Word> widened(const std::uint8_t* from) {
#if defined(__AVX512F__)  // GCC 12 would convert the bytes one by one
  if constexpr (sizeof(Word) == 4)
    return std::bit_cast<Vector<Word>>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  else if constexpr (sizeof(Word) == 8)
    return std::bit_cast<Vector<Word>>(_mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  else
#elif defined(__AVX2__)
  if constexpr (sizeof(Word) == 4)
    return std::bit_cast<Vector<Word>>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  else if constexpr (sizeof(Word) == 8)
    return std::bit_cast<Vector<Word>>(_mm256_cvtepu8_epi64(_mm_loadu_si32(from)));
  else
#endif
    return __builtin_convertvector((load<std::uint8_t, lanes<Word>>(from)), Vector<Word>);
}

template <class From, class To>
void cast_piece(const Piece& p) {
  const From* in = static_cast<const From*>(p.a);
  To* out = static_cast<To*>(p.out);
  std::int64_t i = 0;
  if constexpr (std::is_same_v<From, bool> && !std::is_same_v<To, bool> && !is_complex_type<To>) {
    using Word = std::conditional_t<sizeof(To) == 4, std::uint32_t, std::uint64_t>;
    const Vector<To> zero{}, one = zero + 1;
    for (; i + lanes<To> <= p.n; i += lanes<To>)
      store(out + i, widened<Word>(static_cast<const std::uint8_t*>(p.a) + i) != 0 ? one : zero);
  }
  for (; i < p.n; ++i) out[i] = element_cast<To>(in[i]);
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

/// What computes a function of one operand, and the bytes of an element of its result.
struct MapKernels {
  PieceKernel piece = nullptr;
  std::int64_t bytes = 0;

  template <class F, class T>
  static constexpr MapKernels of() {
    return {map_piece<F, T>, sizeof(result_of<F, T>)};
  }
};
/// Likewise of two.
struct ZipKernels {
  PieceKernel piece = nullptr;
  void (*short_rows)(const ZipArgs&) = nullptr;
  RunsKernel contiguous = nullptr, one_a = nullptr, one_b = nullptr, strided = nullptr;
  std::int64_t bytes = 0;

  template <class F, class T>
  static constexpr ZipKernels of() {
    return {zip_piece<F, T>,
            cpu::short_rows<F, T>,
            contiguous_runs<F, T, false, false>,
            contiguous_runs<F, T, true, false>,
            contiguous_runs<F, T, false, true>,
            strided_runs<F, T>,
            sizeof(result_of<F, T>)};
  }
};

template <class Kernels, class F>
constexpr std::array<Kernels, dtypes> row() {
  std::array<Kernels, dtypes> kernels{};
  const auto put = [&]<class T>(std::type_identity<T>) {
    if constexpr (takes<F>(dtype_of<T>()))
      kernels[static_cast<std::size_t>(dtype_of<T>())] = Kernels::template of<F, T>();
  };
  for (DType d : all_dtypes) dispatch(d, put);
  return kernels;
}
template <class Kernels, class... F>
constexpr auto table(TypeList<F...>) {
  return std::array{row<Kernels, F>()...};
}

const auto maps = table<MapKernels>(UnaryFunctors{});
const auto zips = table<ZipKernels>(BinaryFunctors{});

template <class P>
P* move(P* p, std::int64_t bytes) {
  return reinterpret_cast<P*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(bytes));
}

/// Runs the kernel for the strides of the loop; in: bytes of an element of the operands.
[[gnu::noinline]] void zip_strided(const ZipKernels& kernels, const ZipArgs& args, std::int64_t in) {
  const StridedLoop<3>& loop = args.loop;
  if (has_short_rows(loop)) return kernels.short_rows(args);
  const std::int64_t n = loop.inner_dim();
  const auto stride = loop.inner_stride();
  const auto [sa, sb, so] = stride;
  if (n == 0) return;
  const RunsKernel kernel = so != 1              ? kernels.strided
                            : sa == 1 && sb == 1 ? kernels.contiguous
                            : sa == 0 && sb == 1 ? kernels.one_a
                            : sa == 1 && sb == 0 ? kernels.one_b
                                                 : kernels.strided;
  // Runs may be short, so the kernel has the loop along the axis before the innermost one, too.
  StridedLoop<3> outer = loop;
  if (outer.rank > 0) --outer.rank;
  Runs runs{outer.inner_dim(), n, outer.inner_stride(), stride, nullptr, nullptr, nullptr, &args.params};
  outer.for_each_run([&](const StridedLoop<3>::Offsets& at) {
    runs.a = move(args.a, at[0] * in), runs.b = move(args.b, at[1] * in),
    runs.out = move(args.out, at[2] * kernels.bytes);
    kernel(runs);
  });
}

void run_zip(const ZipKernels& kernels, const ZipArgs& args, std::int64_t in) {
  const StridedLoop<3>& loop = args.loop;
  if (loop.rank > 1 || (loop.rank == 1 && loop.strides[0] != StridedLoop<3>::Offsets{1, 1, 1}))
    return zip_strided(kernels, args, in);
  kernels.piece({loop.inner_dim(), args.a, args.b, nullptr, args.out, &args.params});  // nearly every small op
}

}  // namespace

void resolve(FusedCall& call) {
  const auto functor = static_cast<std::size_t>(call.functor), dtype = static_cast<std::size_t>(call.dtype);
  switch (call.kind) {
    case FusedCall::Kind::map:
      call.kernel = reinterpret_cast<FusedCall::Kernel>(maps[functor][dtype].piece);
      break;
    case FusedCall::Kind::zip:
      call.kernel = reinterpret_cast<FusedCall::Kernel>(zips[functor][dtype].piece);
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
  const ZipKernels& kernels = zips[static_cast<std::size_t>(a.functor)][static_cast<std::size_t>(a.dtype)];
  const auto in = static_cast<std::int64_t>(size_of(a.dtype));
  if (pool_.threads() == 1 || a.loop.numel() < enough_elements) return run_zip(kernels, a, in);
  const auto along_outermost_axis = [&](std::int64_t first, std::int64_t last) {
    StridedLoop<3> part = a.loop;
    part.dims[0] = last - first;
    const auto& stride = a.loop.strides[0];
    run_zip(kernels,
            {a.functor, a.params, a.dtype, part, move(a.a, first * stride[0] * in), move(a.b, first * stride[1] * in),
             move(a.out, first * stride[2] * kernels.bytes)},
            in);
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
