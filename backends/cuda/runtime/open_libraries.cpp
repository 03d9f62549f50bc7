// Loads the toolkit's libraries with dlopen; tests link substitutes instead.
#include <dlfcn.h>

#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/runtime/nccl.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

/// Opens a toolkit library by name and major version: on the loader's path, else in the toolkit's folder at build time,
/// else in NVIDIA's default folder. It is never closed.
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
  if (!symbol) throw Error("cuda", fmt::format("{} was not found in its library", name));
  function = reinterpret_cast<F>(symbol);
}

}  // namespace

#define REEL_BIND(f) bind(library, #f, table.f);
void open_library(Cublas& table) {
  void* const library = open("cublas", CUBLAS_VER_MAJOR);
  REEL_CUBLAS(REEL_BIND)
}
void open_library(Cusolver& table) {
  void* const library = open("cusolver", CUSOLVER_VER_MAJOR);
  REEL_CUSOLVER(REEL_BIND)
#define REEL_BIND_LATE(f) table.f = reinterpret_cast<decltype(table.f)>(dlsym(library, #f));
  REEL_CUSOLVER_LATE(REEL_BIND_LATE)
#undef REEL_BIND_LATE
}
void open_library(Cufft& table) {
  void* const library = open("cufft", CUFFT_VER_MAJOR);
  REEL_CUFFT(REEL_BIND)
}
void open_library(Nvrtc& table) {
  void* const library = open("nvrtc", CUDA_VERSION / 1000);
  REEL_NVRTC(REEL_BIND)
  // NVRTC loads its builtins by name from beside itself, where the loader may not search. Opening them first makes them
  // found.
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
// It comes apart from the toolkit, and has a version of its own.
void open_library(Nccl& table) {
  void* library = nullptr;
  for (const char* folder : {"", REEL_CUDA_LIBRARY_DIR "/", "/usr/local/cuda/lib64/"})
    if (!library) library = dlopen(fmt::format("{}libnccl.so.2", folder).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    throw Error("nccl", fmt::format("libnccl.so.2 was not opened: {}. Hint: install libnccl2 of NVIDIA's packages, or "
                                    "put its folder on LD_LIBRARY_PATH",
                                    why ? why : "not found"));
  }
  REEL_NCCL(REEL_BIND)
}
#undef REEL_BIND

}  // namespace reel::cuda
