// cuBLAS, cuSOLVER and cuFFT of the GPU in software: CBLAS, LAPACKE (tests/emulator/fake_solver.h) and FFTW.
#include "backends/cuda/runtime/libraries.h"

#include <fftw3.h>

#include <array>
#include <cstring>
#include <map>

#include "tests/emulator/device.h"
#include "tests/emulator/fake_solver.h"

namespace reel::cuda {

namespace {

using cuda_emulator::misused;

cudaStream_t solver_stream = nullptr;  // what cuSOLVER does is done at once, so one handle serves all devices

constexpr std::size_t handle_bytes = 1 << 20;  // of the device, for a library's handle

/// A handle of cuBLAS.
struct Handle {
  cudaStream_t stream;
  void* memory;
};
Handle& of(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }
cudaStream_t& stream_of(cublasHandle_t handle) { return of(handle).stream; }

/// A number of the host as it was at the call.
using Number = std::array<std::byte, 16>;
Number number(const void* at, std::size_t bytes) {
  Number out{};
  std::memcpy(out.data(), at, bytes);
  return out;
}
std::size_t size_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : type == CUDA_C_64F ? 16 : 8; }

const Cublas& cblas() {
  static const Cublas table = test::fake_cublas();
  return table;
}
const Cusolver& lapack() {
  static const Cusolver table = test::fake_cusolver();
  return table;
}

template <class N, auto member>
cublasStatus_t trsm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t triangle, cublasOperation_t op,
                    cublasDiagType_t diagonal, int64_t m, int64_t n, const N* alpha, const N* a, int64_t lda, N* b,
                    int64_t ldb) {
  cuda_emulator::submit(stream_of(h), [=, factor = *alpha] {
    (cblas().*member)(h, side, triangle, op, diagonal, m, n, &factor, a, lda, b, ldb);
  });
  return CUBLAS_STATUS_SUCCESS;
}

template <class N, auto member>
cublasStatus_t batched_getrf(cublasHandle_t h, int n, N* const* a, int lda, int* pivots, int* info, int batch) {
  cuda_emulator::submit(stream_of(h), [=] { (cblas().*member)(h, n, a, lda, pivots, info, batch); });
  return CUBLAS_STATUS_SUCCESS;
}
/// Its `invalid` is the host's, and says at the call what is wrong with the arguments.
template <class N, auto member>
cublasStatus_t batched_getrs(cublasHandle_t h, cublasOperation_t op, int n, int k, const N* const* a, int lda,
                             const int* pivots, N* const* b, int ldb, int* invalid, int batch) {
  *invalid = n < 0 ? -2 : k < 0 ? -3 : lda < n ? -5 : ldb < n ? -8 : 0;
  if (*invalid != 0) return CUBLAS_STATUS_INVALID_VALUE;
  cuda_emulator::submit(stream_of(h), [=] {
    int none = 0;
    (cblas().*member)(h, op, n, k, a, lda, pivots, b, ldb, &none, batch);
  });
  return CUBLAS_STATUS_SUCCESS;
}

/// A function of cuSOLVER: at once, behind all that was submitted. It cannot be captured.
template <auto member>
struct AtOnce;
template <class... A, cusolverStatus_t (*Cusolver::*member)(A...)>
struct AtOnce<member> {
  static cusolverStatus_t call(A... arguments) {
    if (cuda_emulator::recorded(solver_stream)) return CUSOLVER_STATUS_EXECUTION_FAILED;
    cusolverStatus_t result = CUSOLVER_STATUS_SUCCESS;
    cuda_emulator::run_now([&] { result = (lapack().*member)(arguments...); });
    return result;
  }
};

struct Plan {
  cufftType type;
  int n, rows;
  cudaStream_t stream;
  void* work;
};
std::map<cufftHandle, Plan> plans;

bool is_real(cufftType type) { return type != CUFFT_C2C && type != CUFFT_Z2Z; }

