// The arguments of a backend's kernels: plain pointers, sizes and scalars.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/core/dtype.h"
#include "engine/core/strided_loop.h"

namespace reel {

// Pointers are to contiguous row-major elements unless there is a StridedLoop.

struct FillArgs {  // out[i] = value
  DType dtype;
  std::int64_t n;
  std::complex<double> value;
  void* out;
};
struct CopyArgs {  // out[..] = in[..]; operand 0 is in, 1 is out; elements are copied as bytes
  std::size_t element_bytes;
  const StridedLoop<2>& loop;
  const void* in;
  void* out;
};
struct CastArgs {  // out[i] = in[i]; complex to real keeps the real part; to boolean is x != 0
  DType from, to;
  std::int64_t n;
  const void* in;
  void* out;
};
struct MapArgs {  // out[i] = f(x[i]), x of this dtype; functor indexes UnaryFunctors, params is the functor object
  int functor;
  const void* params;
  DType dtype;
  std::int64_t n;
  const void* x;
  void* out;
};
struct ZipArgs {  // out[..] = f(a[..], b[..]), a and b of this dtype; operands a, b, out; functor indexes
                  // BinaryFunctors
  int functor;
  const void* params;
  DType dtype;
  const StridedLoop<3>& loop;
  const void *a, *b;
  void* out;
};
struct SelectArgs {  // out[i] = condition[i] ? a[i] : b[i]
  std::size_t element_bytes;
  std::int64_t n;
  const bool* condition;
  const void *a, *b;
  void* out;
};
/// One elementwise call of a fusion group; `in` and `out` are indices into the operands.
struct FusedCall {
  enum class Kind : std::uint8_t { map, zip, select, cast, roll } kind = Kind::map;
  int functor = 0;  // of map and zip, with its params; of roll the shift, between 0 and the number of columns
  const void* params = nullptr;
  DType dtype = DType::f32, to = DType::f32;  // of the arguments; `to` is that of cast's result
  int in[3] = {-1, -1, -1}, out = -1;
  using Kernel = void (*)();
  Kernel kernel = nullptr;  // set by Backend::resolve
};
/// An operand of a fusion group on [rows, columns], with its strides in elements (0: broadcast). A local one
/// belongs to the group alone: its buffer holds one block of elements, on backends that run in blocks.
struct FusedOperand {
  std::byte* data = nullptr;
  std::int64_t row = 0, column = 0;
  std::size_t element_bytes = 0;
  bool local = false;
};
struct FusedArgs {  // the calls in order, on all rows and columns; only arguments of zip may be broadcast
  static constexpr std::int64_t block = 1024;  // most elements in a block: several rows, or a part of one
  std::int64_t rows, columns;
  std::span<const FusedCall> calls;
  std::span<const FusedOperand> operands;
};
enum class Reduction { sum, max, min };
struct ReduceArgs {  // out starts from the neutral element; operand 0 is in, 1 is out (stride 0: reduced axis). NaN
                     // wins both max and min; max and min of bool are "any" and "all"
  Reduction kind;
  DType dtype;
  const StridedLoop<2>& loop;
  std::int64_t out_numel;
  const void* in;
  void* out;
};
struct ArgmaxArgs {  // out[o, i] = the first index of the largest (or smallest) of in[o, 0..n, i]; NaN wins both
  DType dtype;
  bool largest;
  std::int64_t outer, n, inner;
  const void* in;
  std::int32_t* out;
};
struct CumsumArgs {  // out[o, j, i] = the sum of in[o, 0..j, i], or of in[o, j..n-1, i] when reverse
  DType dtype;
  bool reverse;
  std::int64_t outer, n, inner;
  const void* in;
  void* out;
};
enum class RowFunction { softmax, log_softmax, logsumexp, standardize, norm };
struct RowFunctionArgs {  // each row in[r, 0..n) to out[r, 0..n); logsumexp and norm to a real scalar out[r]
  RowFunction function;
  DType dtype;
  std::int64_t rows, n;
  double parameter;  // of standardize: epsilon, added to the variance; of norm: p
  const void* in;
  void* out;
};
struct GemmArgs {  // c[i] = op(a[i]) op(b[i]) for i < batch: [m, k] [k, n] -> [m, n]; stride 0 shares an operand;
                   // op transposes, conjugates (no effect on real dtypes), or both
  DType dtype;
  bool transpose_a, transpose_b, conj_a, conj_b;
  std::int64_t m, n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* c;
};
/// Real products with few columns and long inner dimension are fastest as a times b transposed, where the rows of both
/// run along the inner dimension.
constexpr bool is_narrow_product(std::int64_t n, std::int64_t k) { return n <= 16 && k >= 256; }
struct RowsArgs {  // gather: out[o, i, :] = in[o, index[i], :]; segment_sum: out[o, index[i], :] += in[o, i, :]
  DType dtype;
  std::int64_t outer, count, rows, width;  // o < outer, i < count, index[i] < rows
  const std::int32_t* index;
  const void* in;
  void* out;
};
struct TakeArgs {  // take_along: out[o, j, i] = in[o, index[o, j, i], i]; scatter_add: out[o, index[o, j, i], i] +=
                   // in[o, j, i]; index < n, j < m
  DType dtype;
  std::int64_t outer, n, m, inner;
  const std::int32_t* index;
  const void* in;
  void* out;
};
struct RotateArgs {  // out = c x + s x' on rows of n, x' being the pair's other element. Indices `first` to `last` - 1
                     // form blocks of 2 distance, whose first half is paired with the second; other indices are
                     // paired with themselves. Without c and s: out = x', of any dtype
  DType dtype;
  std::int64_t rows, n, first, last, distance;
  const void *x, *c, *s;
  void* out;
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
};
struct UpdatePlace {  // a parameter, its gradient and the optimiser's state, n elements each
  std::int64_t n;
  double rate;
  void* parameter;
  const void* gradient;
  void* state[3];
};
struct SquaresOf {  // *out = the sum of squares of n elements
  std::int64_t n;
  const void* x;
  double* out;
};
struct UpdateArgs {  // an optimiser's step in place; rule indexes UpdateRules, params is the rule object
  int rule;
  const void* params;
  DType dtype;
  double limit;           // clips each gradient element to +-limit, after scaling
  const double* numbers;  // the step's UpdateNumbers, in device memory
  std::span<const UpdatePlace> places;
};

// Fourier transforms

struct FftArgs {  // out[r, k] = scale sum_j in[r, j] e^(-2 pi i j k / n), with + in the exponent when inverse
  DType dtype;    // complex
  bool inverse;
  std::int64_t rows, n;
  double scale;
  const void* in;
  void* out;
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
};

// Linear algebra: spectra. The kernels throw when a matrix is not finite. Vectors are columns of unit length. For each
// column, `largest` is the index of its component of largest modulus (the first among those equal up to sqrt(epsilon)),
// and the column's phase is chosen so that this component is real and positive.

struct EigArgs {  // a [n, n] x = value x; values and vectors are complex
  DType dtype;    // of a
  std::int64_t batch, n;
  const void* a;
  void *values, *vectors;
  std::int32_t* largest;
  bool* independent;  // false: the vectors are no basis, their condition number is above 1 / (10 n epsilon)
};
struct EighArgs {  // the same for Hermitian a; reads its lower triangle; values are real and ascend
  DType dtype;     // of a and vectors
  std::int64_t batch, n;
  const void* a;
  void *values, *vectors;
  std::int32_t* largest;
};
struct SvdArgs {  // a [m, n] = u [m, k] diag(s) vh [k, n], k = min(m, n), s real and descending; `largest` is for u
  DType dtype;    // of a, u and vh
  std::int64_t batch, m, n;
  const void* a;
  void *u, *s, *vh;
  std::int32_t* largest;
};
struct SchurArgs {  // a [n, n] = q t q^H, q unitary, t upper triangular
  DType dtype;      // complex
  std::int64_t batch, n;
  const void* a;
  void *q, *t;
};
struct SpectralRadiusArgs {  // value: the eigenvalue of largest modulus (of a conjugate pair the one above the axis);
                             // radius: its modulus; a right = value right, left^H a = value left^H, left^H right = 1
  DType dtype;               // of a; radius is real, the others complex
  std::int64_t batch, n;
  const void* a;
  void *radius, *value, *right, *left;  // right and left are 0 where the eigenvalue is not simple
};

// Linear algebra: solving. A stride of 0 shares one matrix among the whole batch. These kernels throw RuleError when
// elements are not finite or the result would not be.

struct SolveArgs {  // x[i] = a[i]^-1 b[i], or (a[i]^H)^-1 b[i]: [n, n] [n, k] -> [n, k]; a singular a is an error
  DType dtype;
  bool adjoint;
  std::int64_t n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* x;
};
struct TriangularSolveArgs {  // the same for triangular a; the other triangle is not read
  DType dtype;
  bool upper, unit_diagonal, adjoint;
  double tolerance;  // throws when a diagonal element is 0, or at most this times the largest one
  std::int64_t n, k;
  std::int64_t batch, stride_a, stride_b;
  const void *a, *b;
  void* x;
};
struct SylvesterArgs {  // a[i] x[i] + x[i] b[i] = c[i]: [m, m], [n, n], [m, n]; a and -b with a common eigenvalue are
                        // an error
  DType dtype;
  std::int64_t m, n;
  std::int64_t batch, stride_a, stride_b, stride_c;
  const void *a, *b, *c;
  void* x;
};
struct LuArgs {  // a[i] = p[i] l[i] u[i]: [m, n] -> [m, m] permutation, [m, r] unit lower, [r, n] upper, r = min(m, n)
  DType dtype;
  std::int64_t m, n, batch;
  const void* a;
  void *p, *l, *u;
};
struct CholeskyArgs {  // a[i] = l[i] l[i]^H, l lower; reads the lower triangle; not positive definite is an error
  DType dtype;
  std::int64_t n, batch;
  const void* a;
  void* l;
};
struct QrArgs {  // a[i] = q[i] r[i]: [m, n] -> [m, r], [r, n], r = min(m, n); the diagonal of r is real and >= 0
  DType dtype;
  std::int64_t m, n, batch;
  const void* a;
  void *q, *r;
};
struct DeterminantArgs {  // det[i] = sign[i] exp(log_abs[i]); null results are not computed
  DType dtype;
  std::int64_t n, batch;
  const void* a;
  void *det, *sign;
  void* log_abs;  // real
};
struct PinvArgs {  // out[i] = a[i]^+: [m, n] -> [n, m]; singular values up to rcond times the largest count as 0
  DType dtype;
  std::int64_t m, n, batch;
  double rcond;
  const void* a;
  void* out;
};
struct PolarFactorArgs {  // a[i] = out[i] h, h positive definite: [m, n], m >= n -> [m, n]; a rank-deficient a is an
                          // error
  DType dtype;
  std::int64_t m, n, batch;
  const void* a;
  void* out;
};

}  // namespace reel
