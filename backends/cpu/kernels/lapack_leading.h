// The largest eigenvalue of a large matrix that changes little from call to call: found among a few columns that are
// carried over, not among all eigenvalues.
#pragma once
#include <complex>
#include <optional>
#include <vector>

#include "ops/functors/linalg.h"

namespace reel::cpu {

/// An eigenvalue with right and left vectors: A right = value right, left^H A = value left^H, left^H right = 1.
struct Eigenpair {
  std::complex<double> value;
  std::vector<std::complex<double>> right, left;
};

/// The eigenvalue next to `guess` of one matrix [n, n], by inverse iteration with the eigenvalue rounded to 16 bits as
/// the shift, so that the result does not depend on the guess. Empty: it does not settle, or is not simple.
std::optional<Eigenpair> eigenpair_near(std::int64_t n, const double* matrix, std::complex<double> guess);

/// The eigenvalue of largest modulus, from the basis, which then takes a step of subspace iteration. Empty: it is not
/// certain, and all eigenvalues have to be computed.
std::optional<Eigenpair> leading_pair(std::int64_t n, const double* matrix, std::vector<double>& basis);

/// An orthonormal basis of these columns [n, k], column-major.
std::vector<double> orthonormal(std::int64_t n, std::vector<double> columns);

}  // namespace reel::cpu
