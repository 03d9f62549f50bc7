// Helpers of ops on matrices. Matrices are the last two axes; the leading axes are the batch.
#pragma once
#include <array>
#include <limits>

#include "ops/ops.h"

namespace reel {

/// The leading axes.
inline Shape places(const Tensor& x) { return x.shape().erase(x.rank() - 1).erase(x.rank() - 2); }
/// The number of matrices.
inline std::int64_t matrices(const Tensor& x) { return x.shape().product(0, x.rank() - 2); }
/// [..., m, n]
inline Shape with_matrix(const Shape& places, std::int64_t m, std::int64_t n) {
  return places.insert(places.rank(), m).insert(places.rank() + 1, n);
}
/// The spec of matrices [m, n] with the leading axes of x.
inline Spec matrix_spec(const Tensor& x, std::int64_t m, std::int64_t n) {
  return {x.dtype(), with_matrix(places(x), m, n), &x.backend()};
}
/// The stride from one matrix to the next, in elements; 0 for a single matrix that the whole batch shares.
inline std::int64_t matrix_stride(const Tensor& x) { return x.rank() > 2 ? x.dim(-2) * x.dim(-1) : 0; }

/// Throws RuleError unless x is a matrix of f32, f64, c64 or c128.
inline void check_matrix(const Tensor& x) {
  if (!is_differentiable(x.dtype())) rule_error("{} elements are not supported", name_of(x.dtype()));
  if (x.rank() < 2) rule_error("a matrix needs two axes or more. Hint: reshape a vector to one column");
}
/// The same for a square matrix.
inline void check_square(const Tensor& x) {
  check_matrix(x);
  if (x.dim(-1) != x.dim(-2)) rule_error("a square matrix is needed, got {}x{}", x.dim(-2), x.dim(-1));
}
/// Throws RuleError if the arguments differ in dtype.
inline void check_same_dtype(Inputs in) {
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].dtype() != in[0].dtype()) rule_error("all arguments must have one dtype. Hint: cast one");
  }
}
/// `of_one` operations for each matrix of x. These are textbook counts: "GVL" is Golub and Van Loan, Matrix
/// Computations, 4th edition. An operation on complex numbers counts four times, as in products.
inline double flops_of(const Tensor& x, double of_one) {
  return static_cast<double>(matrices(x)) * of_one * (is_complex(x.dtype()) ? 4 : 1);
}
/// The number of rows or columns of x, for such counts.
inline double extent(const Tensor& x, int axis) { return static_cast<double>(x.dim(axis)); }
/// The singular value decomposition of each matrix: GVL, figure 8.6.1, with U, S and V.
inline double svd_flops(const Tensor& x) {
  const double r = std::min(extent(x, -1), extent(x, -2)), longer = std::max(extent(x, -1), extent(x, -2));
  return flops_of(x, 14 * longer * r * r + 8 * r * r * r);
}
/// Two batches of matrices with leading axes broadcast to one shape. Single matrices, and batches that do not
/// broadcast, remain as they are: the ops share the former and refuse the latter.
std::array<Tensor, 2> broadcast_places(Arg a, Arg b);
/// The leading axes of a call; its arguments all have these, or are single matrices that the whole batch shares.
Shape common_places(Inputs in);

/// The arguments of a call for all time steps: each is [T, ...], or a single matrix that all steps and the whole batch
/// share.
Tensors for_all_steps(Inputs in, Mapped mapped, std::int64_t steps);

/// The conjugate transpose.
inline Tensor adjoint(const Tensor& x) { return conj(transpose(x)); }
/// The gradient, or zeros if it is undefined.
inline Tensor or_zeros(const Tensor& gradient, const Tensor& value) {
  return gradient.defined() ? gradient : zeros_like(value);
}
/// The identity matrix of x's size, dtype and device.
inline Tensor eye_like(const Tensor& x) { return eye(x.dim(-1), x.dtype(), x.backend()); }
/// The rounding error of singular values, relative to the largest one.
inline double roundoff(const Tensor& A) {
  const double precision =
      real_of(A.dtype()) == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return precision * static_cast<double>(std::max(A.dim(-1), A.dim(-2)));
}

}  // namespace reel
