// cuSOLVER's and cuBLAS's functions by LAPACKE and CBLAS, on memory of the host: as NVIDIA documents them, column by
// column, with the limits they have. They spoil what they may: their room, and matrices that they take apart.
#pragma once
#include <cstring>

#include "backends/cpu/kernels/lapack_calls.h"
#include "backends/cuda/runtime/libraries.h"

namespace reel::test {

namespace fake {

using cpu::fitting;
using cpu::narrow;
using cpu::Real;
using cuda::Cublas;
using cuda::Cusolver;

/// Calls f with the element type; refuses others.
template <class F>
cusolverStatus_t with_type(cudaDataType type, F&& f) {
  const auto call = [&]<class T>(T) { return f(std::type_identity<T>{}); };
  switch (type) {
    case CUDA_R_32F:
      return call(float{});
    case CUDA_R_64F:
      return call(double{});
    case CUDA_C_32F:
      return call(std::complex<float>{});
    case CUDA_C_64F:
      return call(std::complex<double>{});
    default:
      return CUSOLVER_STATUS_INVALID_VALUE;
  }
}
inline cudaDataType real_type(cudaDataType type) {
  return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}
inline cudaDataType complex_type(cudaDataType type) {
  return type == CUDA_R_32F ? CUDA_C_32F : type == CUDA_R_64F ? CUDA_C_64F : type;
}

constexpr std::size_t device_bytes = 96, host_bytes = 40;
inline cusolverStatus_t ask(std::size_t* device, std::size_t* host) {
  *device = device_bytes, *host = host_bytes;
  return CUSOLVER_STATUS_SUCCESS;
}
/// Writes to all of the room that was asked for.
inline bool use(void* device, std::size_t on_device, void* host, std::size_t on_host) {
  if (on_device < device_bytes || on_host < host_bytes) return false;
  std::memset(device, 0xff, on_device);
  std::memset(host, 0xff, on_host);
  return true;
}
inline cusolverStatus_t done(lapack_int code, int* info) {
  *info = code;
  return code < 0 ? CUSOLVER_STATUS_INVALID_VALUE : CUSOLVER_STATUS_SUCCESS;
}
inline char letter(cublasOperation_t op) { return op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C'; }
inline CBLAS_TRANSPOSE cblas(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
/// Row i of a triangular factor may have any phase, so here it has this one.
template <class T>
T own_phase(int64_t i) {
  if constexpr (is_complex_type<T>)
    return std::polar(Real<T>(1), static_cast<Real<T>>(i + 1));
  else
    return i % 2 == 0 ? T(-1) : T(1);
}
template <class T>
void spoil(T* x, std::int64_t n) {
  std::fill_n(x, n, T(std::numeric_limits<Real<T>>::quiet_NaN()));
}

inline void fill_factors(Cusolver& s) {
  s.cusolverDnXgetrf_bufferSize = [](cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t, cudaDataType,
                                     const void*, int64_t, cudaDataType, size_t* d, size_t* h) { return ask(d, h); };
  s.cusolverDnXgetrf = [](cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType type, void* a,
                          int64_t lda, int64_t* swaps, cudaDataType compute, void* d, size_t nd, void* h, size_t nh,
                          int* info) {
    if (!use(d, nd, h, nh) || compute != type) return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      std::vector<lapack_int> p(static_cast<std::size_t>(std::min(m, n)));
      const lapack_int code =
          REEL_LAPACK(getrf)(LAPACK_COL_MAJOR, narrow(m), narrow(n), static_cast<T*>(a), narrow(lda), p.data());
      std::copy(p.begin(), p.end(), swaps);
      return done(code, info);
    });
  };
  s.cusolverDnXgetrs = [](cusolverDnHandle_t, cusolverDnParams_t, cublasOperation_t op, int64_t n, int64_t k,
                          cudaDataType type, const void* a, int64_t lda, const int64_t* swaps, cudaDataType type_b,
                          void* b, int64_t ldb, int* info) {
    if (type_b != type) return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      const std::vector<lapack_int> p(swaps, swaps + n);
      return done(REEL_LAPACK(getrs)(LAPACK_COL_MAJOR, letter(op), narrow(n), narrow(k), static_cast<const T*>(a),
                                     narrow(lda), p.data(), static_cast<T*>(b), narrow(ldb)),
                  info);
    });
  };
  s.cusolverDnXpotrf_bufferSize = [](cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t, int64_t, cudaDataType,
                                     const void*, int64_t, cudaDataType, size_t* d, size_t* h) { return ask(d, h); };
  s.cusolverDnXpotrf = [](cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t triangle, int64_t n,
                          cudaDataType type, void* a, int64_t lda, cudaDataType compute, void* d, size_t nd, void* h,
                          size_t nh, int* info) {
    if (!use(d, nd, h, nh) || compute != type) return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      return done(REEL_LAPACK(potrf)(LAPACK_COL_MAJOR, triangle == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L', narrow(n),
                                     static_cast<T*>(a), narrow(lda)),
                  info);
    });
  };
  s.cusolverDnXgeqrf_bufferSize = [](cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t, cudaDataType,
                                     const void*, int64_t, cudaDataType, const void*, cudaDataType, size_t* d,
                                     size_t* h) { return ask(d, h); };
  s.cusolverDnXgeqrf = [](cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType type, void* a,
                          int64_t lda, cudaDataType type_tau, void* tau, cudaDataType compute, void* d, size_t nd,
                          void* h, size_t nh, int* info) {
    if (!use(d, nd, h, nh) || type_tau != type || compute != type) return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      T* const r = static_cast<T*>(a);
      const lapack_int code =
          REEL_LAPACK(geqrf)(LAPACK_COL_MAJOR, narrow(m), narrow(n), r, narrow(lda), static_cast<T*>(tau));
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i <= std::min(j, m - 1); ++i) r[j * lda + i] *= own_phase<T>(i);
      }
      return done(code, info);
    });
  };
}

