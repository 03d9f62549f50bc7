// All ops, as a user calls them. Each has its shape rule, derivative and kernel call in the file named above it.
#pragma once
#include "engine/random.h"
#include "engine/scan.h"
#include "ops/elementwise.h"

namespace reel {

// ---- unary.cpp: one element at a time, any shape --------------------------------------------------------------------
Tensor neg(Arg x);
Tensor operator-(Arg x);
/// scale x + shift; what x * 2 and 1 - x come to.
Tensor affine(Arg x, double scale, double shift);
/// |x|; derivative sign(x).
Tensor abs(Arg x);
/// -1, 0 or 1; derivative 0.
Tensor sign(Arg x);
Tensor square(Arg x);
/// 1 / x
Tensor reciprocal(Arg x);
Tensor sqrt(Arg x);
Tensor exp(Arg x);
/// Natural logarithm.
Tensor log(Arg x);
Tensor sin(Arg x);
Tensor cos(Arg x);
Tensor tanh(Arg x);
/// 1 / (1 + e^-x)
Tensor sigmoid(Arg x);
/// log(1 + e^x)
Tensor softplus(Arg x);
/// max(x, 0); derivative 0 at 0.
Tensor relu(Arg x);
/// x for x >= 0, slope x else.
Tensor leaky_relu(Arg x, double slope = 0.01);
/// x for x > 0, alpha (e^x - 1) else.
Tensor elu(Arg x, double alpha = 1);
/// Complex conjugate; a real tensor is returned as it is.
Tensor conj(Arg x);

// ---- binary.cpp: two elements, shapes broadcast (aligned at the last axis, 1 stretches), numbers take the other's
// dtype ----
Tensor operator+(Arg a, Arg b);
Tensor operator-(Arg a, Arg b);
Tensor operator*(Arg a, Arg b);
Tensor operator/(Arg a, Arg b);
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

// ---- reduce.cpp: over the given axes (negative count from the end; none given: all)
// ------------------------------------------
using Axes = std::vector<std::int64_t>;
Tensor sum(Arg x, const Axes& axes = {}, bool keep_dims = false);
Tensor mean(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The largest element; where several are, they share the gradient equally.
Tensor max(Arg x, const Axes& axes = {}, bool keep_dims = false);
/// The first place of the largest element along the last axis, i32: [..., n] -> [...].
Tensor argmax(Arg x);
/// Sums over the axes along which `shape` would be stretched to x's shape: the opposite of expand.
Tensor sum_to(Arg x, const Shape& shape);

// ---- layout.cpp -----------------------------------------------------------------------------------------------------
/// The same elements in another shape; one extent may be -1. Shares storage.
Tensor reshape(Arg x, const std::vector<std::int64_t>& dims);
/// Axes in another order: axis i of the result is axis order[i] of x.
Tensor permute(Arg x, const Axes& order);
/// The last two axes swapped.
Tensor transpose(Arg x);
/// x stretched to `shape` by broadcasting.
Tensor expand(Arg x, const Shape& shape);
/// Elements first..last-1 along an axis; along axis 0 it shares storage.
Tensor slice(Arg x, std::int64_t axis, std::int64_t first, std::int64_t last);
/// x with zeros put before and after along an axis.
Tensor pad(Arg x, std::int64_t axis, std::int64_t before, std::int64_t after);
/// Element t of the leading axis: [T, ...] -> [...]; shares storage.
Tensor at(Arg x, std::int64_t t);
/// Tensors joined along an axis; their other extents agree.
Tensor concat(const Tensors& parts, std::int64_t axis, Where where = Where::current());
/// Tensors of one spec as a new leading axis.
Tensor stack(const Tensors& parts, Where where = Where::current());
/// `parts` equal pieces along an axis.
Tensors split(Arg x, int parts, std::int64_t axis = -1);
/// Elements moved on by `shift` along an axis, around its end: y[j] = x[(j - shift) mod n].
Tensor roll(Arg x, std::int64_t shift, std::int64_t axis = -1);

// ---- index.cpp: index tensors are i32
// ------------------------------------------------------------------------------------
/// Rows of a table [V, n] by index [...] -> [..., n]. Throws Error when an index is not in 0..V-1.
Tensor embedding(Arg index, Arg table);
/// Adds rows [..., n] into zeros [V, n] at index [...]: the gradient of embedding.
Tensor scatter_add(Arg index, Arg rows, std::int64_t count);
/// x[..., index[...]] along the last axis: [..., n], [...] -> [...].
Tensor pick(Arg x, Arg index);
/// Zeros [..., n] with value[...] at index[...] along the last axis: the gradient of pick.
Tensor place(Arg value, Arg index, std::int64_t n);
/// Rows of zeros with a one at the index: [...] -> [..., n].
Tensor one_hot(Arg index, std::int64_t n, DType dtype = DType::f32);

// ---- matmul.cpp
// -----------------------------------------------------------------------------------------------------------
struct MatmulFlags {
  bool transpose_a = false, transpose_b = false;
};
/// a b on the last two axes: [..., m, k] [..., k, n] -> [..., m, n]; a side of two axes is shared by all leading
/// places.
Tensor matmul(Arg a, Arg b, MatmulFlags flags = {});
/// x Wt (+ b): rows x [..., i], W [o, i] as in the papers' W x, b [o] -> [..., o].
Tensor linear(Arg x, Arg W);
Tensor linear(Arg x, Arg W, Arg b);

// ---- random.cpp: not recorded
// -------------------------------------------------------------------------------------------
/// Numbers uniform in [low, high); element i depends on (seed, stream, i) alone.
Tensor uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::uint64_t stream,
               DType dtype = DType::f32, Backend& backend = reel::backend());
/// Normal numbers, likewise.
Tensor normal(const Shape& shape, double mean, double deviation, std::uint64_t seed, std::uint64_t stream,
              DType dtype = DType::f32, Backend& backend = reel::backend());

// ---- losses.cpp
// -----------------------------------------------------------------------------------------------------------
/// log(sum(exp(x))) along the last axis, safe for large x: [..., n] -> [...].
Tensor logsumexp(Arg x);
/// x - logsumexp(x) along the last axis.
Tensor log_softmax(Arg x);
/// Mean over all places of -log softmax(logits)[target], in nats: logits [..., n], target [...] i32.
Tensor cross_entropy(Arg logits, Arg target);
/// Mean of (x - target)^2.
Tensor mse(Arg x, Arg target);

}  // namespace reel
