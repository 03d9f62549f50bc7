// The source of one kernel for a fusion group of elementwise calls, and its launch arguments. Values stay in registers;
// memory is read for arguments and written only for results that are used outside the group. Plain functions, tested
// without a GPU.
#pragma once
#include "backends/cuda/codegen/kernel_source.h"
#include "backends/shared/run_text.h"

namespace reel::cuda {

/// How the elements are divided among threads, which depends on sizes and addresses.
struct FusedLayout {
  std::int64_t rows, columns;  // a group without a row structure is one long row
  int per;                     // contiguous elements that a thread handles at once
  bool wide;                   // more elements than 32 bits can index
  std::int64_t packs() const { return rows * columns / per; }
};
FusedLayout lay_out(const FusedArgs& args);

/// A key of everything the source depends on: equal keys, equal source.
std::string fused_key(const FusedArgs& args, const FusedLayout& layout);
/// The kernel's source; `name` is its function's name.
KernelSource fused_source(const FusedArgs& args, const FusedLayout& layout, const std::string& name = "fused");
/// The kernel's one argument: rows and columns, addresses, then the functors' parameters.
std::vector<std::uint64_t> fused_arguments(const FusedArgs& args, const FusedLayout& layout);

/// A group as two, the first of `calls` calls. The values in `passed` have memory now, which is still to be found: the
/// first stores them, the second reads them.
struct FusedParts {
  FusedArgs first, second;
  std::vector<std::size_t> passed;  // operands
};
FusedParts split(const FusedArgs& args, std::size_t calls);

}  // namespace reel::cuda
