// Matrix products by cuBLAS. It is column-major and sees row-major matrices transposed, so c = op(a) op(b) becomes c' =
// op(b)' op(a)', with no copies.
#include "backends/cuda/cuda.h"
#include "backends/cuda/runtime/libraries.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

namespace {

/// cuBLAS's name for the form of a row-major operand.
cublasOperation_t form(bool transpose, bool conj) {
  return !transpose ? CUBLAS_OP_N : conj ? CUBLAS_OP_C : CUBLAS_OP_T;
}

cublasComputeType_t compute_type(DType dtype, Precision precision) {
  if (real_of(dtype) == DType::f64) return CUBLAS_COMPUTE_64F;
  return precision == Precision::tf32   ? CUBLAS_COMPUTE_32F_FAST_TF32
         : precision == Precision::bf16 ? CUBLAS_COMPUTE_32F_FAST_16BF
                                        : CUBLAS_COMPUTE_32F;
}

}  // namespace

const Cublas& Cuda::blas() {
  const auto room = [&](std::size_t bytes) { return StoragePtr(allocate_from(nullptr, bytes)); };
  if (!libraries_->has_blas()) retried([&] { libraries_->blas(room); });
  return libraries_->blas(room);
}

void Cuda::gemm(const GemmArgs& g) {
  if (!is_differentiable(g.dtype)) unsupported("gemm of integers or bool");
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  if (g.k == 0) return fill({g.dtype, g.batch * g.m * g.n, 0, g.c});  // an empty sum
  const auto conjugated = [&](const void* x, std::int64_t stride, std::int64_t size) {
    const std::int64_t n = stride == 0 ? size : (g.batch - 1) * stride + size;
    StoragePtr room = scratch(static_cast<std::size_t>(n) * size_of(g.dtype));
    map({index_of<Conj, UnaryFunctors>, Conj{}, g.dtype, n, x, room->data});
    return room;
  };
  // cuBLAS conjugates only transposed operands.
  const bool complex = is_complex(g.dtype);
  StoragePtr own_a, own_b;
  const void *a = g.a, *b = g.b;
  if (complex && g.conj_a && !g.transpose_a) a = (own_a = conjugated(a, g.stride_a, g.m * g.k))->data;
  if (complex && g.conj_b && !g.transpose_b) b = (own_b = conjugated(b, g.stride_b, g.k * g.n))->data;

  std::int64_t m = g.m, batch = g.batch;
  if (batch > 1 && g.stride_b == 0 && !g.transpose_a && g.stride_a == g.m * g.k) {  // one tall matrix
    m *= batch;
    batch = 1;
  }
  stream();
  if (!libraries_->has_blas()) not_captured("cuBLAS is to be opened first");
  const Cublas& blas = this->blas();
  const std::int64_t lda = g.transpose_a ? m : g.k, ldb = g.transpose_b ? g.k : g.n;
  const auto type = data_type(g.dtype);
  const double one[4] = {1, 0, 0, 0}, zero[4] = {};
  const float one_single[2] = {1, 0}, zero_single[2] = {};
  const bool wide = real_of(g.dtype) == DType::f64;
  const cublasStatus_t code = blas.cublasGemmStridedBatchedEx_64(
      blas.handle, form(g.transpose_b, complex && g.conj_b), form(g.transpose_a, complex && g.conj_a), g.n, m, g.k,
      wide ? static_cast<const void*>(one) : one_single, b, type, ldb, g.stride_b, a, type, lda, g.stride_a,
      wide ? static_cast<const void*>(zero) : zero_single, g.c, type, g.n, m * g.n, batch,
      compute_type(g.dtype, libraries_->precision()), CUBLAS_GEMM_DEFAULT);
  check(code, "gemm");
  launched("gemm", {g.batch, g.m, g.n, g.k});
}

}  // namespace reel::cuda
