// Small kernels that linear algebra needs around cuSOLVER's calls.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/dtype.h"

namespace reel::cuda {

/// Sets *flag to 1 if an element is not finite.
void flag_not_finite(DType dtype, const void* x, std::int64_t n, int* flag, cudaStream_t stream);
/// Sets what is above the diagonal of row-major matrices [batch, n, n] to zero.
void clear_above_diagonal(DType dtype, void* x, std::int64_t batch, std::int64_t n, cudaStream_t stream);
/// Vectors that cuSOLVER leaves column by column, of the conjugate matrix, as columns of a row-major one, turned so
/// that the component of largest modulus (the first of those equal to sqrt(epsilon)) is real and positive: its place
/// goes to `largest`.
void take_vectors(DType dtype, const void* columns, std::int64_t n, void* vectors, std::int32_t* largest,
                  cudaStream_t stream);

}  // namespace reel::cuda
