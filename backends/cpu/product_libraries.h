// The libraries behind the CPU's products, and their kernels.
#pragma once
#include <string>

namespace reel::cpu {

/// The libraries that compute products, each with the kernels that it takes on this processor: "OpenBLAS 0.3.21
/// Cooperlake; libxsmm 1.17 cpx". Kernels of different names round differently.
std::string product_libraries();

}  // namespace reel::cpu
