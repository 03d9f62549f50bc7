// copy: moves elements as raw bytes, whatever their dtype.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/constants.h"
#include "backends/cpu/kernels/copy_bytes.h"
#include "backends/cpu/simd/simd.h"
#include "backends/shared/words.h"

namespace reel::cpu {

namespace {

/// Copies n strided elements; the most frequent strides are compile-time constants.
template <class Element>
void copy_run(const Element* in, std::int64_t si, Element* out, std::int64_t so, std::int64_t n) {
  if (so != 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i * so] = in[i * si];
  } else if (si == 1) {
    copy_bytes(in, out, static_cast<std::size_t>(n) * sizeof(Element));
  } else if (si == 0) {
    std::fill_n(out, n, *in);
  } else if (si == -1) {
    std::reverse_copy(in - (n - 1), in + 1, out);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i * si];
  }
}

/// Copies runs of n elements, the most frequent strides of which are constants, too. The callee iterates over the axis
/// above, so that a run costs no call.
template <class Element, std::int64_t n>
void copy_short_runs(StridedLoop<2> loop, const Element* in, Element* out, Constant<n>) {
  const auto [si, so] = loop.inner_stride();
  const auto above = static_cast<std::size_t>(loop.rank - 2);
  const std::int64_t rows = loop.dims[above];
  const auto [apart_in, apart_out] = loop.strides[above];
  loop.dims[above] = 1;
  const auto copy = [&, apart_in = apart_in, apart_out = apart_out](auto step_in, auto step_out) {
    loop.for_each_run([&](const StridedLoop<2>::Offsets& at) {
      const Element* x = in + at[0];
      Element* y = out + at[1];
      for (std::int64_t r = 0; r < rows; ++r, x += apart_in, y += apart_out) {
        Element run[n];
        for (std::int64_t k = 0; k < n; ++k) run[k] = x[k * step_in];
        for (std::int64_t k = 0; k < n; ++k) y[k * step_out] = run[k];
      }
    });
  };
  if (so == 1 && si == 1)
    copy(Constant<1>{}, Constant<1>{});
  else if (so == 1 && si == 0)
    copy(Constant<0>{}, Constant<1>{});
  else
    copy(si, so);
}

template <class Element>
constexpr std::int64_t side = 64 / sizeof(Element);  // of the squares that transpose works on: one cache line

/// Transposes one square held in vectors: log2(side) rounds that interleave row i with row i + side / 2, like a riffle
/// shuffle.
template <class Element, std::size_t... k>
void transpose_square(const Element* in, std::int64_t si, Element* out, std::int64_t so, bool stream,
                      std::index_sequence<k...>) {
  using Vector [[gnu::vector_size(64)]] = Element;
  constexpr int n = static_cast<int>(sizeof...(k));
  Vector rows[n], shuffled[n];
  for (int j = 0; j < n; ++j) std::memcpy(&rows[j], in + j * si, sizeof(Vector));
  for (int step = 1; step < n; step *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      const Vector a = rows[i], b = rows[i + n / 2];
      shuffled[2 * i] = __builtin_shufflevector(a, b, static_cast<int>(k / 2 + k % 2 * n)...);
      shuffled[2 * i + 1] = __builtin_shufflevector(a, b, static_cast<int>(k / 2 + k % 2 * n + n / 2)...);
    }
    std::copy_n(shuffled, n, rows);
  }
  for (int i = 0; i < n; ++i) {
    if (stream)
      stream_line(out + i * so, &rows[i]);
    else
      std::memcpy(out + i * so, &rows[i], sizeof(Vector));
  }
}

/// out[i, j] = in[j, i]; rows of out are `so` apart, rows of in `si`. Working in blocks of squares touches few memory
/// pages at a time. `large`: the result exceeds the caches, so it is stored past them.
template <class Element>
void transpose(const Element* in, std::int64_t si, Element* out, std::int64_t so, std::int64_t rows,
               std::int64_t columns, bool large) {
  constexpr std::int64_t n = side<Element>, block = 128;
  const bool stream = large && so % n == 0 && reinterpret_cast<std::uintptr_t>(out) % (n * sizeof(Element)) == 0;
  const auto square = [&](std::int64_t i, std::int64_t j) {
    const Element* from = in + j * si + i;
    Element* to = out + i * so + j;
    const std::int64_t height = std::min(n, rows - i), width = std::min(n, columns - j);
    if constexpr (std::is_integral_v<Element> && sizeof(Element) >= 4) {
      if (height == n && width == n) {
        for (std::int64_t k = 0; k < n; ++k) __builtin_prefetch(from + k * si + block);
        return transpose_square(from, si, to, so, stream, std::make_index_sequence<n>{});
      }
    }
    for (std::int64_t k = 0; k < height; ++k) copy_run(from + k, si, to + k * so, 1, width);
  };
  for (std::int64_t j0 = 0; j0 < columns; j0 += block) {
    for (std::int64_t i0 = 0; i0 < rows; i0 += block) {
      for (std::int64_t i = i0; i < std::min(i0 + block, rows); i += n) {
        for (std::int64_t j = j0; j < std::min(j0 + block, columns); j += n) square(i, j);
      }
    }
  }
  if (stream) finish_streaming();
}

template <class Element>
void copy_elements(const CopyArgs& a) {
  const Element* const in0 = static_cast<const Element*>(a.in);
  Element* const out0 = static_cast<Element*>(a.out);
  StridedLoop<2> loop = a.loop;
  const std::int64_t n = loop.inner_dim();
  const auto [si, so] = loop.inner_stride();
  if (so == 1 && si != 1 && si != 0) {  // is another axis the input's innermost? Then transpose those two
    for (int axis = 0; axis < loop.rank - 1; ++axis) {
      const auto k = static_cast<std::size_t>(axis);
      if (loop.strides[k][0] != 1 || loop.dims[k] == 0) continue;
      const std::int64_t rows = loop.dims[k], apart = loop.strides[k][1], step = si;
      std::size_t bytes = sizeof(Element);
      for (int i = 0; i < loop.rank; ++i) bytes *= static_cast<std::size_t>(loop.dims[static_cast<std::size_t>(i)]);
      const bool large = bytes >= std::size_t{8} << 20;
      loop.dims[k] = 1;
      loop.for_each_run([&](const StridedLoop<2>::Offsets& at) {
        transpose(in0 + at[0], step, out0 + at[1], apart, rows, n, large);
      });
      return;
    }
  }
  if (loop.rank >= 2 && loop.dims[static_cast<std::size_t>(loop.rank - 2)] >= 8 &&
      with_constant<2, 8>(n, [&](auto size) { copy_short_runs(loop, in0, out0, size); }))
    return;
  const std::int64_t from = si, to = so;
  loop.for_each_run([&](const StridedLoop<2>::Offsets& at) { copy_run(in0 + at[0], from, out0 + at[1], to, n); });
}

}  // namespace

void Cpu::copy(const CopyArgs& a) {
  dispatch_width(size_of(a.dtype), [&]<class Word>(std::type_identity<Word>) { copy_elements<Word>(a); });
}

}  // namespace reel::cpu
