// Least squares: linear equations that have no solution, or many.
#include <cmath>
#include <string_view>

#include "ops/functors/linalg.h"
#include "ops/matrix.h"
#include "ops/told_as.h"

namespace reel {

namespace {

struct Pinv {
  double rcond;
  bool operator==(const Pinv&) const = default;
  static constexpr Traits traits{.name = "pinv"};
  Spec infer(Inputs in) const {
    check_matrix(in[0]);
    return matrix_spec(in[0], in[0].dim(-1), in[0].dim(-2));
  }
  double flops(Inputs in) const {  // V S^-1 U^H of the singular value decomposition
    const double m = extent(in[0], -2), n = extent(in[0], -1);
    return svd_flops(in[0]) + flops_of(in[0], 2 * m * n * std::min(m, n));
  }
  void run(Inputs in, Tensor& out) const {
    const Tensor& A = in[0];
    A.backend().pinv(
        {A.dtype(), A.dim(-2), A.dim(-1), matrices(A), rcond < 0 ? roundoff(A) : rcond, A.data(), out.data()});
  }
  // dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P, multiplied in an order that keeps products small.
  void vjp(Vjp& v) const {
    const Tensor &A = v.in(0), &P = v.out(), PH = adjoint(P), GH = adjoint(v.dy());
    const Tensor Z = matmul(P, GH), left = matmul(GH, matmul(P, PH));
    const Tensor inner = Z - matmul(matmul(Z, P), A) - matmul(v.dy(), PH);
    v.set(0, matmul(PH, inner) + left - matmul(A, matmul(P, left)));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return pinv(in[0], rcond); }
};
REEL_OP(Pinv)

}  // namespace

Tensor pinv(Arg A, double rcond) {
  if (std::isnan(rcond)) fail("pinv", A.where, "rcond is a number, got {}. Hint: -1 for that of the dtype", rcond);
  return apply(Pinv{rcond}, A);
}

namespace {

/// The solution of a triangular system, for lstsq: errors name what its user gave.
Tensor solved(Arg A, const Tensor& B, const Tensor& R, const Tensor& right, const TriangularFlags& flags) {
  try {
    return triangular_solve({R, A.where}, right, flags);
  } catch (const Error& e) {
    if (std::string_view(e.what()).find("is singular") == std::string_view::npos) throw;
    fail("lstsq", A.where,
         "A is singular to working precision, but must have full rank: got A {}, B {}. Hint: matmul(pinv(A), B) takes "
         "any rank",
         A->spec().str(), B.spec().str());
  }
}

}  // namespace

Tensor lstsq(Arg A, Arg B) {
  need_tensors("lstsq", {&A, &B});
  named("lstsq", A, [&] {
    check_matrix(A);
    check_matrix(B);
    if (A->dim(-2) != B->dim(-2))
      rule_error("A and B must have the same number of rows, got {} and {}", A->dim(-2), B->dim(-2));
  });
  return told_as("lstsq", "", {&A, &B}, [&] {
    TriangularFlags flags{.upper = true, .tolerance = roundoff(A)};
    if (A->dim(-2) >= A->dim(-1)) {
      const Qr f = qr(A);  // A X - B is orthogonal to Q: R X = Q^H B
      return solved(A, B, f.R, matmul(adjoint(f.Q), B), flags);
    }
    const Qr f = qr({adjoint(A), A.where});  // A = R^H Q^H, and X = Q Y has no part outside the rows of A
    flags.adjoint = true;
    return matmul(f.Q, solved(A, B, f.R, B, flags));
  });
}

}  // namespace reel