/// orgqr and ungqr: T is LAPACK's number, N NVIDIA's.
template <class T, class N>
void fill_orgqr(cusolverStatus_t (*&size)(cusolverDnHandle_t, int, int, int, const N*, int, const N*, int*),
                cusolverStatus_t (*&run)(cusolverDnHandle_t, int, int, int, N*, int, const N*, N*, int, int*)) {
  static constexpr int elements = 7;
  size = [](cusolverDnHandle_t, int, int, int, const N*, int, const N*, int* n) {
    *n = elements;
    return CUSOLVER_STATUS_SUCCESS;
  };
  run = [](cusolverDnHandle_t, int m, int n, int k, N* a, int lda, const N* tau, N* work, int room, int* info) {
    if (m < n || n < k || room < elements) return CUSOLVER_STATUS_INVALID_VALUE;
    spoil(reinterpret_cast<T*>(work), room);
    const auto call = fitting<T>(LAPACKE_sorgqr, LAPACKE_dorgqr, LAPACKE_cungqr, LAPACKE_zungqr);
    T* const q = reinterpret_cast<T*>(a);
    const lapack_int code = call(LAPACK_COL_MAJOR, m, n, k, q, lda, reinterpret_cast<const T*>(tau));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) q[j * lda + i] /= own_phase<T>(j);
    }
    return done(code, info);
  };
}

inline void fill_spectra(Cusolver& s) {
  s.cusolverDnXsyevd_bufferSize = [](cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t,
                                     int64_t, cudaDataType, const void*, int64_t, cudaDataType, const void*,
                                     cudaDataType, size_t* d, size_t* h) { return ask(d, h); };
  s.cusolverDnXsyevd = [](cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t mode, cublasFillMode_t triangle,
                          int64_t n, cudaDataType type, void* a, int64_t lda, cudaDataType type_w, void* w,
                          cudaDataType compute, void* d, size_t nd, void* h, size_t nh, int* info) {
    if (!use(d, nd, h, nh) || type_w != real_type(type) || compute != type) return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      const auto call = fitting<T>(LAPACKE_ssyevd, LAPACKE_dsyevd, LAPACKE_cheevd, LAPACKE_zheevd);
      return done(call(LAPACK_COL_MAJOR, mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N',
                       triangle == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L', narrow(n), static_cast<T*>(a), narrow(lda),
                       static_cast<Real<T>*>(w)),
                  info);
    });
  };
  s.cusolverDnXgesvd_bufferSize = [](cusolverDnHandle_t, cusolverDnParams_t, signed char, signed char, int64_t, int64_t,
                                     cudaDataType, const void*, int64_t, cudaDataType, const void*, cudaDataType,
                                     const void*, int64_t, cudaDataType, const void*, int64_t, cudaDataType, size_t* d,
                                     size_t* h) { return ask(d, h); };
  s.cusolverDnXgesvd = [](cusolverDnHandle_t, cusolverDnParams_t, signed char job_u, signed char job_v, int64_t m,
                          int64_t n, cudaDataType type, void* a, int64_t lda, cudaDataType type_s, void* values,
                          cudaDataType type_u, void* u, int64_t ldu, cudaDataType type_v, void* vt, int64_t ldvt,
                          cudaDataType compute, void* d, size_t nd, void* h, size_t nh, int* info) {
    const bool alike = type_u == type && type_v == type && compute == type && type_s == real_type(type);
    if (!use(d, nd, h, nh) || m < n || !alike) return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      std::vector<Real<T>> work(static_cast<std::size_t>(n));
      const lapack_int code =
          REEL_LAPACK(gesvd)(LAPACK_COL_MAJOR, static_cast<char>(job_u), static_cast<char>(job_v), narrow(m), narrow(n),
                             static_cast<T*>(a), narrow(lda), static_cast<Real<T>*>(values), static_cast<T*>(u),
                             narrow(ldu), static_cast<T*>(vt), narrow(ldvt), work.data());
      spoil(static_cast<T*>(a), lda * n);
      return done(code, info);
    });
  };
