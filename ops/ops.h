// All ops, as a user calls them. Each has its shape rule, derivative and kernel call in the file named above it.
#pragma once
#include <random>

#include "engine/random.h"
#include "engine/scan.h"
#include "ops/elementwise.h"
#include "ops/fourier.h"
#include "ops/linalg.h"
#include "ops/rotation.h"
#include "ops/spectral.h"

namespace reel {

// ---- unary.cpp: one element at a time, any shape. What each is, and for which numbers, ops/functors/unary.h says in a
// line; abs of complex numbers is real, and its derivative at 0 is 0, as is that of sign; is_nan and the like give
// bool.
#define REEL_DECLARE(F, f) Tensor f(Arg x);
REEL_UNARY_FUNCTIONS(REEL_DECLARE)
#undef REEL_DECLARE
Tensor operator-(Arg x);
/// scale x + shift; what x * 2 and 1 - x come to.
Tensor affine(Arg x, double scale, double shift);
/// x for x >= 0, slope x else.
Tensor leaky_relu(Arg x, double slope = 0.01);
/// x for x > 0, alpha (e^x - 1) else.
Tensor elu(Arg x, double alpha = 1);
/// x moved into low..high; derivative 1 within, 0 outside.
Tensor clamp(Arg x, double low, double high);
/// x^exponent, the same for all.
Tensor power(Arg x, double exponent);
/// x to the last bit, but a gradient on its way back through it is multiplied by the factor.
Tensor scale_gradient(Arg x, double factor);
/// Complex conjugate; a real tensor is returned as it is.
Tensor conj(Arg x);
/// The imaginary part, real; zeros for a real tensor.
Tensor imag(Arg x);
/// The angle of a complex number in -pi..pi, real; 0 or pi for a real tensor.
Tensor angle(Arg x);

// ---- binary.cpp: two elements, shapes broadcast (aligned at the last axis, 1 stretches), numbers take the other's
// dtype ----
Tensor operator+(Arg a, Arg b);
Tensor operator-(Arg a, Arg b);
Tensor operator*(Arg a, Arg b);
Tensor operator/(Arg a, Arg b);
/// a^b, real or complex; a real a < 0 gives NaN unless b is whole.
Tensor pow(Arg a, Arg b);
/// a - b floor(a / b): has the sign of b.
Tensor remainder(Arg a, Arg b);
/// The angle of the point (b, a), in -pi..pi.
Tensor atan2(Arg a, Arg b);
/// sqrt(a^2 + b^2) without overflow; derivative 0 at the origin.
Tensor hypot(Arg a, Arg b);
/// re + i im, complex.
Tensor complex(Arg re, Arg im);
/// size e^(i angle), complex.
Tensor polar(Arg size, Arg angle);
/// a where b is not 0, else 0: the gradient of a ReLU in one pass, b being its result.
Tensor where_nonzero(Arg a, Arg b);
/// a (1 - b^2) and a b (1 - b): the gradients of tanh and sigmoid in one pass, b being their results.
Tensor times_tanh_slope(Arg a, Arg b);
Tensor times_sigmoid_slope(Arg a, Arg b);
/// The larger of both; where equal, each gets half of the gradient.
Tensor maximum(Arg a, Arg b);
Tensor minimum(Arg a, Arg b);
/// Comparisons give bool tensors and have no derivative.
Tensor equal(Arg a, Arg b);
Tensor not_equal(Arg a, Arg b);
Tensor operator<(Arg a, Arg b);
Tensor operator<=(Arg a, Arg b);
Tensor operator>(Arg a, Arg b);
Tensor operator>=(Arg a, Arg b);
/// Of bool tensors.
Tensor logical_and(Arg a, Arg b);
Tensor logical_or(Arg a, Arg b);
Tensor logical_xor(Arg a, Arg b);

/// The small numbers by which implementations of modReLU differ; 0 for the definition (ENRNN, GORU).
struct ModReluOptions {
  double inside = 0;  // r = sqrt(|z|^2 + inside)
  double shift = 0;
  double divide = 0;  // z / (r + divide) max(r + shift + b, 0)
};
/// z / |z| max(|z| + b, 0), 0 at 0, z real or complex, b real; or the formula above. Derivatives at z = 0 are 0 where
/// it has none.
Tensor modrelu(Arg z, Arg b, const ModReluOptions& options = {});

// ---- select.cpp -----------------------------------------------------------------------------------------------------
/// condition ? a : b for each element; condition is bool, shapes broadcast.
Tensor where(Arg condition, Arg a, Arg b);
/// The elements as another dtype; complex to real keeps the real part, anything to bool is "not zero".
Tensor cast(Arg x, DType dtype);
/// The real part of a complex tensor; a real one is returned as it is.
Tensor real(Arg x);
/// A scalar of x's dtype and device; not recorded, so it has no derivative.
Tensor constant(double value, const Tensor& x);
/// 1 where the condition holds, 1/2 where a equals b, 0 else, in a's dtype: how maximum shares a gradient.
Tensor share(const Tensor& condition, const Tensor& a, const Tensor& b);

// ---- reduce.cpp: over the given axes (negative count from the end; none given: all) ------------------------------
using Axes = std::vector<std::int64_t>;
Tensor sum(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// Throws Error when there are no elements to take the mean of.
Tensor mean(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The product, by pairs: derivatives are right where elements are 0.
Tensor prod(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The largest element; where several are, they share the gradient equally. Throws Error when there are no elements.
Tensor max(Arg x, const Axes& axes = {}, bool keep_dims = false);
Tensor min(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// Of bool tensors. Of none, any is false and all is true.
Tensor any(Arg x, const Axes& axes = {}, bool keep_dims = false);
Tensor all(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The first place of the largest element along an axis (NaN counts as that), i32, without the axis.
Tensor argmax(Arg x, std::int64_t axis = -1);
Tensor argmin(Arg x, std::int64_t axis = -1);
/// Running sums along an axis, y[j] = x[0] + .. + x[j]; reverse: y[j] = x[j] + .. + x[n-1].
Tensor cumsum(Arg x, std::int64_t axis = -1, bool reverse = false);
/// Sums over the axes along which `shape` would be stretched to x's shape: the opposite of expand.
Tensor sum_to(Arg x, const Shape& shape);

// ---- norm.cpp: over the given axes, real results -----------------------------------------------------------------
/// (sum |x|^p)^(1/p), p >= 1 or infinity; x real or complex. Derivatives are 0 where the norm is 0.
Tensor norm(Arg x, double p = 2, const Axes& axes = {}, bool keep_dims = false);
/// sum |x - mean|^2 / (n - correction); NumPy's default, PyTorch's correction is 1. Throws Error when nothing is left
/// to divide by.
Tensor var(Arg x, const Axes& axes = {}, bool keep_dims = false, double correction = 0);
/// The root of var; its derivative is 0 where it is 0.
Tensor std_dev(Arg x, const Axes& axes = {}, bool keep_dims = false, double correction = 0);

// ---- softmax.cpp: real, safe for large x -------------------------------------------------------------------------
/// exp(x) / sum(exp(x)) along an axis. -inf gets 0; an axis of nothing but -inf gets NaN.
Tensor softmax(Arg x, std::int64_t axis = -1);
/// log(softmax(x)).
Tensor log_softmax(Arg x, std::int64_t axis = -1);
/// log(sum(exp(x))) over axes; without these, the last.
Tensor logsumexp(Arg x, const Axes& axes = {-1}, bool keep_dims = false);
/// (x - mean) / sqrt(var + epsilon) along the last axis; epsilon is above 0.
Tensor normalize(Arg x, double epsilon = 1e-5);
/// Layer normalisation (Ba et al. 2016): normalize(x) gain + bias, x [..., n], gain and bias [n].
Tensor layer_norm(Arg x, Arg gain, Arg bias, double epsilon = 1e-5);

// ---- layout.cpp --------------------------------------------------------------------------------------------------
/// The same elements in another shape; one extent may be -1. Shares storage.
Tensor reshape(Arg x, const std::vector<std::int64_t>& dims);
/// Axes in another order: axis i of the result is axis order[i] of x.
Tensor permute(Arg x, const Axes& order);
/// x stretched to `shape` by broadcasting.
Tensor expand(Arg x, const Shape& shape);
/// Elements first..last-1 along an axis; along axis 0 it shares storage.
Tensor slice(Arg x, std::int64_t axis, std::int64_t first, std::int64_t last);
/// x with zeros put before and after along an axis.
Tensor pad(Arg x, std::int64_t axis, std::int64_t before, std::int64_t after);
/// Tensors joined along an axis; their other extents agree.
Tensor concat(const Tensors& parts, std::int64_t axis, Where where = Where::current());
/// Elements moved on by `shift` along an axis, around its end: y[j] = x[(j - shift) mod n].
Tensor roll(Arg x, std::int64_t shift, std::int64_t axis = -1);
/// Elements in the opposite order along an axis.
Tensor flip(Arg x, std::int64_t axis = -1);

// ---- rearrange.cpp: made of those --------------------------------------------------------------------------------
/// The last two axes swapped.
Tensor transpose(Arg x);
/// Axis `from` moved to place `to`; the others keep their order.
Tensor movedim(Arg x, std::int64_t from, std::int64_t to);
/// Without these axes, which have extent 1; without all such axes when none is given.
Tensor squeeze(Arg x, const Axes& axes = {});
/// With an axis of extent 1 at place `axis` of the result.
Tensor unsqueeze(Arg x, std::int64_t axis);
/// Element t of the leading axis: [T, ...] -> [...]; shares storage.
Tensor at(Arg x, std::int64_t t);
/// Tensors of one spec as a new leading axis.
Tensor stack(const Tensors& parts, Where where = Where::current());
/// The elements of an axis as tensors without it.
Tensors unstack(Arg x, std::int64_t axis = 0);
/// `parts` equal pieces along an axis.
Tensors split(Arg x, int parts, std::int64_t axis = -1);
/// Pieces of the given sizes, which add up to the extent of the axis.
Tensors split_with_sizes(Arg x, const std::vector<std::int64_t>& sizes, std::int64_t axis = -1);
/// x laid side by side with itself, counts[i] times along axis i, aligned at the last axis: NumPy's tile.
Tensor tile(Arg x, const std::vector<std::int64_t>& counts);
/// Each element `count` times in a row along an axis: NumPy's repeat.
Tensor repeat(Arg x, std::int64_t count, std::int64_t axis = -1);

// ---- create.cpp: not recorded ------------------------------------------------------------------------------------
/// 0, 1, .., n - 1.
Tensor arange(std::int64_t n, DType dtype = DType::i32, Backend& backend = reel::backend(),
              Where where = Where::current());
/// n numbers at equal distances from first to last, both included.
Tensor linspace(double first, double last, std::int64_t n, DType dtype = DType::f32, Backend& backend = reel::backend(),
                Where where = Where::current());
/// A constant of x's spec.
Tensor full_like(Arg x, std::complex<double> value);
Tensor zeros_like(Arg x);
Tensor ones_like(Arg x);

// ---- triangle.cpp: parts of matrices, the last two axes
// ------------------------------------------------------------------------------------------
/// The diagonal of each matrix: [..., m, n] -> [..., min(m, n)].
Tensor diag(Arg x);
/// Square matrices of zeros with x on the diagonal: [..., n] -> [..., n, n].
Tensor diag_embed(Arg x);
/// The elements on and below diagonal k (0: the main one, 1: above it), zeros elsewhere.
Tensor tril(Arg x, std::int64_t k = 0);
/// The elements on and above diagonal k, zeros elsewhere.
Tensor triu(Arg x, std::int64_t k = 0);
/// The unit matrix [n, n].
Tensor eye(std::int64_t n, DType dtype = DType::f32, Backend& backend = reel::backend());

// ---- index.cpp: index tensors are i32; one out of range throws Error ---------------------------------------------
/// The elements of an axis by index [...], whose axes take its place: [a, n, b] -> [a, ..., b]; NumPy's take.
Tensor index_select(Arg x, std::int64_t axis, Arg index);
/// Adds values [a, ..., b] into zeros [a, count, b] at index [...]: the gradient of index_select.
Tensor index_add(Arg values, std::int64_t axis, Arg index, std::int64_t count);
/// Rows of a table [V, n] by index [...] -> [..., n]: index_select along axis 0.
Tensor embedding(Arg index, Arg table);
/// Adds rows [..., n] into zeros [count, n] at index [...]: the gradient of embedding.
Tensor scatter_add(Arg index, Arg rows, std::int64_t count);
/// y[.., j, ..] = x[.., index[.., j, ..], ..] along an axis: NumPy's take_along_axis. x and index have the same
/// extents but for that axis.
Tensor take_along(Arg x, Arg index, std::int64_t axis = -1);
/// Adds values into zeros of extent n along an axis, at index: the gradient of take_along.
Tensor put_along(Arg values, Arg index, std::int64_t axis, std::int64_t n);
/// x[..., index[...]] along the last axis: [..., n], [...] -> [...].
Tensor pick(Arg x, Arg index);
/// Zeros [..., n] with value[...] at index[...] along the last axis: the gradient of pick.
Tensor place(Arg value, Arg index, std::int64_t n);
/// Rows of zeros with a one at the index: [...] -> [..., n].
Tensor one_hot(Arg index, std::int64_t n, DType dtype = DType::f32);
/// x with `value` where the mask holds; shapes broadcast.
Tensor masked_fill(Arg x, Arg mask, Arg value);

// ---- matmul.cpp --------------------------------------------------------------------------------------------------
struct MatmulFlags {
  bool transpose_a = false, transpose_b = false, conj_a = false, conj_b = false;
};
/// a b on the last two axes: [..., m, k] [..., k, n] -> [..., m, n]; a side of two axes is shared by all leading
/// places, a side of one axis is a row on the left, a column on the right: [k] [k, n] -> [n], [m, k] [k] -> [m].
Tensor matmul(Arg a, Arg b, MatmulFlags flags = {});
/// x Wt (+ b): rows x [..., i], W [o, i] as in the papers' W x, b [o] -> [..., o].
Tensor linear(Arg x, Arg W);
Tensor linear(Arg x, Arg W, Arg b);
/// sum a b of two vectors; vdot conjugates a.
Tensor dot(Arg a, Arg b);
Tensor vdot(Arg a, Arg b);
/// a[i] b[j]: [m], [n] -> [m, n].
Tensor outer(Arg a, Arg b);
/// The sum of the diagonal: [..., m, n] -> [...].
Tensor trace(Arg x);

// ---- einsum.cpp --------------------------------------------------------------------------------------------------
/// Sums of products by letters for axes, as NumPy's: einsum("ij,jk->ik", a, b). A letter twice in one tensor is its
/// diagonal; without "->" the letters that occur once are the output, in the order of the alphabet; extents of 1
/// stretch. Throws Error when extents of a letter clash, or the output names a letter that no input has.
Tensor einsum(const std::string& subscripts, Arg a);
Tensor einsum(const std::string& subscripts, Arg a, Arg b);

// ---- random.cpp: not recorded. Element i depends on (seed, stream, i) alone, on any device
// ---------------------------
/// Numbers uniform in [low, high).
Tensor uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::uint64_t stream,
               DType dtype = DType::f32, Backend& backend = reel::backend(), Where where = Where::current());
/// Normal numbers.
Tensor normal(const Shape& shape, double mean, double deviation, std::uint64_t seed, std::uint64_t stream,
              DType dtype = DType::f32, Backend& backend = reel::backend(), Where where = Where::current());
/// true with probability p; bool.
Tensor bernoulli(const Shape& shape, double p, std::uint64_t seed, std::uint64_t stream,
                 Backend& backend = reel::backend(), Where where = Where::current());
/// Whole numbers uniform in low..high-1; i32.
Tensor integers(const Shape& shape, std::int64_t low, std::int64_t high, std::uint64_t seed, std::uint64_t stream,
                Backend& backend = reel::backend(), Where where = Where::current());
/// 0..n-1 in random order, i32 [n]; made on the host, the same for any device.
Tensor permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream, Backend& backend = reel::backend(),
                   Where where = Where::current());
/// numpy.random.RandomState's permutation(n), i32 [n]: the pixel orders of published experiments. The generator goes
/// on, so that the next call continues as NumPy's would; start one with std::mt19937(seed).
Tensor numpy_permutation(std::int64_t n, std::mt19937& generator, Backend& backend = reel::backend(),
                         Where where = Where::current());
/// x with each element set to 0 with probability p, the others divided by 1 - p; 0 <= p < 1. Recorded, with
/// derivative in x. Within a time loop the same elements drop out at all times. `offset`, f64 on the device of x, is
/// added to the stream: a step that is written down once reads its number there each time it is run.
Tensor dropout(Arg x, double p, std::uint64_t seed, std::uint64_t stream, const Tensor& offset = {});

// ---- losses.cpp
// -----------------------------------------------------------------------------------------------------------
enum class LossReduction { mean, sum, none };
struct LossOptions {
  Tensor weight = {};  // of each place, 0 or more, broadcast to the loss's shape; a bool mask counts as 0 and 1
  LossReduction reduction = LossReduction::mean;  // sum(weight loss) / sum(weight), 0 where that is 0 / 0
};
// The losses below take x (logits) and target of the same shape, or a number as target, and are averaged over all
// elements unless the options say otherwise.

/// -log softmax(logits)[target], in nats: logits [..., n], target [...] i32, loss [...]. Throws Error when a target is
/// not in 0..n-1, also where its weight is 0.
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
