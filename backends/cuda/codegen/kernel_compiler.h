// Run-time compilation: NVRTC compiles a kernel's source for one architecture, or, for a GPU that is newer than NVRTC,
// to PTX of the newest one that it knows, which the driver compiles. The result is kept in the user's cache folder, so
// that each kernel is compiled once for all runs of all programs.
#pragma once
#include <string>
#include <vector>

#include "backends/cuda/codegen/kernel_source.h"
#include "backends/cuda/runtime/libraries.h"

namespace reel::cuda {

class KernelCompiler {
 public:
  /// For GPUs of this compute capability, e.g. 90 for Hopper. Libraries are opened on first use.
  explicit KernelCompiler(int capability, std::string folder = KernelFiles::usual_folder())
      : capability_(capability), files_(std::move(folder)) {}

  /// Is NVRTC available, and does it know the architecture, or an older one? If not, the first call warns, and says
  /// why.
  bool available();
  /// The kernel's machine code, or PTX. Throws Error with the compiler's log if the source is invalid.
  std::string compile(const KernelSource& source);
  /// What the compiler said of the last kernel that it compiled: registers, spills.
  const std::string& log() const { return log_; }
  int compiled() const { return compiled_; }  // number of kernels compiled, not read from the cache

 private:
  void look();
  std::vector<std::string> options() const;
  std::string compile_anew(const KernelSource& source);

  int capability_;
  KernelFiles files_;
  Nvrtc nvrtc_;
  bool looked_ = false, ptx_ = false;
  std::string log_, version_, architecture_;  // "sm_90", or "compute_90" for PTX
  int compiled_ = 0;
};

}  // namespace reel::cuda