#if CUSOLVER_VERSION >= REEL_CUSOLVER_GEEV
  s.cusolverDnXgeev_bufferSize = [](cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cusolverEigMode_t,
                                    int64_t, cudaDataType, const void*, int64_t, cudaDataType, const void*,
                                    cudaDataType, const void*, int64_t, cudaDataType, const void*, int64_t,
                                    cudaDataType, size_t* d, size_t* h) { return ask(d, h); };
  s.cusolverDnXgeev = [](cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t left, cusolverEigMode_t, int64_t n,
                         cudaDataType type, void* a, int64_t lda, cudaDataType type_w, void* w, cudaDataType type_l,
                         void*, int64_t ldvl, cudaDataType type_r, void* vr, int64_t ldvr, cudaDataType compute,
                         void* d, size_t nd, void* h, size_t nh, int* info) {
    const bool alike = type_l == type && type_r == type && compute == type && type_w == complex_type(type);
    if (!use(d, nd, h, nh) || left != CUSOLVER_EIG_MODE_NOVECTOR || ldvl < 1 || !alike)
      return CUSOLVER_STATUS_INVALID_VALUE;
    return with_type(type, [&]<class T>(std::type_identity<T>) {
      auto* const values = static_cast<std::complex<Real<T>>*>(w);
      lapack_int code = 0;
      const auto geev = REEL_LAPACK(geev);
      T* const matrix = static_cast<T*>(a);
      if constexpr (is_complex_type<T>) {
        code = geev(LAPACK_COL_MAJOR, 'N', 'V', narrow(n), matrix, narrow(lda), values, nullptr, 1, static_cast<T*>(vr),
                    narrow(ldvr));
      } else {
        std::vector<T> re(static_cast<std::size_t>(n)), im(re);
        code = geev(LAPACK_COL_MAJOR, 'N', 'V', narrow(n), matrix, narrow(lda), re.data(), im.data(), nullptr, 1,
                    static_cast<T*>(vr), narrow(ldvr));
        for (std::size_t j = 0; j < re.size(); ++j) values[j] = {re[j], im[j]};
      }
      spoil(matrix, lda * n);
      return done(code, info);
    });
  };
#endif
}

/// trsm; T is CBLAS's number, N NVIDIA's.
template <class T, class N>
void fill_trsm(cublasStatus_t (*&f)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                    cublasDiagType_t, int64_t, int64_t, const N*, const N*, int64_t, N*, int64_t)) {
  f = [](cublasHandle_t, cublasSideMode_t side, cublasFillMode_t triangle, cublasOperation_t op, cublasDiagType_t diag,
         int64_t m, int64_t n, const N* alpha, const N* a, int64_t lda, N* b, int64_t ldb) {
    const auto call = fitting<T>(cblas_strsm, cblas_dtrsm, cblas_ctrsm, cblas_ztrsm);
    const auto run = [&](auto factor) {
      call(CblasColMajor, side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,
           triangle == CUBLAS_FILL_MODE_UPPER ? CblasUpper : CblasLower, cblas(op),
           diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit, narrow(m), narrow(n), factor,
           reinterpret_cast<const T*>(a), narrow(lda), reinterpret_cast<T*>(b), narrow(ldb));
    };
    if constexpr (is_complex_type<T>)
      run(alpha);
    else
      run(*alpha);
    return CUBLAS_STATUS_SUCCESS;
  };
}

