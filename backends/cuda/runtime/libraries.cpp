#include "backends/cuda/runtime/libraries.h"

#include "backends/cuda/cuda.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

[[noreturn]] void failed(const char* library, const char* what, int code) {
  throw Error("cuda", fmt::format("{}: {} failed with code {}", what, library, code));
}

}  // namespace

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f64:
      return CUDA_R_64F;
    case DType::c64:
      return CUDA_C_32F;
    case DType::c128:
      return CUDA_C_64F;
    case DType::i32:
    case DType::boolean:
      break;
  }
  throw std::logic_error("reel: internal: the libraries take no integers");
}

void check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS) failed("cuBLAS", what, code);
}
void check(cusolverStatus_t code, const char* what) {
  if (code != CUSOLVER_STATUS_SUCCESS) failed("cuSOLVER", what, code);
}
void check(cufftResult code, const char* what) {
  if (code != CUFFT_SUCCESS) failed("cuFFT", what, code);
}

void check(nvrtcResult code, const char* what) {
  if (code != NVRTC_SUCCESS) failed("NVRTC", what, code);
}

Libraries::~Libraries() {  // runs at program exit, so errors are ignored
  if (blas_.handle) blas_.cublasDestroy_v2(blas_.handle);
  cudaFree(workspace_);
  if (solver_.params) solver_.cusolverDnDestroyParams(solver_.params);
  if (solver_.handle) solver_.cusolverDnDestroy(solver_.handle);
}

const Cublas& Libraries::blas() {
  if (!blas_.handle) {
    open_library(blas_);
    check(blas_.cublasCreate_v2(&blas_.handle), "cublasCreate");
    check(blas_.cublasSetStream_v2(blas_.handle, stream_), "cublasSetStream");
    // A fixed workspace: cuBLAS would otherwise allocate one for each captured graph. NVIDIA recommends these sizes.
    int device = 0, major = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
    const std::size_t bytes = (major >= 9 ? 32 : 4) * (std::size_t{1} << 20);
    check(cudaMalloc(&workspace_, bytes), "cudaMalloc");
    check(blas_.cublasSetWorkspace_v2(blas_.handle, workspace_, bytes), "cublasSetWorkspace");
  }
  return blas_;
}

const Cusolver& Libraries::solver() {
  if (!solver_.params) {
    open_library(solver_);
    check(solver_.cusolverDnCreate(&solver_.handle), "cusolverDnCreate");
    check(solver_.cusolverDnSetStream(solver_.handle, stream_), "cusolverDnSetStream");
    check(solver_.cusolverDnCreateParams(&solver_.params), "cusolverDnCreateParams");
  }
  return solver_;
}

const Cufft& Libraries::fft() {
  if (!fft_.cufftCreate) open_library(fft_);
  return fft_;
}

}  // namespace reel::cuda
