// Kernels generated at run time, ready to launch: each source is compiled and loaded once.
#pragma once
#include <functional>
#include <unordered_map>

#include "backends/cuda/codegen/kernel_compiler.h"

namespace reel::cuda {

/// The most bytes of a kernel's argument: what every driver takes. Some take 32,764, but a launch copies them all.
constexpr std::size_t most_argument_bytes = 4096;

/// What a kernel takes of a multiprocessor, per thread.
struct KernelResources {
  int registers = 0;
  int spilled = 0;  // bytes in local memory: registers that were not enough, and arrays that are indexed
};

class GeneratedKernels {
 public:
  /// `capability`: the current GPU's compute capability.
  explicit GeneratedKernels(int capability) : compiler_(capability) {}

  /// Can kernels be generated here?
  bool available() { return compiler_.available(); }
  /// The kernel for this key; `source` is called only for a new key. Throws Error if compilation fails,
  /// OutOfMemory if the GPU has no room for it.
  CUfunction get(const std::string& key, const std::function<KernelSource()>& source);
  KernelResources resources(CUfunction kernel) const;
  /// Launches a kernel with one argument.
  void launch(CUfunction kernel, unsigned blocks, unsigned threads, const void* argument, cudaStream_t stream);
  /// The same with `shared` bytes of shared memory; `together` makes it a cooperative launch, for kernels with barriers
  /// between blocks.
  void launch(CUfunction kernel, unsigned blocks, unsigned threads, std::int64_t shared, bool together,
              const void* argument, cudaStream_t stream);

 private:
  void check(CUresult code, const char* what) const;

  KernelCompiler compiler_;
  Driver driver_;
  std::unordered_map<std::string, CUfunction> kernels_;  // never unloaded
};

}  // namespace reel::cuda
