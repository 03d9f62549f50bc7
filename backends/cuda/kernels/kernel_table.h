// Which kernels of the CUDA backend run on the GPU, and which fall back to the CPU (backends/shared/cpu_fallback.h).
// The tests check the list against engine/device/kernel_calls.h; the documentation is generated from it.
#pragma once
#include <string_view>

namespace reel::cuda {

enum class How {
  native,        // on the GPU
  checked,       // on the GPU, synchronously; a failure reruns it on the CPU, which reports why
  noted,         // likewise, but during a capture failures are recorded and reported by the next read
  cpu_fallback,  // copied to the host, run by the CPU backend, and copied back; captured as a host node
};

struct KernelRow {
  std::string_view name;
  How how;
};

inline constexpr KernelRow kernel_table[] = {
    {"fill", How::native},
    {"copy", How::native},
    {"cast", How::native},
    {"map", How::native},
    {"zip", How::native},
    {"select", How::native},
    {"fused", How::native},
    {"reduce", How::native},
    {"argmax", How::native},
    {"argcummax", How::native},
    {"argsort", How::native},
    {"recurrence", How::native},
    {"row_function", How::native},
    {"gemm", How::native},
    {"gather_rows", How::native},
    {"segment_sum", How::native},
    {"sum_rows", How::native},
    {"take_along", How::native},
    {"scatter_add", How::native},
    {"rotate", How::native},
    {"random", How::native},
    {"cross_entropy", How::native},
    {"update", How::native},
    {"clip", How::native},
    {"sums_of_squares", How::native},
    {"fft", How::native},
    {"real_fft", How::native},
    {"eig", How::checked},
    {"eigh", How::checked},
    {"svd", How::checked},
    {"schur", How::cpu_fallback},
    {"spectral_radius", How::cpu_fallback},
    {"solve", How::noted},
    {"triangular_solve", How::noted},
    {"sylvester", How::cpu_fallback},
    {"lu", How::checked},
    {"cholesky", How::checked},
    {"qr", How::checked},
    {"determinant", How::checked},
    {"pinv", How::checked},
    {"polar_factor", How::checked},
};

}  // namespace reel::cuda
