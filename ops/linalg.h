// Linear algebra. Matrices are the last two axes, [..., m, n]; the leading axes are the batch. Elements are f32, f64,
// c64 or c128. Elements that are not finite and results that overflow throw Error.
#pragma once
#include "ops/arg.h"

namespace reel {

// ---- solve.cpp ------------------------------------------------------------------------------------------------------
struct SolveFlags {
  bool adjoint = false;  // solve with A^H
  bool operator==(const SolveFlags&) const = default;
};
/// X with A X = B: [..., n, n] [..., n, k] -> [..., n, k]; the leading axes broadcast, and an operand of two axes is
/// shared by the whole batch. Throws Error when A is singular.
Tensor solve(Arg A, Arg B, SolveFlags flags = {});

struct TriangularFlags {
  bool upper = false;          // the triangle that is read
  bool unit_diagonal = false;  // the diagonal counts as ones
  bool adjoint = false;        // solve with A^H
  double tolerance = 0;        // throws when a diagonal element is 0, or at most this times the largest one
  bool operator==(const TriangularFlags&) const = default;
};
/// The same for one triangle of A; the other elements are not read and have gradient 0.
Tensor triangular_solve(Arg A, Arg B, TriangularFlags flags = {});

/// A^-1: [..., n, n]. To solve equations, solve() is faster and more accurate. Throws Error when A is singular.
Tensor inverse(Arg A);

/// X with A X + X B = C: [..., m, m], [..., n, n], [..., m, n] -> [..., m, n]; operands of two axes are shared by the
/// whole batch. Throws Error when A and -B have a common eigenvalue. Bartels and Stewart (1972).
Tensor sylvester(Arg A, Arg B, Arg C);

// ---- factor.cpp -----------------------------------------------------------------------------------------------------
struct Lu {
  Tensor P, L, U;
};
/// A = P L U with r = min(m, n): a permutation [..., m, m], unit lower [..., m, r] and upper [..., r, n] triangles, by
/// partial pivoting. The gradient needs the leading r x r part of P^T A to be invertible.
Lu lu(Arg A);

/// The lower triangle L with L L^H = (A + A^H) / 2: [..., n, n]. Throws Error when that is not positive definite.
Tensor cholesky(Arg A);

struct Qr {
  Tensor Q, R;
};
/// A = Q R with r = min(m, n): orthonormal columns [..., m, r], and an upper triangle [..., r, n] whose diagonal is
/// real and >= 0. If the first r columns have full rank, the factors are unique and differentiable; otherwise the
/// gradient throws Error.
Qr qr(Arg A);

// ---- determinant.cpp ------------------------------------------------------------------------------------------------
/// [..., n, n] -> [...]; 0 for a singular matrix, where the gradient throws Error. Throws Error when it overflows.
Tensor det(Arg A);

struct SignAndLog {
  Tensor sign, log_abs;
};
/// det A = sign exp(log_abs), for determinants of any size: [..., n, n] -> [...], [...] (real). A singular matrix has
/// sign 0 and log_abs -infinity, and no gradient.
SignAndLog slogdet(Arg A);

// ---- matrix_exp.cpp -------------------------------------------------------------------------------------------------
/// The exponential I + A + A^2 / 2 + ...: [..., n, n]. Throws Error when it overflows. Higham, "The scaling and
/// squaring method for the matrix exponential revisited" (2005); matrices far from normal are scaled less.
Tensor matrix_exp(Arg A);
/// The derivative of matrix_exp at A in direction E, linear in E: the upper right block of exp([[A, E], [0, A]]).
/// Al-Mohy and Higham, "Computing the Fréchet derivative of the matrix exponential" (2009).
Tensor matrix_exp_derivative(Arg A, Arg E);

// ---- least_squares.cpp ----------------------------------------------------------------------------------------------
/// The Moore-Penrose inverse: [..., m, n] -> [..., n, m]. Singular values up to rcond times the largest count as 0; a
/// negative rcond means max(m, n) times the precision of the dtype. The gradient assumes constant rank: Golub and
/// Pereyra (1973).
Tensor pinv(Arg A, double rcond = -1);

/// The X that minimises |A X - B|, of smallest norm if there are several: [..., m, n] [..., m, k] -> [..., n, k].
/// Throws Error when A does not have full rank; pinv(A) B works for any rank.
Tensor lstsq(Arg A, Arg B);

// ---- orthogonal.cpp: matrices W with W^H W = I ----------------------------------------------------------------------
/// The strict upper triangle of X minus its adjoint: [..., n, n], skew-Hermitian.
Tensor skew(Arg X);
/// The skew matrix whose strict upper triangle is v, row by row: [..., n (n - 1) / 2] -> [..., n, n].
Tensor skew_from_vector(Arg v, std::int64_t n);

/// The Cayley transform (I + A)^-1 (I - A), unitary for skew A: [..., n, n]. It reaches every such W without eigenvalue
/// -1.
Tensor cayley(Arg A);
/// The same times diag(D), D [..., n] of signs: for some D it reaches every orthogonal W. Helfrich, Willmott and Ye
/// (2018).
Tensor cayley(Arg A, Arg D);

/// H(u_1) H(u_2) ... H(u_m) for the columns of U, H(u) = I - 2 u u^H / |u|^2: [..., n, m] -> [..., n, n]. Throws Error
/// when a column is 0. Computed as one block: Joffrain et al., "Accumulating Householder transformations, revisited"
/// (2006).
Tensor householder_product(Arg U);
/// Rows times the transpose of that product, without forming it: x [..., n], U [n, m] -> [..., n].
Tensor householder_apply(Arg x, Arg U);

/// The factor W of A = W H, H positive definite, which is the matrix with orthonormal columns nearest to A: [..., m,
/// n], m >= n. Throws Error when A does not have full rank.
Tensor polar_factor(Arg A);

}  // namespace reel
