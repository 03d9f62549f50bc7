// Which kernels of the CUDA backend run on the GPU, and which go through the CPU (by_cpu.h). The tests hold the list
// against engine/backend.h; the documentation is made from what it says.
#pragma once
#include <string_view>

namespace reel::cuda {

enum class How {
  native,   // on the GPU
  checked,  // on the GPU, waited for; where it fails through the CPU, which finds out why
  noted,    // likewise, but while kernels are written down it is not waited for: the next reading tells
  by_cpu,   // down to the host, through the CPU backend, and up again
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
    {"cumsum", How::native},
    {"row_function", How::native},
    {"gemm", How::native},
    {"gather_rows", How::native},
    {"scatter_add_rows", How::native},
    {"take_along", How::native},
    {"put_along", How::native},
    {"rotate", How::native},
    {"random", How::native},
    {"update", How::native},
    {"clip", How::native},
    {"sums_of_squares", How::native},
    {"fft", How::native},
    {"real_fft", How::native},
    {"eig", How::checked},
    {"eigh", How::checked},
    {"svd", How::checked},
    {"schur", How::by_cpu},
    {"spectral_radius", How::by_cpu},
    {"solve", How::checked},
    {"triangular_solve", How::noted},
    {"sylvester", How::by_cpu},
    {"lu", How::checked},
    {"cholesky", How::checked},
    {"qr", How::checked},
    {"determinant", How::checked},
    {"pinv", How::checked},
    {"polar", How::checked},
};

}  // namespace reel::cuda
