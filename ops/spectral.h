// Spectra of matrices: the last two axes; the leading axes are the batch. Elements are floating point, real or complex,
// and finite. Backends use LAPACK's algorithms.
//
// A gauge makes vectors unique: unit length, and the component of largest modulus real and positive; if several
// components have this modulus (up to sqrt(epsilon)), it is the first. Gradients are exact for any function of the
// results as long as the eigenvalues (singular values) differ. Where two agree within 10 n epsilon max|w|, their
// vectors have no derivative: the gradient leaves out the rotation of one into the other, with a warning. The gradient
// of a loss that does not depend on these vectors stays exact.
#pragma once
#include "ops/arg.h"

namespace reel {

struct EigResult {
  Tensor values;   // [..., n]
  Tensor vectors;  // [..., n, n], in columns
};
/// Eigenvalues and right eigenvectors of square matrices, A V = V diag(w), complex also for real A, whose pairs are
/// exact conjugates with the one above the real axis first. The order is LAPACK's (geev); from about 75 rows on the
/// smallest change of A can change it, so no loss should depend on it. Where the vectors are no basis (A is defective)
/// there is no derivative: the gradient is 0, with a warning. Throws Error when A is not square or not finite.
/// Derivative: Boeddeker et al. 2017, "On the computation of complex-valued gradients".
EigResult eig(Arg A);
/// Only the eigenvalues, in the order of eig: [..., n, n] -> [..., n] complex.
Tensor eigvals(Arg A);
/// Eigenvalues (real, ascending) and eigenvectors of the Hermitian part (A + A^H) / 2, so that any A has a gradient.
/// Vectors are real for real A. Throws Error when A is not square or not finite.
EigResult eigh(Arg A);

struct SvdResult {
  Tensor U;   // [..., m, k], k = min(m, n); in the gauge
  Tensor S;   // [..., k], real, descending
  Tensor Vh;  // [..., k, n]
};
/// The reduced singular value decomposition, A = U diag(S) Vh: [..., m, n] of any m and n. Throws Error when A is not
/// finite. The gradient uses 0 for 1 / s where s vanishes, with a warning.
SvdResult svd(Arg A);

struct SchurResult {
  Tensor Q;  // [..., n, n], unitary
  Tensor T;  // [..., n, n], upper triangular; the eigenvalues are on its diagonal
};
/// The complex Schur form A = Q T Q^H, also of real A. Not differentiable: Q depends on the order of the eigenvalues,
/// which small changes of A can change; use eig or eigh for gradients. Throws Error when A is not square or not finite.
SchurResult schur(Arg A);

/// The largest modulus of an eigenvalue, rho: [..., n, n] -> [...], real. Its gradient is Proposition 3.2 of ENRNN
/// (Helfrich and Ye 2020): C / rho with C = a Re S + b Im S, S = conj(v) u^T / (v^H u), for the largest eigenvalue
/// a + ib with right and left vectors u and v. So the gradient of W = T / spectral_radius(T) is theirs,
/// (G - <G, W> C / rho) / rho, and that of W = T / (spectral_radius(T) + eps) is (G - <G, W> C / rho) / (rho + eps).
/// The largest eigenvalue must be simple; the others need not be. Where it is 0, or as large as another one that is not
/// its conjugate (up to 10 n epsilon), or defective (|v^H u| below 10 sqrt(epsilon) for unit vectors), rho counts as a
/// constant, with a warning. Throws Error when A is not square or not finite.
Tensor spectral_radius(Arg A);

/// What warm_spectral_radius carries over from call to call (ops/functors/linalg.h).
struct LeadingColumns;
/// For f64 matrices of n rows, one at a time, that change little from call to call; null where it would not pay off.
std::shared_ptr<LeadingColumns> leading_columns(std::int64_t n);
/// spectral_radius(A), equal to rounding, with a warm start: faster. The columns must live as long as any graph in
/// which the call was captured.
Tensor warm_spectral_radius(Arg A, const std::shared_ptr<LeadingColumns>& leading);

}  // namespace reel
