// The small kernels that linear algebra needs around cuSOLVER's calls; their bodies are in matrix_bodies.h. The
// interface is separate, so that the calling code can be tested on the host.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/cuda/runtime/faults.h"
#include "engine/core/dtype.h"
#include "ops/functors/linalg.h"

namespace reel::cuda {

/// Matrices are row-major, "packed" ones column-major. A flag is set to 1, or left unchanged.
class MatrixKernels {
 public:
  virtual ~MatrixKernels() = default;

  /// Sets the flag if any of n elements is not finite.
  virtual void find_not_finite(DType dtype, const void* x, std::int64_t n, int* flag) const = 0;
  /// Sets the flag if a triangle is not finite or a diagonal element too small, for `matrices` matrices stride_a apart.
  virtual void find_bad_triangle(const TriangularSolveArgs& s, std::int64_t matrices, int* flag) const = 0;
  /// Records a fault if any of n numbers is not 0.
  virtual void note(const int* numbers, std::int64_t n, FaultSlot* fault) const = 0;
  /// Zeroes what is above the diagonal of matrices [batch, n, n].
  virtual void keep_lower(DType dtype, void* x, std::int64_t batch, std::int64_t n) const = 0;
  /// Computes p, l and u of one matrix [m, n] from getrf's packed result and its swaps.
  virtual void split_factors(const LuArgs& a, const void* packed, const std::int64_t* swaps, void* p, void* l,
                             void* u) const = 0;
  /// Computes the requested determinants from the packed factors [batch, n, n] and their swaps [batch, n]; sets the
  /// flag if one overflows.
  virtual void determinants(const DeterminantArgs& a, const void* packed, const std::int64_t* swaps,
                            int* flag) const = 0;
  /// Computes r [k, n] from geqrf's packed [m, n], and for take_q the phase factors of q's columns: phase [k].
  virtual void take_r(DType dtype, std::int64_t m, std::int64_t n, const void* packed, void* r, void* phase) const = 0;
  /// Computes q [m, k] from orgqr's packed [m, k].
  virtual void take_q(DType dtype, std::int64_t m, std::int64_t k, const void* packed, const void* phase,
                      void* q) const = 0;
  // The phase of vectors is fixed so that the component of largest modulus (the first, if several are equal to a
  // relative sqrt(epsilon)) is real and positive; its index goes to `largest`.
  /// Copies syevd's packed vectors [n, n], of the conjugate matrix, to the columns of vectors.
  virtual void take_hermitian_vectors(DType dtype, std::int64_t n, const void* packed, void* vectors,
                                      std::int32_t* largest) const = 0;
  /// Copies geev's eigenvalues and packed vectors, for a matrix [n, n] of this dtype, to complex values and columns of
  /// vectors.
  virtual void take_eigenvectors(DType dtype, std::int64_t n, const void* from, const void* packed, void* values,
                                 void* vectors, std::int32_t* largest) const = 0;
  /// Fixes the phase of the columns of u [m, k] in place, and applies the inverse phase to the rows of vh [k, n].
  virtual void turn_singular(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, void* u, void* vh,
                             std::int32_t* largest) const = 0;
  /// *independent: is the condition number of a complex matrix x [n, n] below 1 / (10 epsilon)? Needs its inverse,
  /// and a buffer `room` [2 n].
  virtual void compare_condition(DType complex, std::int64_t n, const void* x, const void* inverse, double* room,
                                 bool* independent) const = 0;
  /// Divides the rows of vh [batch, k, n] by s [batch, k], or zeroes those whose s is at most `rcond` times the
  /// largest.
  virtual void invert_singular(DType dtype, std::int64_t batch, std::int64_t k, std::int64_t n, double rcond,
                               const void* s, void* vh) const = 0;
  /// Sets the flag if, in any row of s [batch, k], the last value is at most `part` times the first.
  virtual void find_rank_loss(DType real, std::int64_t batch, std::int64_t k, double part, const void* s,
                              int* flag) const = 0;
};

/// Runs on the current GPU, in this stream; calls `launched` after each launch, with the number of its indices.
std::unique_ptr<MatrixKernels> matrix_kernels(cudaStream_t stream, std::function<void(std::int64_t)> launched);

}  // namespace reel::cuda
