// Text of kernels that are made at run time, and what they include.
#pragma once
#include <string>
#include <vector>

namespace reel::cuda {

struct KernelSource {
  std::string text;          // a kernel `extern "C" void run(...)`
  bool has_complex = false;  // needs libcu++'s headers, which come with the toolkit
};

struct KernelHeader {
  const char* name;
  const char* text;
};
/// The project's headers that kernels include, as they were when this was built.
const std::vector<KernelHeader>& own_headers();

}  // namespace reel::cuda