/// Batched getrf and getrs, of pointers to matrices; T is LAPACK's number, N NVIDIA's.
template <class T, class N>
void fill_batched(cublasStatus_t (*&factor)(cublasHandle_t, int, N* const*, int, int*, int*, int),
                  cublasStatus_t (*&solve)(cublasHandle_t, cublasOperation_t, int, int, const N* const*, int,
                                           const int*, N* const*, int, int*, int)) {
  factor = [](cublasHandle_t, int n, N* const* a, int lda, int* pivots, int* info, int batch) {
    for (int i = 0; i < batch; ++i)
      info[i] = REEL_LAPACK(getrf)(LAPACK_COL_MAJOR, n, n, reinterpret_cast<T*>(a[i]), lda, pivots + i * n);
    return CUBLAS_STATUS_SUCCESS;
  };
  solve = [](cublasHandle_t, cublasOperation_t op, int n, int k, const N* const* a, int lda, const int* pivots,
             N* const* b, int ldb, int* invalid, int batch) {
    for (int i = 0; i < batch; ++i) REEL_LAPACK(getrs)
    (LAPACK_COL_MAJOR, letter(op), n, k, reinterpret_cast<const T*>(a[i]), lda, pivots + i * n,
     reinterpret_cast<T*>(b[i]), ldb);
    *invalid = 0;
    return CUBLAS_STATUS_SUCCESS;
  };
}

inline void fill_gemm(Cublas& b) {
  b.cublasGemmStridedBatchedEx_64 =
      [](cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
         const void* alpha, const void* x, cudaDataType type, int64_t ldx, long long stride_x, const void* y,
         cudaDataType type_y, int64_t ldy, long long stride_y, const void* beta, void* out, cudaDataType type_out,
         int64_t ldo, long long stride_out, int64_t batch, cublasComputeType_t, cublasGemmAlgo_t) {
        if (type_y != type || type_out != type) return CUBLAS_STATUS_INVALID_VALUE;
        const cusolverStatus_t code = with_type(type, [&]<class T>(std::type_identity<T>) {
          const auto gemm = fitting<T>(cblas_sgemm, cblas_dgemm, cblas_cgemm, cblas_zgemm);
          const auto run = [&](int64_t i, auto one, auto zero) {
            gemm(CblasColMajor, cblas(op_a), cblas(op_b), narrow(m), narrow(n), narrow(k), one,
                 static_cast<const T*>(x) + i * stride_x, narrow(ldx), static_cast<const T*>(y) + i * stride_y,
                 narrow(ldy), zero, static_cast<T*>(out) + i * stride_out, narrow(ldo));
          };
          for (int64_t i = 0; i < batch; ++i) {
            if constexpr (is_complex_type<T>)
              run(i, alpha, beta);
            else
              run(i, *static_cast<const T*>(alpha), *static_cast<const T*>(beta));
          }
          return CUSOLVER_STATUS_SUCCESS;
        });
        return code == CUSOLVER_STATUS_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
      };
}

}  // namespace fake

inline cuda::Cusolver fake_cusolver() {
  LAPACKE_set_nancheck(0);  // no more than cuSOLVER looks for NaN
  cuda::Cusolver s;
  fake::fill_factors(s);
  fake::fill_spectra(s);
  fake::fill_orgqr<float>(s.cusolverDnSorgqr_bufferSize, s.cusolverDnSorgqr);
  fake::fill_orgqr<double>(s.cusolverDnDorgqr_bufferSize, s.cusolverDnDorgqr);
  fake::fill_orgqr<std::complex<float>>(s.cusolverDnCungqr_bufferSize, s.cusolverDnCungqr);
  fake::fill_orgqr<std::complex<double>>(s.cusolverDnZungqr_bufferSize, s.cusolverDnZungqr);
  return s;
}
inline cuda::Cublas fake_cublas() {
  cuda::Cublas b;
  fake::fill_trsm<float>(b.cublasStrsm_v2_64);
  fake::fill_trsm<double>(b.cublasDtrsm_v2_64);
  fake::fill_trsm<std::complex<float>>(b.cublasCtrsm_v2_64);
  fake::fill_trsm<std::complex<double>>(b.cublasZtrsm_v2_64);
  fake::fill_batched<float>(b.cublasSgetrfBatched, b.cublasSgetrsBatched);
  fake::fill_batched<double>(b.cublasDgetrfBatched, b.cublasDgetrsBatched);
  fake::fill_batched<std::complex<float>>(b.cublasCgetrfBatched, b.cublasCgetrsBatched);
  fake::fill_batched<std::complex<double>>(b.cublasZgetrfBatched, b.cublasZgetrsBatched);
  fake::fill_gemm(b);
  return b;
}

}  // namespace reel::test
