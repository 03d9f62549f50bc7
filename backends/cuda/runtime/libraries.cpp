#include "backends/cuda/runtime/libraries.h"

#include <algorithm>
#include <initializer_list>

#include "backends/cuda/cuda.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

void require(const char* library, const char* what, int code, std::initializer_list<int> of_memory) {
  if (code == 0) return;
  const std::string text = fmt::format("{}: {} failed with code {}", what, library, code);
  if (std::find(of_memory.begin(), of_memory.end(), code) != of_memory.end())
    throw OutOfMemory("cuda", text + ", as it does when the GPU is out of memory. Hint: a smaller batch");
  throw Error("cuda", text);
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
  require("cuBLAS", what, code, {CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_INITIALIZED});
}
void check(cusolverStatus_t code, const char* what) {
  require("cuSOLVER", what, code, {CUSOLVER_STATUS_ALLOC_FAILED, CUSOLVER_STATUS_NOT_INITIALIZED});
}
void check(cufftResult code, const char* what) {
  require("cuFFT", what, code, {CUFFT_ALLOC_FAILED, CUFFT_INTERNAL_ERROR});
}

void check(nvrtcResult code, const char* what) { require("NVRTC", what, code, {}); }

void Cuda::retried(const std::function<void()>& f) {
  try {
    return f();
  } catch (const OutOfMemory&) {
    cudaGetLastError();  // the library's allocation may have left it to the next launch
    allocator_.release_cache();
  }
  f();
}

Libraries::~Libraries() {  // runs at program exit, so errors are ignored
  if (blas_.handle) blas_.cublasDestroy_v2(blas_.handle);
  if (solver_.params) solver_.cusolverDnDestroyParams(solver_.params);
  if (solver_.handle) solver_.cusolverDnDestroy(solver_.handle);
}

const Cublas& Libraries::blas(const std::function<StoragePtr(std::size_t)>& room) {
  if (!blas_.handle) {
    open_library(blas_);
    // A fixed workspace: cuBLAS would otherwise allocate one for each captured graph. NVIDIA recommends these sizes.
    int device = 0, major = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
    const std::size_t bytes = (major >= 9 ? 32 : 4) * (std::size_t{1} << 20);
    if (!workspace_) workspace_ = room(bytes);
    cublasHandle_t handle = nullptr;
    check(blas_.cublasCreate_v2(&handle), "cublasCreate");
    check(blas_.cublasSetStream_v2(handle, stream_), "cublasSetStream");
    check(blas_.cublasSetWorkspace_v2(handle, workspace_->data, bytes), "cublasSetWorkspace");
    blas_.handle = handle;
  }
  return blas_;
}

const Cusolver& Libraries::solver() {
  if (!solver_.params) {
    open_library(solver_);
    if (!solver_.handle) check(solver_.cusolverDnCreate(&solver_.handle), "cusolverDnCreate");
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