/// Transforms all rows. What goes from spectra to real numbers spoils its argument.
template <class Real>
void transform(const Plan& p, int sign, void* in, void* out) {
  constexpr bool wide = std::is_same_v<Real, double>;
  using C = std::conditional_t<wide, fftw_complex, fftwf_complex>;
  const bool forward = p.type == CUFFT_R2C || p.type == CUFFT_D2Z;
  const int m = is_real(p.type) ? p.n / 2 + 1 : p.n;
  const auto run = [](auto plan, auto execute, auto destroy) {
    if (!plan) misused("cuFFT", "FFTW makes no plan");
    execute(plan);
    destroy(plan);
  };
  const auto go = [&](auto complex_plan, auto forward_plan, auto backward_plan, auto execute, auto destroy) {
    constexpr unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
    if (!is_real(p.type))
      run(complex_plan(1, &p.n, p.rows, static_cast<C*>(in), nullptr, 1, p.n, static_cast<C*>(out), nullptr, 1, p.n,
                       sign, flags),
          execute, destroy);
    else if (forward)
      run(forward_plan(1, &p.n, p.rows, static_cast<Real*>(in), nullptr, 1, p.n, static_cast<C*>(out), nullptr, 1, m,
                       flags),
          execute, destroy);
    else
      run(backward_plan(1, &p.n, p.rows, static_cast<C*>(in), nullptr, 1, m, static_cast<Real*>(out), nullptr, 1, p.n,
                        flags),
          execute, destroy);
  };
  if constexpr (wide)
    go(fftw_plan_many_dft, fftw_plan_many_dft_r2c, fftw_plan_many_dft_c2r, fftw_execute, fftw_destroy_plan);
  else
    go(fftwf_plan_many_dft, fftwf_plan_many_dft_r2c, fftwf_plan_many_dft_c2r, fftwf_execute, fftwf_destroy_plan);
  if (is_real(p.type) && !forward) std::memset(in, 0xff, static_cast<std::size_t>(p.rows * m) * sizeof(C));
}

template <class Real>
cufftResult execute(cufftHandle handle, cufftType type, int sign, void* in, void* out) {
  const auto found = plans.find(handle);
  if (found == plans.end() || found->second.type != type) return CUFFT_INVALID_PLAN;
  const auto misaligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % (2 * sizeof(Real)) != 0; };
  if (misaligned(in) || misaligned(out)) return CUFFT_INVALID_VALUE;
  cuda_emulator::submit(found->second.stream, [=] {
    const auto plan = plans.find(handle);
    if (plan == plans.end()) misused("cuFFT", "the plan is not there any more");
    transform<Real>(plan->second, sign, in, out);
  });
  return CUFFT_SUCCESS;
}

}  // namespace

