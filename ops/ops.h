// All ops, as a user calls them. Each has its shape rule, derivative and kernel call in the file named above it.
#pragma once
#include <random>

#include "engine/scan/scan.h"
#include "ops/arg.h"
#include "ops/fourier.h"
#include "ops/functors/names.h"
#include "ops/functors/philox.h"
#include "ops/linalg.h"
#include "ops/rotation.h"
#include "ops/spectral.h"

namespace reel {

// ---- unary.cpp: elementwise, any shape. ops/functors/unary.h defines each and its dtypes in one line. abs of complex
// numbers is real; the derivatives of abs and sign at 0 are 0; is_nan and the like return bool.
#define REEL_DECLARE(F, f) Tensor f(Arg x);
REEL_UNARY_FUNCTIONS(REEL_DECLARE)
#undef REEL_DECLARE
/// -x.
Tensor operator-(Arg x);
/// scale x + shift; x * 2 and 1 - x call it.
Tensor affine(Arg x, double scale, double shift);
/// x for x >= 0, slope x else.
Tensor leaky_relu(Arg x, double slope = 0.01);
/// x for x > 0, alpha (e^x - 1) else.
Tensor elu(Arg x, double alpha = 1);
/// x clamped to low..high; derivative 1 inside, 0 outside.
Tensor clamp(Arg x, double low, double high);
/// x^exponent, one exponent for all elements.
Tensor power(Arg x, double exponent);
/// x unchanged; its gradient is multiplied by the factor.
Tensor scale_gradient(Arg x, double factor);
/// x unchanged, as a constant: no gradient flows back through it. Called lax.stop_gradient in JAX, detach in PyTorch.
Tensor stop_gradient(Arg x);
/// Complex conjugate; a real tensor is returned as it is.
Tensor conj(Arg x);
/// The imaginary part, real; zeros for a real tensor.
Tensor imag(Arg x);
/// The angle of a complex number in -pi..pi, real; 0 or pi for a real tensor, f32 for integers. Derivative 0 at 0.
Tensor angle(Arg x);

// ---- binary.cpp: elementwise; shapes broadcast (aligned at the last axis, extents of 1 stretch), and scalars take the
// other operand's dtype
/// a + b, a - b, a b and a / b. Sums and products of i32 outside its range wrap around, and i32 has no a / b.
Tensor operator+(Arg a, Arg b);
Tensor operator-(Arg a, Arg b);
Tensor operator*(Arg a, Arg b);
Tensor operator/(Arg a, Arg b);
/// a^b, real or complex; a real a < 0 gives NaN unless b is an integer.
Tensor pow(Arg a, Arg b);
/// a - b floor(a / b): has the sign of b.
Tensor remainder(Arg a, Arg b);
/// The angle of the point (b, a), in -pi..pi; derivative 0 at the origin.
Tensor atan2(Arg a, Arg b);
/// sqrt(a^2 + b^2) without overflow; derivative 0 at the origin.
Tensor hypot(Arg a, Arg b);
/// re + i im, complex.
Tensor complex(Arg re, Arg im);
/// size e^(i angle), complex.
Tensor polar(Arg size, Arg angle);
/// a where b is not 0, else 0: the gradient of relu in one pass, for gradient a and result b.
Tensor relu_backward(Arg a, Arg b);
/// a (1 - b^2) and a b (1 - b): the gradients of tanh and sigmoid in one pass, for gradient a and result b.
Tensor tanh_backward(Arg a, Arg b);
Tensor sigmoid_backward(Arg a, Arg b);
/// The larger of both, NaN if one of them is; where they are equal, each gets half of the gradient.
Tensor maximum(Arg a, Arg b);
Tensor minimum(Arg a, Arg b);
/// Comparisons return bool tensors and have no derivative.
Tensor equal(Arg a, Arg b);
Tensor not_equal(Arg a, Arg b);
Tensor operator<(Arg a, Arg b);
Tensor operator<=(Arg a, Arg b);
Tensor operator>(Arg a, Arg b);
Tensor operator>=(Arg a, Arg b);
/// For bool tensors.
Tensor logical_and(Arg a, Arg b);
Tensor logical_or(Arg a, Arg b);
Tensor logical_xor(Arg a, Arg b);

/// The small constants in which implementations of modReLU differ; all 0 for the definition (ENRNN, GORU).
struct ModReluOptions {
  double inside = 0;  // r = sqrt(|z|^2 + inside)
  double shift = 0;
  double divide = 0;  // z / (r + divide) max(r + shift + b, 0)
};
/// z / |z| max(|z| + b, 0), 0 at 0, z real or complex, b real; or the formula above. Where it is not differentiable at
/// z = 0, the gradient is 0.
Tensor modrelu(Arg z, Arg b, const ModReluOptions& options = {});

// ---- select.cpp -----------------------------------------------------------------------------------------------------
/// condition ? a : b for each element; condition is bool, shapes broadcast.
Tensor where(Arg condition, Arg a, Arg b);
/// The elements as another dtype; complex to real keeps the real part, anything to bool is "not zero".
Tensor cast(Arg x, DType dtype);
/// The real part of a complex tensor; a real one is returned as it is.
Tensor real(Arg x);
/// A scalar of x's dtype and device; not recorded, so it has no gradient.
Tensor constant(double value, const Tensor& x);
/// 1 where the condition holds, 1/2 where a equals b, 0 else, in a's dtype: the derivative of maximum.
Tensor share(const Tensor& condition, const Tensor& a, const Tensor& b);

// ---- reduce.cpp: over the given axes (negative count from the end; none given: all) ------------------------------
using Axes = std::vector<std::int64_t>;
/// The sum over the axes; of all elements by default. One of i32 outside its range wraps around.
Tensor sum(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// Throws Error when there are no elements to take the mean of.
Tensor mean(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The product, pairwise, so that derivatives are correct where elements are 0; of f32 and c64 it is computed in
/// double. Pairs may overflow and underflow where the product does not. One of i32 wraps around, as a sum.
Tensor prod(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The largest element; ties share the gradient equally. Throws Error when there are no elements.
Tensor max(Arg x, const Axes& axes = {}, bool keep_dims = false);
Tensor min(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// For bool tensors. Over no elements, any is false and all is true.
Tensor any(Arg x, const Axes& axes = {}, bool keep_dims = false);
Tensor all(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The first index of the largest element along an axis (NaN counts as largest), i32, without the axis.
Tensor argmax(Arg x, std::int64_t axis = -1);
Tensor argmin(Arg x, std::int64_t axis = -1);
/// Sums over the axes along which `shape` broadcasts to x's shape: the adjoint of expand.
Tensor sum_to(Arg x, const Shape& shape);

// ---- cumulative.cpp: of the elements so far along an axis -------------------------------------------------------
/// Cumulative sums along an axis, y[j] = x[0] + .. + x[j]; reverse: y[j] = x[j] + .. + x[n-1]. i32 wraps as in sum.
Tensor cumsum(Arg x, std::int64_t axis = -1, bool reverse = false);
/// Cumulative products along an axis, y[j] = x[0] .. x[j], of f32 and c64 in double. Derivatives are correct where
/// elements are 0. i32 wraps as in prod.
Tensor cumprod(Arg x, std::int64_t axis = -1);
/// The largest element so far along an axis, NaN from the first NaN on. Of equal elements the last has the gradient, as
/// in PyTorch.
Tensor cummax(Arg x, std::int64_t axis = -1);
Tensor cummin(Arg x, std::int64_t axis = -1);
/// Where cummax finds its elements: i32 indices along the axis, of equal elements that of the last.
Tensor argcummax(Arg x, std::int64_t axis = -1);
Tensor argcummin(Arg x, std::int64_t axis = -1);
/// log(exp(x[0]) + .. + exp(x[j])) along an axis, without overflow. Where it is -inf, its gradient is 0.
Tensor logcumsumexp(Arg x, std::int64_t axis = -1);

// ---- sort.cpp: real elements along an axis, NaN being larger than any number ------------------------------------
/// The i32 indices that sort x along an axis, the smallest element first; descending: the largest. NaN comes last, and
/// first when descending. Equal elements keep their order, also when descending.
Tensor argsort(Arg x, std::int64_t axis = -1, bool descending = false);
/// x sorted along an axis, in the order of argsort.
Tensor sort(Arg x, std::int64_t axis = -1, bool descending = false);
struct TopKResult {
  Tensor values, indices;
};
/// The k largest elements along an axis, the largest first, and their i32 indices: NaN counts as largest, and of equal
/// elements the first come first.
TopKResult top_k(Arg x, std::int64_t k, std::int64_t axis = -1);

// ---- norm.cpp: over the given axes, real results -----------------------------------------------------------------
/// (sum |x|^p)^(1/p), p >= 1 or infinity; x real or complex. Derivatives are 0 where the norm is 0.
Tensor norm(Arg x, double p = 2, const Axes& axes = {}, bool keep_dims = false);
/// sum |x - mean|^2 / (n - correction). The default correction is NumPy's; PyTorch's is 1. Throws Error when
/// n <= correction.
Tensor var(Arg x, const Axes& axes = {}, bool keep_dims = false, double correction = 0);
/// The square root of var; its derivative is 0 where it is 0.
Tensor std_dev(Arg x, const Axes& axes = {}, bool keep_dims = false, double correction = 0);

// ---- softmax.cpp: real, no overflow for large x ------------------------------------------------------------------
/// exp(x) / sum(exp(x)) along an axis. -inf gives 0; if all elements are -inf, the result is NaN.
Tensor softmax(Arg x, std::int64_t axis = -1);
/// log(softmax(x)).
Tensor log_softmax(Arg x, std::int64_t axis = -1);
/// log(sum(exp(x))) over the axes, by default the last.
Tensor logsumexp(Arg x, const Axes& axes = {-1}, bool keep_dims = false);
/// (x - mean) / sqrt(var + epsilon) along the last axis, epsilon > 0.
Tensor standardize(Arg x, double epsilon = 1e-5);
/// Layer normalisation (Ba et al. 2016): standardize(x) gain + bias, x [..., n], gain and bias [n].
Tensor layer_norm(Arg x, Arg gain, Arg bias, double epsilon = 1e-5);

// ---- layout.cpp --------------------------------------------------------------------------------------------------
/// The same elements in another shape; one extent may be -1. Shares storage.
Tensor reshape(Arg x, const std::vector<std::int64_t>& dims);
/// Reorders the axes: axis i of the result is axis order[i] of x.
Tensor permute(Arg x, const Axes& order);
/// x broadcast to `shape`.
Tensor expand(Arg x, const Shape& shape);
/// Elements first..last-1 along an axis; along axis 0 it shares storage.
Tensor slice(Arg x, std::int64_t axis, std::int64_t first, std::int64_t last);
/// x padded with zeros before and after along an axis.
Tensor pad(Arg x, std::int64_t axis, std::int64_t before, std::int64_t after);
/// Concatenates tensors along an axis; their other extents must agree.
Tensor concat(const Tensors& parts, std::int64_t axis, Loc where = Loc::current());
/// Shifts elements cyclically along an axis: y[j] = x[(j - shift) mod n].
Tensor roll(Arg x, std::int64_t shift, std::int64_t axis = -1);
/// Reverses the order along an axis.
Tensor flip(Arg x, std::int64_t axis = -1);

// ---- rearrange.cpp: composed of the ops in layout.cpp ------------------------------------------------------------
/// Swaps the last two axes.
Tensor transpose(Arg x);
/// Moves axis `from` to index `to`; the others keep their order.
Tensor movedim(Arg x, std::int64_t from, std::int64_t to);
/// Removes these axes of extent 1, or all axes of extent 1 when none is given.
Tensor squeeze(Arg x, const Axes& axes = {});
/// Inserts an axis of extent 1 at index `axis` of the result.
Tensor unsqueeze(Arg x, std::int64_t axis);
/// Element t of the leading axis: [T, ...] -> [...]; shares storage.
Tensor at(Arg x, std::int64_t t);
/// Stacks tensors of one spec along a new leading axis.
Tensor stack(const Tensors& parts, Loc where = Loc::current());
/// The elements of an axis, as tensors without it.
Tensors unstack(Arg x, std::int64_t axis = 0);
/// Splits an axis into `parts` equal chunks.
Tensors split(Arg x, int parts, std::int64_t axis = -1);
/// Splits an axis into chunks of the given sizes, which must add up to its extent.
Tensors split_with_sizes(Arg x, const std::vector<std::int64_t>& sizes, std::int64_t axis = -1);
/// Repeats x counts[i] times along axis i, aligned at the last axis: NumPy's tile.
Tensor tile(Arg x, const std::vector<std::int64_t>& counts);
/// Repeats each element `count` times along an axis: NumPy's repeat.
Tensor repeat(Arg x, std::int64_t count, std::int64_t axis = -1);

// ---- create.cpp: not recorded ------------------------------------------------------------------------------------
/// 0, 1, .., n - 1.
Tensor arange(std::int64_t n, DType dtype = DType::i32, Backend& backend = reel::backend(), Loc where = Loc::current());
/// n equally spaced values from first to last, both included.
Tensor linspace(double first, double last, std::int64_t n, DType dtype = DType::f32, Backend& backend = reel::backend(),
                Loc where = Loc::current());
/// A constant. Unlike Tensor::full it is an op of a traced program, which computes it each time.
Tensor full(const Shape& shape, std::complex<double> value, DType dtype = DType::f32,
            Backend& backend = reel::backend());
/// A constant of x's spec.
Tensor full_like(Arg x, std::complex<double> value);
Tensor zeros_like(Arg x);
Tensor ones_like(Arg x);

// ---- triangle.cpp: parts of matrices, the last two axes ----------------------------------------------------------
/// The diagonal of each matrix: [..., m, n] -> [..., min(m, n)].
Tensor diag(Arg x);
/// Diagonal matrices with x on the diagonal: [..., n] -> [..., n, n].
Tensor diag_embed(Arg x);
/// The elements on and below diagonal k (0: the main one, 1: above it), zeros elsewhere.
Tensor tril(Arg x, std::int64_t k = 0);
/// The elements on and above diagonal k, zeros elsewhere.
Tensor triu(Arg x, std::int64_t k = 0);
/// The identity matrix [n, n].
Tensor eye(std::int64_t n, DType dtype = DType::f32, Backend& backend = reel::backend(), Loc where = Loc::current());

// ---- index.cpp: index tensors are i32; an index out of range throws Error ----------------------------------------
/// Gathers elements of an axis by index [...], whose axes replace it: [a, n, b] -> [a, ..., b]; NumPy's take.
Tensor index_select(Arg x, std::int64_t axis, Arg index);
/// Adds values [a, ..., b] into zeros [a, count, b] at index [...]: the gradient of index_select. They are
/// added in their dtype and order: in f32 a sum of ones stops at 2^24, so cast to f64 for more per index.
Tensor index_add(Arg values, std::int64_t axis, Arg index, std::int64_t count);
/// Gathers rows of a table [V, n] by index [...] -> [..., n]: index_select along axis 0.
Tensor embedding(Arg index, Arg table);
/// Adds rows [..., n] into zeros [count, n] at index [...]: the gradient of embedding. They are added
/// in their dtype and order: in f32 a sum of ones stops at 2^24, so cast to f64 for more per index.
Tensor segment_sum(Arg index, Arg rows, std::int64_t count);
/// y[.., j, ..] = x[.., index[.., j, ..], ..] along an axis: NumPy's take_along_axis. x and index have the same
/// extents except along that axis.
Tensor take_along(Arg x, Arg index, std::int64_t axis = -1);
/// Adds values into zeros of extent n along an axis, at the indices: the gradient of take_along. They are added in
/// their dtype and order: in f32 a sum of ones stops at 2^24, so cast to f64 for more per index.
Tensor scatter_add(Arg values, Arg index, std::int64_t axis, std::int64_t n);
/// x[..., index[...]] along the last axis: [..., n], [...] -> [...].
Tensor pick(Arg x, Arg index);
/// Zeros [..., n] with value[...] at index[...] along the last axis: the gradient of pick.
Tensor place(Arg value, Arg index, std::int64_t n);
/// Rows of zeros with a 1 at the index: [...] -> [..., n].
Tensor one_hot(Arg index, std::int64_t n, DType dtype = DType::f32);
/// x with `value` where the mask holds; shapes broadcast.
Tensor masked_fill(Arg x, Arg mask, Arg value);

// ---- matmul.cpp --------------------------------------------------------------------------------------------------
struct MatmulFlags {
  bool transpose_a = false, transpose_b = false, conj_a = false, conj_b = false;
};
/// a b on the last two axes: [..., m, k] [..., k, n] -> [..., m, n]. The leading axes broadcast; an operand of two axes
/// is shared by the whole batch. A vector is a row on the left and a column on the right: [k] [k, n] -> [n],
/// [m, k] [k] -> [m].
Tensor matmul(Arg a, Arg b, MatmulFlags flags = {});
/// x W^T (+ b): rows x [..., i], W [o, i] as in the papers' W x, b [o] -> [..., o].
Tensor linear(Arg x, Arg W);
Tensor linear(Arg x, Arg W, Arg b);
/// The inner product, sum a b, of two vectors; vdot conjugates a.
Tensor dot(Arg a, Arg b);
Tensor vdot(Arg a, Arg b);
/// a[i] b[j]: [m], [n] -> [m, n].
Tensor outer(Arg a, Arg b);
/// The sum of the diagonal: [..., m, n] -> [...].
Tensor matrix_trace(Arg x);

// ---- einsum.cpp --------------------------------------------------------------------------------------------------
/// Einstein summation as in NumPy: einsum("ij,jk->ik", a, b). A letter that occurs twice in one tensor takes its
/// diagonal, and "..." stands for the axes that have no letter, aligned at the last one. Without "->" the output has
/// those, and then the letters that occur once, in alphabetical order. Extents of 1 broadcast. Throws Error when
/// extents of a letter differ, or the output names a letter that no input has. Products of more than two tensors go
/// from the left.
Tensor einsum(const std::string& subscripts, Arg a);
Tensor einsum(const std::string& subscripts, Arg a, Arg b);
Tensor einsum(const std::string& subscripts, Arg a, Arg b, Arg c);
Tensor einsum(const std::string& subscripts, Arg a, Arg b, Arg c, Arg d);

// ---- random.cpp: not recorded. Element i depends only on (seed, stream, i), on any device ------------------------
/// Uniform in [low, high).
Tensor uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::uint64_t stream,
               DType dtype = DType::f32, Backend& backend = reel::backend(), Loc where = Loc::current());
/// Normal, with this mean and standard deviation.
Tensor normal(const Shape& shape, double mean, double deviation, std::uint64_t seed, std::uint64_t stream,
              DType dtype = DType::f32, Backend& backend = reel::backend(), Loc where = Loc::current());
/// true with probability p; bool.
Tensor bernoulli(const Shape& shape, double p, std::uint64_t seed, std::uint64_t stream,
                 Backend& backend = reel::backend(), Loc where = Loc::current());
/// Integers uniform in low..high-1; i32.
Tensor integers(const Shape& shape, std::int64_t low, std::int64_t high, std::uint64_t seed, std::uint64_t stream,
                Backend& backend = reel::backend(), Loc where = Loc::current());
/// 0..n-1 in random order, i32 [n]; generated on the host, the same for any device.
Tensor permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream, Backend& backend = reel::backend(),
                   Loc where = Loc::current());
/// numpy.random.RandomState's permutation(n), i32 [n], which gives the pixel orders of published experiments. It
/// advances the generator as NumPy does; start with std::mt19937(seed).
Tensor numpy_permutation(std::int64_t n, std::mt19937& generator, Backend& backend = reel::backend(),
                         Loc where = Loc::current());
/// Sets each element to 0 with probability p and divides the others by 1 - p; 0 <= p < 1. Recorded, with a gradient
/// for x. Inside a time loop the same elements drop out at all time steps. `offset`, f64 on the device of x, is added
/// to the stream, so that a captured step draws new numbers on each replay; a step of a loop cannot compute it.
Tensor dropout(Arg x, double p, std::uint64_t seed, std::uint64_t stream, const Tensor& offset = {});

// ---- losses.cpp --------------------------------------------------------------------------------------------------
enum class LossReduction { mean, sum, none };
struct LossOptions {
  /// Per element, broadcast to the loss's shape; a bool mask counts as 0 and 1. That weights are not negative is not
  /// checked, and NaN stays NaN even with weight 0: replace it with where() first.
  Tensor weight = {};
  LossReduction reduction = LossReduction::mean;  // mean: sum(weight loss) / sum(weight), with 0 / 0 = 0
};
// The losses below take x (logits) and a target of the same shape, or a scalar target, and average over all elements by
// default.

/// -log softmax(logits)[target], in nats: logits [..., n], target [...] i32, loss [...]. Throws Error when a target is
/// not in 0..n-1, even where its weight is 0.
Tensor cross_entropy(Arg logits, Arg target, const LossOptions& options = {});
/// -target log p - (1 - target) log(1 - p), in nats, p = sigmoid(logits), target in [0, 1], bool or i32; safe for
/// large logits.
Tensor binary_cross_entropy_with_logits(Arg logits, Arg target, const LossOptions& options = {});
/// |x - target|^2, real or complex.
Tensor mse(Arg x, Arg target, const LossOptions& options = {});
/// |x - target|, real or complex.
Tensor l1_loss(Arg x, Arg target, const LossOptions& options = {});
/// d^2 / 2 for |d| <= delta, delta (|d| - delta / 2) beyond, d = x - target.
Tensor huber_loss(Arg x, Arg target, double delta = 1, const LossOptions& options = {});

}  // namespace reel
