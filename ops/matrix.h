// What ops on matrices share. Matrices are the last two axes; the leading axes are places, each with its own.
#pragma once
#include <limits>

#include "ops/ops.h"

namespace reel {

/// The leading axes.
inline Shape places(const Tensor& x) { return x.shape().erase(x.rank() - 1).erase(x.rank() - 2); }
/// How many matrices there are.
inline std::int64_t matrices(const Tensor& x) { return x.shape().product(0, x.rank() - 2); }
/// [..., m, n]
inline Shape with_matrix(const Shape& places, std::int64_t m, std::int64_t n) {
  return places.insert(places.rank(), m).insert(places.rank() + 1, n);
}
/// The spec of matrices [m, n] at the places of x.
inline Spec matrix_spec(const Tensor& x, std::int64_t m, std::int64_t n) {
  return {x.dtype(), with_matrix(places(x), m, n), &x.backend()};
}
/// From one matrix to the next in elements; 0 where one of two axes is shared by all places.
inline std::int64_t matrix_stride(const Tensor& x) { return x.rank() > 2 ? x.dim(-2) * x.dim(-1) : 0; }

inline void check_matrix(const Tensor& x) {
  if (!is_differentiable(x.dtype())) broken("{} elements are not supported", name_of(x.dtype()));
  if (x.rank() < 2) broken("a matrix needs two axes or more. Hint: reshape a vector to one column");
}
inline void check_square(const Tensor& x) {
  check_matrix(x);
  if (x.dim(-1) != x.dim(-2)) broken("a square matrix is needed, got {}x{}", x.dim(-2), x.dim(-1));
}
inline void check_same_dtype(Inputs in) {
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].dtype() != in[0].dtype()) broken("all arguments must have one dtype. Hint: cast one");
  }
}
/// The leading axes of a call whose arguments have the same ones, or two axes and are shared by all places.
Shape common_places(Inputs in);

/// The arguments of a call for all time steps: [T, ...] each, but two axes where one matrix serves all steps and
/// places.
Tensors for_all_steps(Inputs in, Varying varying, std::int64_t steps);

/// The conjugate transpose.
inline Tensor adjoint(const Tensor& x) { return conj(transpose(x)); }
/// A gradient, or zeros in its place.
inline Tensor or_zeros(const Tensor& gradient, const Tensor& value) {
  return gradient.defined() ? gradient : Tensor::zeros(value.shape(), value.dtype(), value.backend());
}
/// The unit matrix that fits x.
inline Tensor eye_like(const Tensor& x) { return eye(x.dim(-1), x.dtype(), x.backend()); }
/// What of a singular value is rounding error, relative to the largest one.
inline double roundoff(const Tensor& A) {
  const double precision =
      real_of(A.dtype()) == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return precision * static_cast<double>(std::max(A.dim(-1), A.dim(-2)));
}

}  // namespace reel
