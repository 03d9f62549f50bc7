// Kernels made at run time: NVRTC compiles their text for one architecture, and what it makes is kept in the user's
// cache folder, so that a kernel is compiled once for all runs of all programs.
#pragma once
#include <string>

#include "backends/cuda/kernel_source.h"
#include "backends/cuda/libraries.h"

namespace reel::cuda {

/// Machine code in files, by hash: $XDG_CACHE_HOME/reel/kernels, or below ~/.cache. What cannot be written is not kept;
/// a file that is not whole is none.
class KernelFiles {
 public:
  /// `folder`: empty for a cache that keeps nothing.
  explicit KernelFiles(std::string folder) : folder_(std::move(folder)) {}
  static std::string usual_folder();
  /// What is kept under this name, or nothing.
  std::string read(const std::string& name) const;
  /// Other programs see the whole file or none.
  void write(const std::string& name, const std::string& code) const;

 private:
  std::string folder_;
};

class KernelCompiler {
 public:
  /// For GPUs of this compute capability, 90 for Hopper. Nothing is opened yet.
  explicit KernelCompiler(int capability, std::string folder = KernelFiles::usual_folder())
      : capability_(capability), files_(std::move(folder)) {}

  /// Is NVRTC here, and does it know the architecture? For complex numbers also: are libcu++'s headers here?
  bool available(bool for_complex);
  /// The kernel's machine code. Throws Error with the compiler's words when the text is wrong.
  std::string compile(const KernelSource& source);
  int compiled() const { return compiled_; }  // how many were compiled, not read from a file

 private:
  std::string compile_anew(const KernelSource& source);

  int capability_;
  KernelFiles files_;
  Nvrtc nvrtc_;
  bool looked_ = false, found_ = false;
  std::string version_, includes_;  // where the toolkit's headers are
  int compiled_ = 0;
};

}  // namespace reel::cuda
