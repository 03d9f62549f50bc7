// Kernels made at run time, ready to be launched: each text is compiled and loaded once.
#pragma once
#include <functional>
#include <unordered_map>

#include "backends/cuda/kernel_compiler.h"

namespace reel::cuda {

class GeneratedKernels {
 public:
  /// For the current GPU, of this compute capability.
  explicit GeneratedKernels(int capability) : compiler_(capability) {}

  /// Can kernels be made here, of complex numbers too?
  bool available(bool for_complex) { return compiler_.available(for_complex); }
  /// The kernel of this key; `source` is asked for its text when the key is new. Throws Error when it cannot be made.
  CUfunction get(const std::string& key, const std::function<KernelSource()>& source);
  /// Launches it with one argument.
  void launch(CUfunction kernel, unsigned blocks, unsigned threads, const void* argument, cudaStream_t stream);
  /// The same with so much shared memory, and if they are to wait for each other with all blocks at the same time.
  void launch(CUfunction kernel, unsigned blocks, unsigned threads, std::int64_t shared, bool together,
              const void* argument, cudaStream_t stream);

 private:
  void check(CUresult code, const char* what) const;

  KernelCompiler compiler_;
  Driver driver_;
  std::unordered_map<std::string, CUfunction> kernels_;  // loaded until the program ends
};

}  // namespace reel::cuda
