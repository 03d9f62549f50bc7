// Small kernels that linear algebra needs around cuSOLVER's calls: what each does for one index is in matrix_bodies.h.
// The interface is apart from them, so that the calls around which they stand can be tested on the host.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "backends/cuda/faults.h"
#include "engine/dtype.h"
#include "engine/kernels.h"

namespace reel::cuda {

/// Matrices are row-major, and "packed" ones column by column. A flag is set to 1, or left as it is.
class MatrixKernels {
 public:
  virtual ~MatrixKernels() = default;

  /// Sets the flag if one of n elements is not finite.
  virtual void find_not_finite(DType dtype, const void* x, std::int64_t n, int* flag) const = 0;
  /// Sets the flag if a triangle is not finite, or its diagonal too small; `matrices` of them, stride_a apart.
  virtual void find_bad_triangle(const TriangularSolveArgs& s, std::int64_t matrices, int* flag) const = 0;
  /// Notes a fault if one of n numbers is not 0.
  virtual void note(const int* numbers, std::int64_t n, FaultSlot* fault) const = 0;
  /// Sets what is above the diagonal of matrices [batch, n, n] to zero.
  virtual void keep_lower(DType dtype, void* x, std::int64_t batch, std::int64_t n) const = 0;
  /// p, l and u of one matrix [m, n] from getrf's packed result and its swaps.
  virtual void split_factors(const LuArgs& a, const void* packed, const std::int64_t* swaps, void* p, void* l,
                             void* u) const = 0;
  /// The determinants that are asked for, from the packed factors [batch, n, n] and their swaps [batch, n]; sets the
  /// flag where one overflows.
  virtual void determinants(const DeterminantArgs& a, const void* packed, const std::int64_t* swaps,
                            int* flag) const = 0;
  /// r [k, n] from geqrf's packed [m, n], and for take_q by what the columns of q are turned: phase [k].
  virtual void take_r(DType dtype, std::int64_t m, std::int64_t n, const void* packed, void* r, void* phase) const = 0;
  /// q [m, k] from orgqr's packed [m, k].
  virtual void take_q(DType dtype, std::int64_t m, std::int64_t k, const void* packed, const void* phase,
                      void* q) const = 0;
  // Vectors are turned so that the component of largest modulus (the first of those equal to sqrt(epsilon)) is real and
  // positive: its place goes to `largest`.
  /// syevd's packed vectors [n, n], of the conjugate matrix, as columns of vectors.
  virtual void take_hermitian_vectors(DType dtype, std::int64_t n, const void* packed, void* vectors,
                                      std::int32_t* largest) const = 0;
  /// geev's eigenvalues and packed vectors of a matrix [n, n] of this dtype, as values and columns of vectors, complex.
  virtual void take_eigenvectors(DType dtype, std::int64_t n, const void* from, const void* packed, void* values,
                                 void* vectors, std::int32_t* largest) const = 0;
  /// Columns of u [m, k] in place, and rows of vh [k, n] the other way.
  virtual void turn_singular(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, void* u, void* vh,
                             std::int32_t* largest) const = 0;
  /// *independent: is the condition number of a complex matrix x [n, n] below 1 / (10 n epsilon)? Needs its inverse,
  /// and room [2 n].
  virtual void compare_condition(DType complex, std::int64_t n, const void* x, const void* inverse, double* room,
                                 bool* independent) const = 0;
  /// Rows of vh [batch, k, n] divided by s [batch, k], or 0 where that is at most `rcond` times the largest.
  virtual void invert_singular(DType dtype, std::int64_t batch, std::int64_t k, std::int64_t n, double rcond,
                               const void* s, void* vh) const = 0;
  /// Sets the flag if of s [batch, k] a last one is at most `part` times the first.
  virtual void find_rank_loss(DType real, std::int64_t batch, std::int64_t k, double part, const void* s,
                              int* flag) const = 0;
};

/// On the current GPU, in this stream.
std::unique_ptr<MatrixKernels> matrix_kernels(cudaStream_t stream);

}  // namespace reel::cuda
