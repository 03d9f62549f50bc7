#include "backends/cuda/libraries.h"

#include <dlfcn.h>

#include "backends/cuda/cuda.h"
#include "engine/error.h"

namespace reel::cuda {

namespace {

/// A library of the toolkit by its name and major version: where the loader looks, else where the toolkit was when this
/// was built, or where NVIDIA puts it. It stays open.
void* open(const char* library, int major) {
  const std::string file = fmt::format("lib{}.so.{}", library, major);
  for (const char* folder : {"", REEL_CUDA_LIBRARY_DIR "/", "/usr/local/cuda/lib64/"}) {
    const std::string path = folder + file;
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  const char* why = dlerror();
  throw Error("cuda", fmt::format("{} of the CUDA Toolkit is needed and was not opened: {}. Hint: put its folder on "
                                  "LD_LIBRARY_PATH",
                                  file, why ? why : "not found"));
}

template <class F>
void bind(void* library, const char* name, F& function) {
  void* const symbol = dlsym(library, name);
  if (!symbol) throw Error("cuda", fmt::format("the CUDA Toolkit's {} was not found in its library", name));
  function = reinterpret_cast<F>(symbol);
}

#define REEL_BIND(f) bind(library, #f, table.f);
void fill(Cublas& table) {
  void* const library = open("cublas", CUBLAS_VER_MAJOR);
  REEL_CUBLAS(REEL_BIND)
}
void fill(Cusolver& table) {
  void* const library = open("cusolver", CUSOLVER_VER_MAJOR);
  REEL_CUSOLVER(REEL_BIND)
#define REEL_BIND_LATE(f) table.f = reinterpret_cast<decltype(table.f)>(dlsym(library, #f));
  REEL_CUSOLVER_LATE(REEL_BIND_LATE)
#undef REEL_BIND_LATE
}
void fill(Cufft& table) {
  void* const library = open("cufft", CUFFT_VER_MAJOR);
  REEL_CUFFT(REEL_BIND)
}
#undef REEL_BIND

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
    default:
      return CUDA_C_64F;
  }
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

#define REEL_BIND(f) bind(library, #f, table.f);
void open_library(Nvrtc& table) {
  void* const library = open("nvrtc", CUDA_VERSION / 1000);
  REEL_NVRTC(REEL_BIND)
  // It asks the loader for its builtins, which lie beside it, where the loader may not look. What is open is found.
  int major = 0, minor = 0;
  Dl_info place{};
  if (table.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return;
  if (!dladdr(reinterpret_cast<const void*>(table.nvrtcVersion), &place) || !place.dli_fname) return;
  const std::string path = place.dli_fname, folder = path.substr(0, path.rfind('/') + 1);
  dlopen(fmt::format("{}libnvrtc-builtins.so.{}.{}", folder, major, minor).c_str(), RTLD_NOW | RTLD_LOCAL);
}
void open_library(Driver& table) {
  void* const library = open("cuda", 1);
  REEL_DRIVER(REEL_BIND)
}
#undef REEL_BIND

void open_libraries(Cublas& blas, Cusolver& solver, Cufft& fft) {
  fill(blas);
  fill(solver);
  fill(fft);
}

Libraries::~Libraries() {  // at the end of a program, when nobody asks what comes of it
  if (blas_.handle) blas_.cublasDestroy_v2(blas_.handle);
  cudaFree(workspace_);
  if (solver_.params) solver_.cusolverDnDestroyParams(solver_.params);
  if (solver_.handle) solver_.cusolverDnDestroy(solver_.handle);
}

const Cublas& Libraries::blas() {
  if (!blas_.handle) {
    fill(blas_);
    check(blas_.cublasCreate_v2(&blas_.handle), "cublasCreate");
    check(blas_.cublasSetStream_v2(blas_.handle, stream_), "cublasSetStream");
    // Its own workspace would be another one in each captured graph. The sizes are those that NVIDIA recommends.
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
    fill(solver_);
    check(solver_.cusolverDnCreate(&solver_.handle), "cusolverDnCreate");
    check(solver_.cusolverDnSetStream(solver_.handle, stream_), "cusolverDnSetStream");
    check(solver_.cusolverDnCreateParams(&solver_.params), "cusolverDnCreateParams");
  }
  return solver_;
}

const Cufft& Libraries::fft() {
  if (!fft_.cufftCreate) fill(fft_);
  return fft_;
}

}  // namespace reel::cuda
