// One kernel for a run of elementwise calls: its text, and what it is launched with. Values are in registers; memory is
// read for arguments and written for results that others look at. Plain functions, tested without a GPU.
#pragma once
#include <cstring>
#include <vector>

#include "backends/cuda/kernel_source.h"
#include "engine/kernels.h"

namespace reel::cuda {

/// How the elements are shared out, which depends on sizes and addresses.
struct FusedLayout {
  std::int64_t rows, columns;  // a run without rows to tell apart is one long row
  int per;                     // neighbours that a thread takes at once
  bool wide;                   // more elements than 32 bits count
  int lanes = 1;               // columns of a row that a thread of a loop has, as many apart as the block has threads
  std::int64_t packs() const { return rows * columns / per; }
};
FusedLayout lay_out(const FusedArgs& args);

/// Everything that the text depends on, as bytes: equal keys, equal text.
std::string fused_key(const FusedArgs& args, const FusedLayout& layout);
/// The kernel's text; `name` is that of the function. With `loop`, whose run it is, a kernel of all steps, which has a
/// block for each row, or where nothing is rolled a thread for each element.
KernelSource fused_source(const FusedArgs& args, const FusedLayout& layout, const std::string& name = "run",
                          const FusedLoopArgs* loop = nullptr);
/// The kernel's one argument: rows and columns, addresses, then the numbers that functors take (a loop's:
/// loop_kernel.h).
std::vector<std::uint64_t> fused_arguments(const FusedArgs& args, const FusedLayout& layout);
void put_numbers(const FusedArgs& args, std::vector<std::uint64_t>& out);
/// Does a call move elements along their row?
bool has_rolls(const FusedArgs& args);

/// The dtype of a call's result.
DType result_of_call(const FusedCall& call);

}  // namespace reel::cuda
