// The kernels of a backend, each as the struct of its arguments: plain pointers, sizes and scalars. A call is a value:
// it can be copied, kept, printed and run later (kernel_calls.h has the list of all).
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/strided_loop.h"

namespace reel {

/// The members of a functor or an update rule, by value: a call owns its parameters.
class Params {
 public:
  Params() = default;
  template <class F>
  requires(!std::is_same_v<F, Params>) Params(const F& f) {  // not explicit: calls are written {.params = f}
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(bytes_));
    if constexpr (!std::is_empty_v<F>) std::memcpy(bytes_, &f, sizeof(F));
  }
  /// The stored functor, of type F.
  template <class F>
  const F& as() const {
    return *reinterpret_cast<const F*>(bytes_);
  }

 private:
  alignas(8) std::byte bytes_[56]{};
};

// Pointers are to contiguous row-major elements unless there is a StridedLoop. Each kernel has arrays(f), which calls
// f(pointer) for each of its arrays: a pointer to const is read, any other is written, null means not needed.

struct FillArgs {  // out[i] = value
  DType dtype;
  std::int64_t n;
  std::complex<double> value;
  void* out;
  void arrays(auto&& f) { f(out); }
};
struct CopyArgs {  // out[..] = in[..]; operand 0 is in, 1 is out
  DType dtype;
  StridedLoop<2> loop;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(in), f(out); }
};
struct CastArgs {  // out[i] = in[i]; complex to real keeps the real part; to boolean is x != 0
  DType from, to;
  std::int64_t n;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(in), f(out); }
};
struct MapArgs {  // out[i] = f(x[i]), x of this dtype; functor indexes UnaryFunctors, params is the functor
  int functor;
  Params params;
  DType dtype;
  std::int64_t n;
  const void* x;
  void* out;
  void arrays(auto&& f) { f(x), f(out); }
};
struct ZipArgs {  // out[..] = f(a[..], b[..]), a and b of this dtype; operands a, b, out; functor indexes
                  // BinaryFunctors
  int functor;
  Params params;
  DType dtype;
  StridedLoop<3> loop;
  const void *a, *b;
  void* out;
  void arrays(auto&& f) { f(a), f(b), f(out); }
};
struct SelectArgs {  // out[i] = condition[i] ? a[i] : b[i], a and b of this dtype
  DType dtype;
  std::int64_t n;
  const bool* condition;
  const void *a, *b;
  void* out;
  void arrays(auto&& f) { f(condition), f(a), f(b), f(out); }
};
/// One elementwise call of a fusion group; `in` and `out` are indices into the operands.
struct FusedCall {
  enum class Kind : std::uint8_t { map, zip, select, cast, roll } kind = Kind::map;
  int functor = 0;  // of map and zip, with its params; of roll the shift, between 0 and the number of columns
  Params params = {};
  DType dtype = DType::f32, to = DType::f32;  // of the arguments; `to` is that of cast's result
  int in[3] = {-1, -1, -1}, out = -1;
  using Kernel = void (*)();
  Kernel kernel = nullptr;  // set by Backend::resolve
};
/// An operand of a fusion group on [rows, columns], with its strides in elements (0: broadcast). A local one belongs
/// only to the group: its buffer holds one block of elements, on backends that run in blocks.
struct FusedOperand {
  std::byte* data = nullptr;
  std::int64_t row = 0, column = 0;
  std::size_t element_bytes = 0;
  bool local = false;
};
struct FusedArgs {  // the calls in order, on all rows and columns; only arguments of zip may be broadcast
  static constexpr std::int64_t block = 1024;  // most elements in a block: several rows, or a part of one
  std::int64_t rows, columns;
  std::vector<FusedCall> calls;
  std::vector<FusedOperand> operands;
  void* compiled = nullptr;  // set by Backend::resolve, as the calls' kernels
  void arrays(auto&& f) {
    for (FusedOperand& o : operands) f(o.data);
  }
};
enum class Reduction { sum, max, min };
struct ReduceArgs {  // out starts from the neutral element; operand 0 is in, 1 is out (stride 0: reduced axis). NaN
                     // wins both max and min; max and min of bool are "any" and "all"
  Reduction kind;
  DType dtype;
  StridedLoop<2> loop;
  std::int64_t out_numel;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(in), f(out); }
};
struct PlacesArgs {  // indices along n of in[o, 0..n, i]. argmax: out[o, i] = the first of the largest (or smallest);
                     // argcummax: out[o, j, i] = the last one of in[o, 0..j, i]; NaN wins both. argsort:
                     // out[o, 0..count, i] = the first `count` in order, the largest first or last; equal elements keep
                     // their order, and NaN is the largest
  DType dtype;
  bool largest;
  std::int64_t outer, n, inner, count;
  const void* in;
  std::int32_t* out;
  void arrays(auto&& f) { f(in), f(out); }
};
struct RecurrenceArgs {  // out[o, j, i] = factors[o, j, i] out[o, j-1, i] + terms[o, j, i], out[o, -1, i] being 0;
                         // when reverse from n-1 down. Without factors the sum of terms so far, without terms the
                         // product of factors
  DType dtype;
  bool reverse;
  std::int64_t outer, n, inner;
  const void *factors, *terms;
  void* out;
  void arrays(auto&& f) { f(factors), f(terms), f(out); }
};
enum class RowFunction { softmax, log_softmax, logsumexp, standardize, norm };
struct RowFunctionArgs {  // each row in[r, 0..n) to out[r, 0..n); logsumexp and norm to a real scalar out[r]
  RowFunction function;
  DType dtype;
  std::int64_t rows, n;
  double parameter;  // of standardize: epsilon, added to the variance; of norm: p
  const void* in;
  void* out;
  void arrays(auto&& f) { f(in), f(out); }
};
struct GemmArgs {  // c[i] = op(a[i]) op(b[i]) for i < batch: [m, k] [k, n] -> [m, n]; stride 0 shares an operand;
                   // op transposes, conjugates (no effect on real dtypes), or both
  DType dtype;
  bool transpose_a, transpose_b, conj_a, conj_b;
  std::int64_t m, n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* c;
  void arrays(auto&& f) { f(a), f(b), f(c); }
};
/// Real products with few columns and long inner dimension are fastest as a times b transposed, where the rows of both
/// run along the inner dimension.
constexpr bool is_narrow_product(std::int64_t n, std::int64_t k) { return n <= 16 && k >= 256; }
struct RowsArgs {  // gather_rows: out[o, i, :] = in[o, index[i], :]; segment_sum: out[o, index[i], :] += in[o, i, :]
  DType dtype;
  std::int64_t outer, count, rows, width;  // o < outer, i < count, index[i] < rows
  const std::int32_t* index;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(index), f(in), f(out); }
};
struct SumRowsArgs {  // out[j] += x[0, j] y[0, j] + x[1, j] y[1, j] + ..., row after row; without y the sum of x's rows
  DType dtype;
  std::int64_t rows, n;
  const void *x, *y;
  void* out;
  void arrays(auto&& f) { f(x), f(y), f(out); }
};
struct TakeArgs {  // take_along: out[o, j, i] = in[o, index[o, j, i], i]; scatter_add: out[o, index[o, j, i], i] +=
                   // in[o, j, i]; index < n, j < m
  DType dtype;
  std::int64_t outer, n, m, inner;
  const std::int32_t* index;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(index), f(in), f(out); }
};
struct RotateArgs {  // out = c x + s x' on rows of n, x' being the pair's other element. Indices `first` to `last` - 1
                     // form blocks of 2 distance, whose first half is paired with the second; other indices are
                     // paired with themselves. Without c and s: out = x', of any dtype
  DType dtype;
  std::int64_t rows, n, first, last, distance;
  const void *x, *c, *s;
  void* out;
  void arrays(auto&& f) { f(x), f(c), f(s), f(out); }
};
enum class Distribution {
  uniform,    // in [a, b)
  normal,     // mean a, standard deviation b
  bernoulli,  // true with probability a; bool
  integers,   // integers in [a, b); i32
};
struct RandomArgs {  // element i depends only on seed, stream and i
  Distribution distribution;
  DType dtype;
  std::int64_t n;
  double a, b;
  std::uint64_t seed, stream;
  void* out;
  const double* offset = nullptr;  // in device memory: an integer that is added to the stream
  void arrays(auto&& f) { f(out), f(offset); }
};
// Fourier transforms

struct FftArgs {  // out[r, k] = scale sum_j in[r, j] e^(-2 pi i j k / n), with + in the exponent when inverse
  DType dtype;    // complex
  bool inverse;
  std::int64_t rows, n;
  double scale;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(in), f(out); }
};
/// Transforms between n real elements and the first n / 2 + 1 coefficients of their spectrum; the rest are conjugates
/// of these. Coefficient k is multiplied by `ends` for k = 0 and, if n is even, k = n / 2, where it is its own
/// conjugate, and by `inner` elsewhere. The inverse is without the factor 1 / n and ignores imaginary parts at the
/// ends.
struct RealFftArgs {
  DType dtype;  // of the real elements
  bool inverse;
  std::int64_t rows, n;
  double ends, inner;
  const void* in;
  void* out;
  void arrays(auto&& f) { f(in), f(out); }
};

}  // namespace reel
