// cuBLAS, cuSOLVER, cuFFT, NVRTC and the driver, loaded with dlopen on first use, so that a program with this backend
// also starts on machines without them; linking, even lazily, would prevent that. The tables' types come from the
// toolkit's headers.
#pragma once
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <nvrtc.h>

#include <functional>
#include <string>

#include "backends/cuda/runtime/device_options.h"
#include "engine/core/dtype.h"
#include "engine/device/backend.h"

namespace reel::cuda {

// clang-format off
#define REEL_CUBLAS(X)                                                                                  \
  X(cublasCreate_v2) X(cublasDestroy_v2) X(cublasSetStream_v2) X(cublasSetWorkspace_v2)                 \
  X(cublasGetStatusString) X(cublasGemmStridedBatchedEx_64)                                             \
  X(cublasStrsm_v2_64) X(cublasDtrsm_v2_64) X(cublasCtrsm_v2_64) X(cublasZtrsm_v2_64)                   \
  X(cublasSgetrfBatched) X(cublasDgetrfBatched) X(cublasCgetrfBatched) X(cublasZgetrfBatched)           \
  X(cublasSgetrsBatched) X(cublasDgetrsBatched) X(cublasCgetrsBatched) X(cublasZgetrsBatched)
#define REEL_CUSOLVER(X)                                                                                \
  X(cusolverDnCreate) X(cusolverDnDestroy) X(cusolverDnSetStream)                                       \
  X(cusolverDnCreateParams) X(cusolverDnDestroyParams)                                                  \
  X(cusolverDnXgetrf_bufferSize) X(cusolverDnXgetrf) X(cusolverDnXgetrs)                                \
  X(cusolverDnXpotrf_bufferSize) X(cusolverDnXpotrf)                                                    \
  X(cusolverDnXgeqrf_bufferSize) X(cusolverDnXgeqrf)                                                    \
  X(cusolverDnSorgqr_bufferSize) X(cusolverDnSorgqr)                                                    \
  X(cusolverDnDorgqr_bufferSize) X(cusolverDnDorgqr)                                                    \
  X(cusolverDnCungqr_bufferSize) X(cusolverDnCungqr)                                                    \
  X(cusolverDnZungqr_bufferSize) X(cusolverDnZungqr)                                                    \
  X(cusolverDnXsyevd_bufferSize) X(cusolverDnXsyevd)                                                    \
  X(cusolverDnXgesvd_bufferSize) X(cusolverDnXgesvd)
#define REEL_CUSOLVER_GEEV 11701  // the version that introduced geev: null in older libraries
#if CUSOLVER_VERSION >= REEL_CUSOLVER_GEEV
#define REEL_CUSOLVER_LATE(X) X(cusolverDnXgeev_bufferSize) X(cusolverDnXgeev)
#else
#define REEL_CUSOLVER_LATE(X)
#endif
#define REEL_CUFFT(X)                                                                                   \
  X(cufftCreate) X(cufftDestroy) X(cufftMakePlanMany64) X(cufftSetStream) X(cufftExecC2C)               \
  X(cufftExecZ2Z) X(cufftExecR2C) X(cufftExecD2Z) X(cufftExecC2R) X(cufftExecZ2D)
#define REEL_NVRTC(X)                                                                                   \
  X(nvrtcVersion) X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs) X(nvrtcCreateProgram)          \
  X(nvrtcCompileProgram) X(nvrtcDestroyProgram) X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog)         \
  X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX)
#define REEL_DRIVER(X) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuGetErrorName)         \
  X(cuLaunchCooperativeKernel) X(cuFuncSetAttribute) X(cuFuncGetAttribute)
// clang-format on

#define REEL_POINTER(f) decltype(&::f) f = nullptr;
struct Cublas {
  REEL_CUBLAS(REEL_POINTER)
  cublasHandle_t handle = nullptr;
};
struct Cusolver {
  REEL_CUSOLVER(REEL_POINTER)
  REEL_CUSOLVER_LATE(REEL_POINTER)
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;
};
struct Cufft {
  REEL_CUFFT(REEL_POINTER)
};
struct Nvrtc {
  REEL_NVRTC(REEL_POINTER)
};
struct Driver {
  REEL_DRIVER(REEL_POINTER)
};
#undef REEL_POINTER

/// The CUDA data type of a differentiable dtype.
cudaDataType_t data_type(DType dtype);

/// Throw Error unless `code` is success, OutOfMemory if that may be why it is not; `what` is the call.
void check(cublasStatus_t code, const char* what);
void check(cusolverStatus_t code, const char* what);
void check(cufftResult code, const char* what);
void check(nvrtcResult code, const char* what);

class Libraries {
 public:
  Libraries(cudaStream_t stream, Precision precision) : stream_(stream), precision_(precision) {}
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  // Each throws Error that says what is missing if the library cannot be loaded.
  /// `room` gives memory of the device.
  const Cublas& blas(const std::function<StoragePtr(std::size_t bytes)>& room);
  bool has_blas() const { return blas_.handle; }
  const Cusolver& solver();
  const Cufft& fft();
  Precision precision() const { return precision_; }

 private:
  cudaStream_t stream_;
  Precision precision_;
  Cublas blas_;
  StoragePtr workspace_;  // cuBLAS's
  Cusolver solver_;
  Cufft fft_;
};

/// Fill the tables, which needs no GPU; throw Error that names what is missing.
void open_library(Cublas& table);
void open_library(Cusolver& table);
void open_library(Cufft& table);
void open_library(Nvrtc& table);
void open_library(Driver& table);

}  // namespace reel::cuda
