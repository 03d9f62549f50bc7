// One kernel for a run of elementwise calls: its text, and what it is launched with. Values are in registers; memory is
// read for arguments and written for results that others look at. Plain functions, tested without a GPU.
#pragma once
#include "backends/cuda/kernel_source.h"
#include "backends/cuda/run_text.h"

namespace reel::cuda {

/// How the elements are shared out, which depends on sizes and addresses.
struct FusedLayout {
  std::int64_t rows, columns;  // a run without rows to tell apart is one long row
  int per;                     // neighbours that a thread takes at once
  bool wide;                   // more elements than 32 bits count
  std::int64_t packs() const { return rows * columns / per; }
};
FusedLayout lay_out(const FusedArgs& args);

/// Everything that the text depends on, as bytes: equal keys, equal text.
std::string fused_key(const FusedArgs& args, const FusedLayout& layout);
/// The kernel's text; `name` is that of the function.
KernelSource fused_source(const FusedArgs& args, const FusedLayout& layout, const std::string& name = "run");
/// The kernel's one argument: rows and columns, addresses, then the numbers that functors take.
std::vector<std::uint64_t> fused_arguments(const FusedArgs& args, const FusedLayout& layout);

}  // namespace reel::cuda
