// cholesky, lu, qr and determinant by cuSOLVER.
#include <algorithm>
#include <climits>

#include "backends/cuda/linalg/matrices.h"

namespace reel::cuda {

namespace {

/// Calls f with orgqr (ungqr) for a dtype, the function that returns its workspace size, and a value of its type.
template <class F>
cusolverStatus_t with_orgqr(const Cusolver& lib, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(lib.cusolverDnSorgqr, lib.cusolverDnSorgqr_bufferSize, float{});
    case DType::f64:
      return f(lib.cusolverDnDorgqr, lib.cusolverDnDorgqr_bufferSize, double{});
    case DType::c64:
      return f(lib.cusolverDnCungqr, lib.cusolverDnCungqr_bufferSize, cuComplex{});
    case DType::c128:
      return f(lib.cusolverDnZungqr, lib.cusolverDnZungqr_bufferSize, cuDoubleComplex{});
    case DType::i32:
    case DType::boolean:
      break;
  }
  throw std::logic_error("reel: internal: matrices of integers");
}

}  // namespace

bool cusolver_cholesky(const Matrices& at, const CholeskyArgs& c) {
  const Cusolver& lib = at.solver;
  const auto type = data_type(c.dtype);
  const std::int64_t n = c.n;
  Verdict verdict(at, c.batch);
  WorkRoom work;
  check(lib.cusolverDnXpotrf_bufferSize(lib.handle, lib.params, CUBLAS_FILL_MODE_UPPER, n, type, c.l, n, type,
                                        &work.device_bytes, &work.host_bytes),
        "potrf");
  work.make(at);
  at.kernels.find_not_finite(c.dtype, c.a, c.batch * n * n, verdict.flag());
  copy(at, c.dtype, c.batch * n * n, c.a, c.l);
  // Our lower triangle is the upper triangle that cuSOLVER sees, and the transpose of its upper factor is our lower
  // one.
  for (std::int64_t i = 0; i < c.batch; ++i)
    check(lib.cusolverDnXpotrf(lib.handle, lib.params, CUBLAS_FILL_MODE_UPPER, n, type,
                               element(c.l, i * n * n, c.dtype), n, type, work.device->data, work.device_bytes,
                               work.host.data(), work.host_bytes, verdict.next()),
          "potrf");
  at.kernels.keep_lower(c.dtype, c.l, c.batch, n);
  at.kernels.find_not_finite(c.dtype, c.l, c.batch * n * n, verdict.flag());
  return verdict.good();
}

bool cusolver_lu(const Matrices& at, const LuArgs& a) {
  const std::int64_t m = a.m, n = a.n, r = std::min(m, n);
  const StoragePtr packed = room(at, m * n, a.dtype);  // pivots are rows, so cuSOLVER must see the matrix itself
  const Swaps swaps(at, r);
  Verdict verdict(at, a.batch);
  WorkRoom work = room_for_factors(at, a.dtype, m, n, packed->data);
  at.kernels.find_not_finite(a.dtype, a.a, a.batch * m * n, verdict.flag());
  for (std::int64_t i = 0; i < a.batch; ++i) {
    transpose(at, a.dtype, m, n, element(a.a, i * m * n, a.dtype), packed->data);
    factor(at, a.dtype, m, n, packed->data, swaps.data(), work, verdict.next());
    at.kernels.split_factors(a, packed->data, swaps.data(), element(a.p, i * m * m, a.dtype),
                             element(a.l, i * m * r, a.dtype), element(a.u, i * r * n, a.dtype));
  }
  at.kernels.find_not_finite(a.dtype, a.u, a.batch * r * n, verdict.flag());
  return verdict.good();
}

bool cusolver_qr(const Matrices& at, const QrArgs& a) {
  if (a.m > INT_MAX || a.n > INT_MAX) return false;  // orgqr has no 64-bit interface
  const Cusolver& lib = at.solver;
  const std::int64_t m = a.m, n = a.n, k = std::min(m, n);
  const int rows = static_cast<int>(m), vectors = static_cast<int>(k);
  const auto type = data_type(a.dtype);
  const StoragePtr packed = room(at, m * n, a.dtype), tau = room(at, k, a.dtype), phase = room(at, k, a.dtype);
  Verdict verdict(at, 2 * a.batch);
  WorkRoom work;
  check(lib.cusolverDnXgeqrf_bufferSize(lib.handle, lib.params, m, n, type, packed->data, m, type, tau->data, type,
                                        &work.device_bytes, &work.host_bytes),
        "geqrf");
  work.make(at);
  int elements = 0;
  check(with_orgqr(lib, a.dtype,
                   [&]<class T>(auto, auto size, T) {
                     return size(lib.handle, rows, vectors, vectors, reinterpret_cast<const T*>(packed->data), rows,
                                 reinterpret_cast<const T*>(tau->data), &elements);
                   }),
        "orgqr");
  const StoragePtr q_work = room(at, elements, a.dtype);
  at.kernels.find_not_finite(a.dtype, a.a, a.batch * m * n, verdict.flag());
  for (std::int64_t i = 0; i < a.batch; ++i) {
    transpose(at, a.dtype, m, n, element(a.a, i * m * n, a.dtype), packed->data);
    check(lib.cusolverDnXgeqrf(lib.handle, lib.params, m, n, type, packed->data, m, type, tau->data, type,
                               work.device->data, work.device_bytes, work.host.data(), work.host_bytes, verdict.next()),
          "geqrf");
    at.kernels.take_r(a.dtype, m, n, packed->data, element(a.r, i * k * n, a.dtype), phase->data);
    check(with_orgqr(lib, a.dtype,
                     [&]<class T>(auto orgqr, auto, T) {
                       return orgqr(lib.handle, rows, vectors, vectors, reinterpret_cast<T*>(packed->data), rows,
                                    reinterpret_cast<const T*>(tau->data), reinterpret_cast<T*>(q_work->data), elements,
                                    verdict.next());
                     }),
          "orgqr");
    at.kernels.take_q(a.dtype, m, k, packed->data, phase->data, element(a.q, i * m * k, a.dtype));
  }
  at.kernels.find_not_finite(a.dtype, a.r, a.batch * k * n, verdict.flag());
  return verdict.good();
}

bool cusolver_determinant(const Matrices& at, const DeterminantArgs& a) {
  const std::int64_t n = a.n;
  const StoragePtr packed = room(at, a.batch * n * n, a.dtype);
  const Swaps swaps(at, a.batch * n);
  Verdict verdict(at, a.batch);
  WorkRoom work = room_for_factors(at, a.dtype, n, n, packed->data);
  at.kernels.find_not_finite(a.dtype, a.a, a.batch * n * n, verdict.flag());
  copy(at, a.dtype, a.batch * n * n, a.a, packed->data);  // the transpose has the same determinant
  for (std::int64_t i = 0; i < a.batch; ++i)
    factor(at, a.dtype, n, n, element(packed->data, i * n * n, a.dtype), swaps.data() + i * n, work, verdict.next());
  at.kernels.determinants(a, packed->data, swaps.data(), verdict.flag());
  return verdict.good();
}

}  // namespace reel::cuda
