// eigh and svd by cuSOLVER, and from singular values pinv and polar_factor.
#include <algorithm>
#include <limits>

#include "backends/cuda/linalg/matrices.h"

namespace reel::cuda {

namespace {

/// u diag(s) vh of each matrix, with the phases of vectors fixed. The returned workspace must live until everything has
/// run.
WorkRoom decompose(const Matrices& at, const SvdArgs& a, Verdict& verdict) {
  const Cusolver& lib = at.solver;
  const std::int64_t m = a.m, n = a.n, k = std::min(m, n);
  const DType real = real_of(a.dtype);
  const auto type = data_type(a.dtype), real_type = data_type(real);
  // gesvd needs at least as many rows as columns. For a wide or square matrix it sees the transpose, whose vectors are
  // vh' and u' as stored. A tall matrix is transposed before the call, and its vectors after it.
  const bool tall = m > n;
  const std::int64_t rows = std::max(m, n);
  const StoragePtr packed = room(at, m * n, a.dtype), left = room(at, tall ? m * k : 0, a.dtype),
                   right = room(at, tall ? k * k : 0, a.dtype);
  WorkRoom work;
  check(lib.cusolverDnXgesvd_bufferSize(lib.handle, lib.params, 'S', 'S', rows, k, type, packed->data, rows, real_type,
                                        a.s, type, tall ? left->data : a.vh, rows, type, tall ? right->data : a.u, k,
                                        type, &work.device_bytes, &work.host_bytes),
        "gesvd");
  work.make(at);
  for (std::int64_t i = 0; i < a.batch; ++i) {
    const std::byte* const from = element(a.a, i * m * n, a.dtype);
    std::byte *const u = element(a.u, i * m * k, a.dtype), *const vh = element(a.vh, i * k * n, a.dtype);
    if (tall)
      transpose(at, a.dtype, m, n, from, packed->data);
    else
      copy(at, a.dtype, m * n, from, packed->data);
    check(lib.cusolverDnXgesvd(lib.handle, lib.params, 'S', 'S', rows, k, type, packed->data, rows, real_type,
                               element(a.s, i * k, real), type, tall ? left->data : vh, rows, type,
                               tall ? right->data : u, k, type, work.device->data, work.device_bytes, work.host.data(),
                               work.host_bytes, verdict.next()),
          "gesvd");
    if (!tall) continue;
    transpose(at, a.dtype, k, m, left->data, u);
    transpose(at, a.dtype, k, k, right->data, vh);
  }
  return work;
}

/// The SVD of matrices, as input for pinv and polar_factor.
struct Svd {
  StoragePtr u, s, vh;
  WorkRoom work;
  Svd(const Matrices& at, DType dtype, std::int64_t batch, std::int64_t m, std::int64_t n, const void* a,
      Verdict& verdict)
      : u(room(at, batch * m * std::min(m, n), dtype)),
        s(room(at, batch * std::min(m, n), real_of(dtype))),
        vh(room(at, batch * n * std::min(m, n), dtype)),
        work(decompose(at, {dtype, batch, m, n, a, u->data, s->data, vh->data, nullptr}, verdict)) {}
  /// op(x) op(y), packed, of x and y as the library sees them: [m, k] [k, n], with leading dimensions; in full
  /// precision.
  static void multiply(const Matrices& at, DType dtype, cublasOperation_t op, std::int64_t batch, std::int64_t m,
                       std::int64_t n, std::int64_t k, const StoragePtr& x, std::int64_t ldx, const StoragePtr& y,
                       std::int64_t ldy, void* out) {
    const auto type = data_type(dtype);
    const bool wide = real_of(dtype) == DType::f64;
    const double one[] = {1, 0}, zero[] = {0, 0};
    const float one_single[] = {1, 0}, zero_single[] = {0, 0};
    check(at.blas.cublasGemmStridedBatchedEx_64(
              at.blas.handle, op, op, m, n, k, wide ? static_cast<const void*>(one) : one_single, x->data, type, ldx,
              m * k, y->data, type, ldy, k * n, wide ? static_cast<const void*>(zero) : zero_single, out, type, m,
              m * n, batch, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "gemm");
  }
};

}  // namespace

bool cusolver_eigh(const Matrices& at, const EighArgs& e) {
  const Cusolver& lib = at.solver;
  const DType real = real_of(e.dtype);
  const auto type = data_type(e.dtype), real_type = data_type(real);
  const std::int64_t n = e.n;
  if (!finite(at, e.dtype, e.a, e.batch * n * n)) return false;
  const StoragePtr vectors = room(at, n * n, e.dtype);
  Verdict verdict(at, e.batch);
  WorkRoom work;
  check(lib.cusolverDnXsyevd_bufferSize(lib.handle, lib.params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n,
                                        type, vectors->data, n, real_type, e.values, type, &work.device_bytes,
                                        &work.host_bytes),
        "syevd");
  work.make(at);
  for (std::int64_t i = 0; i < e.batch; ++i) {
    copy(at, e.dtype, n * n, element(e.a, i * n * n, e.dtype), vectors->data);
    check(lib.cusolverDnXsyevd(lib.handle, lib.params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, type,
                               vectors->data, n, real_type, element(e.values, i * n, real), type, work.device->data,
                               work.device_bytes, work.host.data(), work.host_bytes, verdict.next()),
          "syevd");
    at.kernels.take_hermitian_vectors(e.dtype, n, vectors->data, element(e.vectors, i * n * n, e.dtype),
                                      e.largest + i * n);
  }
  at.kernels.find_not_finite(real, e.values, e.batch * n, verdict.flag());
  return verdict.good();
}

bool cusolver_svd(const Matrices& at, const SvdArgs& a) {
  if (!finite(at, a.dtype, a.a, a.batch * a.m * a.n)) return false;
  const std::int64_t k = std::min(a.m, a.n);
  Verdict verdict(at, a.batch);
  const WorkRoom work = decompose(at, a, verdict);
  for (std::int64_t i = 0; i < a.batch; ++i)
    at.kernels.turn_singular(a.dtype, a.m, a.n, k, element(a.u, i * a.m * k, a.dtype),
                             element(a.vh, i * k * a.n, a.dtype), a.largest + i * k);
  at.kernels.find_not_finite(real_of(a.dtype), a.s, a.batch * k, verdict.flag());
  return verdict.good();
}

bool cusolver_pinv(const Matrices& at, const PinvArgs& a) {
  if (!finite(at, a.dtype, a.a, a.batch * a.m * a.n)) return false;
  const std::int64_t m = a.m, n = a.n, k = std::min(m, n);
  Verdict verdict(at, a.batch);
  const Svd svd(at, a.dtype, a.batch, m, n, a.a, verdict);
  at.kernels.find_not_finite(real_of(a.dtype), svd.s->data, a.batch * k, verdict.flag());
  at.kernels.invert_singular(a.dtype, a.batch, k, n, a.rcond, svd.s->data, svd.vh->data);
  // out = vh^H u^H; seen transposed, out' = u'^H vh'^H.
  Svd::multiply(at, a.dtype, CUBLAS_OP_C, a.batch, m, n, k, svd.u, k, svd.vh, n, a.out);
  at.kernels.find_not_finite(a.dtype, a.out, a.batch * m * n, verdict.flag());
  return verdict.good();
}

bool cusolver_polar_factor(const Matrices& at, const PolarFactorArgs& a) {
  if (!finite(at, a.dtype, a.a, a.batch * a.m * a.n)) return false;
  const std::int64_t m = a.m, n = a.n, k = std::min(m, n);
  Verdict verdict(at, a.batch);
  const Svd svd(at, a.dtype, a.batch, m, n, a.a, verdict);
  const DType real = real_of(a.dtype);
  const double epsilon = dispatch_floating(
      real, []<class T>(std::type_identity<T>) { return static_cast<double>(std::numeric_limits<T>::epsilon()); });
  at.kernels.find_not_finite(real, svd.s->data, a.batch * k, verdict.flag());
  at.kernels.find_rank_loss(real, a.batch, k, static_cast<double>(m) * epsilon, svd.s->data, verdict.flag());
  // out = u vh; seen transposed, out' = vh' u'.
  Svd::multiply(at, a.dtype, CUBLAS_OP_N, a.batch, n, m, k, svd.vh, n, svd.u, k, a.out);
  return verdict.good();
}

}  // namespace reel::cuda
