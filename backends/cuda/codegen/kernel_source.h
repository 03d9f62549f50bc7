// Source of kernels generated at run time, and the headers they include.
#pragma once
#include <string>
#include <vector>

#include "backends/shared/kernel_files.h"

namespace reel::cuda {

struct KernelSource {
  std::string name;  // of the kernel, which profilers show
  std::string text;  // which defines it, as `extern "C"`
};

/// The project's headers that generated kernels include, embedded at build time.
const std::vector<KernelHeader>& own_headers();

}  // namespace reel::cuda