void open_library(Cublas& table) {
  openblas_set_num_threads(1);  // other threads have no access to the device's memory
  table.cublasCreate_v2 = [](cublasHandle_t* handle) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, handle_bytes) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = reinterpret_cast<cublasHandle_t>(new Handle{nullptr, memory});
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasDestroy_v2 = [](cublasHandle_t handle) {
    cudaFree(of(handle).memory);
    delete &of(handle);
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasSetStream_v2 = [](cublasHandle_t handle, cudaStream_t stream) {
    stream_of(handle) = stream;
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasSetWorkspace_v2 = [](cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; };
  table.cublasGetStatusString = [](cublasStatus_t) { return "a code of the GPU in software"; };
  table.cublasGemmStridedBatchedEx_64 =
      [](cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
         const void* alpha, const void* x, cudaDataType type_x, int64_t ldx, long long stride_x, const void* y,
         cudaDataType type_y, int64_t ldy, long long stride_y, const void* beta, void* out, cudaDataType type,
         int64_t ldo, long long stride, int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
        const Number a = number(alpha, size_of(type)), b = number(beta, size_of(type));
        cuda_emulator::submit(stream_of(h), [=] {
          if (cblas().cublasGemmStridedBatchedEx_64(h, op_a, op_b, m, n, k, a.data(), x, type_x, ldx, stride_x, y,
                                                    type_y, ldy, stride_y, b.data(), out, type, ldo, stride, batch,
                                                    compute, algorithm) != CUBLAS_STATUS_SUCCESS)
            misused("cublasGemmStridedBatchedEx_64", "wrong arguments");
        });
        return CUBLAS_STATUS_SUCCESS;
      };
  table.cublasStrsm_v2_64 = trsm<float, &Cublas::cublasStrsm_v2_64>;
  table.cublasDtrsm_v2_64 = trsm<double, &Cublas::cublasDtrsm_v2_64>;
  table.cublasCtrsm_v2_64 = trsm<cuComplex, &Cublas::cublasCtrsm_v2_64>;
  table.cublasZtrsm_v2_64 = trsm<cuDoubleComplex, &Cublas::cublasZtrsm_v2_64>;
  table.cublasSgetrfBatched = batched_getrf<float, &Cublas::cublasSgetrfBatched>;
  table.cublasDgetrfBatched = batched_getrf<double, &Cublas::cublasDgetrfBatched>;
  table.cublasCgetrfBatched = batched_getrf<cuComplex, &Cublas::cublasCgetrfBatched>;
  table.cublasZgetrfBatched = batched_getrf<cuDoubleComplex, &Cublas::cublasZgetrfBatched>;
  table.cublasSgetrsBatched = batched_getrs<float, &Cublas::cublasSgetrsBatched>;
  table.cublasDgetrsBatched = batched_getrs<double, &Cublas::cublasDgetrsBatched>;
  table.cublasCgetrsBatched = batched_getrs<cuComplex, &Cublas::cublasCgetrsBatched>;
  table.cublasZgetrsBatched = batched_getrs<cuDoubleComplex, &Cublas::cublasZgetrsBatched>;
}

void open_library(Cusolver& table) {
#define REEL_AT_ONCE(f) table.f = AtOnce<&Cusolver::f>::call;
  REEL_CUSOLVER(REEL_AT_ONCE)
  REEL_CUSOLVER_LATE(REEL_AT_ONCE)
#undef REEL_AT_ONCE
  table.cusolverDnCreate = [](cusolverDnHandle_t* handle) {
    void* memory = nullptr;  // it stays with the one handle
    if (cudaMalloc(&memory, handle_bytes) != cudaSuccess) return CUSOLVER_STATUS_ALLOC_FAILED;
    *handle = reinterpret_cast<cusolverDnHandle_t>(&solver_stream);
    return CUSOLVER_STATUS_SUCCESS;
  };
  table.cusolverDnDestroy = [](cusolverDnHandle_t) { return CUSOLVER_STATUS_SUCCESS; };
  table.cusolverDnSetStream = [](cusolverDnHandle_t, cudaStream_t stream) {
    solver_stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
  };
  table.cusolverDnCreateParams = [](cusolverDnParams_t* params) {
    *params = reinterpret_cast<cusolverDnParams_t>(&solver_stream);
    return CUSOLVER_STATUS_SUCCESS;
  };
  table.cusolverDnDestroyParams = [](cusolverDnParams_t) { return CUSOLVER_STATUS_SUCCESS; };
}

void open_library(Cufft& table) {
  table.cufftCreate = [](cufftHandle* handle) {
    static cufftHandle next = 0;
    *handle = ++next;
    return CUFFT_SUCCESS;
  };
  table.cufftDestroy = [](cufftHandle handle) {
    cuda_emulator::run_now([] {});  // as it waits for what uses it
    const auto plan = plans.find(handle);
    if (plan == plans.end()) return CUFFT_SUCCESS;
    cudaFree(plan->second.work);
    plans.erase(plan);
    return CUFFT_SUCCESS;
  };
  table.cufftMakePlanMany64 = [](cufftHandle handle, int rank, long long* n, long long* in, long long in_stride,
                                 long long in_rows, long long* out, long long out_stride, long long out_rows,
                                 cufftType type, long long rows, std::size_t* work) {
    if (rank != 1 || in || out || in_stride != 1 || out_stride != 1 || in_rows != 0 || out_rows != 0)
      return CUFFT_INVALID_VALUE;  // none but rows one behind the other
    *work = static_cast<std::size_t>(*n * rows) * sizeof(cufftDoubleComplex);
    void* memory = nullptr;
    if (cudaMalloc(&memory, *work) != cudaSuccess) return CUFFT_ALLOC_FAILED;
    plans[handle] = {type, static_cast<int>(*n), static_cast<int>(rows), nullptr, memory};
    return CUFFT_SUCCESS;
  };
  table.cufftSetStream = [](cufftHandle handle, cudaStream_t stream) {
    plans.at(handle).stream = stream;
    return CUFFT_SUCCESS;
  };
  table.cufftExecC2C = [](cufftHandle h, cufftComplex* in, cufftComplex* out, int direction) {
    return execute<float>(h, CUFFT_C2C, direction, in, out);
  };
  table.cufftExecZ2Z = [](cufftHandle h, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
    return execute<double>(h, CUFFT_Z2Z, direction, in, out);
  };
  table.cufftExecR2C = [](cufftHandle h, float* in, cufftComplex* out) {
    return execute<float>(h, CUFFT_R2C, 0, in, out);
  };
  table.cufftExecD2Z = [](cufftHandle h, double* in, cufftDoubleComplex* out) {
    return execute<double>(h, CUFFT_D2Z, 0, in, out);
  };
  table.cufftExecC2R = [](cufftHandle h, cufftComplex* in, float* out) {
    return execute<float>(h, CUFFT_C2R, 0, in, out);
  };
  table.cufftExecZ2D = [](cufftHandle h, cufftDoubleComplex* in, double* out) {
    return execute<double>(h, CUFFT_Z2D, 0, in, out);
  };
}

}  // namespace reel::cuda
