// Linear algebra. Matrices are the last two axes, [..., m, n]; leading axes are places, each with a matrix of its own.
// Elements are f32, f64, c64 or c128. Elements that are not finite and results that overflow throw Error.
#pragma once
#include "ops/arg.h"

namespace reel {

// ---- solve.cpp ------------------------------------------------------------------------------------------------------
struct SolveFlags {
  bool adjoint = false;  // solve with A^H
};
/// X with A X = B: [..., n, n] [..., n, k] -> [..., n, k]; a side of two axes is shared by all leading places. Throws
/// Error when A is singular.
Tensor solve(Arg A, Arg B, SolveFlags flags = {});

struct TriangularFlags {
  bool upper = false;          // the triangle that is read
  bool unit_diagonal = false;  // the diagonal counts as ones
  bool adjoint = false;        // solve with A^H
  double tolerance = 0;        // diagonal elements up to this times the largest are refused, as 0 always is
};
/// The same for a triangle of A, whose other elements are not read and have gradient 0.
Tensor triangular_solve(Arg A, Arg B, TriangularFlags flags = {});

/// A^-1: [..., n, n]. To solve equations, solve() is faster and more accurate. Throws Error when A is singular.
Tensor inverse(Arg A);

/// X with A X + X B = C: [..., m, m], [..., n, n], [..., m, n] -> [..., m, n]; sides of two axes are shared. Throws
/// Error when A and -B have a common eigenvalue. Bartels and Stewart (1972).
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
/// real and not below 0. When the first r columns are of full rank this makes the factors unique and
/// differentiable; else the gradient throws Error.
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
/// squaring method for the matrix exponential revisited" (2005).
Tensor matrix_exp(Arg A);
/// Its derivative at A in direction E, which is linear in E: the upper right block of exp([[A, E], [0, A]]). Al-Mohy
/// and Higham, "Computing the Fréchet derivative of the matrix exponential" (2009).
Tensor matrix_exp_derivative(Arg A, Arg E);

// ---- least_squares.cpp ----------------------------------------------------------------------------------------------
/// The Moore-Penrose inverse: [..., m, n] -> [..., n, m]. Singular values up to rcond times the largest count as 0; a
/// negative rcond stands for max(m, n) times the precision of the dtype. The gradient is that for constant rank: Golub
/// and Pereyra (1973).
Tensor pinv(Arg A, double rcond = -1);

/// X that makes |A X - B| smallest, and of several the smallest: [..., m, n] [..., m, k] -> [..., n, k]. A is of full
/// rank, else Error; pinv(A) B serves any rank.
Tensor lstsq(Arg A, Arg B);

// ---- orthogonal.cpp: matrices W with W^H W = I ----------------------------------------------------------------------
/// X's strict upper triangle minus the adjoint of that: [..., n, n], skew-Hermitian.
Tensor skew(Arg X);
/// The skew matrix whose strict upper triangle is v, row by row: [..., n (n - 1) / 2] -> [..., n, n].
Tensor skew_from_vector(Arg v, std::int64_t n);

/// (I + A)^-1 (I - A), unitary for skew A, which reaches all such W that have no eigenvalue -1: [..., n, n].
Tensor cayley(Arg A);
/// The same times diag(D), D [..., n] of signs: reaches every orthogonal W for some D. Helfrich, Willmott and Ye
/// (2018).
Tensor cayley(Arg A, Arg D);

/// H(u_1) H(u_2) ... H(u_m) of the columns of U, H(u) = I - 2 u u^H / |u|^2: [..., n, m] -> [..., n, n]. Throws Error
/// when a column is 0. As one block: Joffrain et al., "Accumulating Householder transformations, revisited" (2006).
Tensor householder_product(Arg U);
/// Rows times the transpose of that product, without forming it: x [..., n], U [n, m] -> [..., n].
Tensor householder_apply(Arg x, Arg U);

/// The W with orthonormal columns that is nearest to A, where A = W H, H positive definite: [..., m, n], m >= n. Throws
/// Error when A is not of full rank.
Tensor polar(Arg A);

}  // namespace reel
