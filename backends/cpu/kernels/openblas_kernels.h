// OpenBLAS chooses its kernels when it is loaded, by the model of the processor. On a model newer than itself it falls
// back to kernels for SSE3, which take five times as long: 0.3.21 does so on Emerald Rapids.
#pragma once
#include <string>
#include <string_view>

namespace reel::cpu {

/// Vector instructions of a processor, as far as the operating system lets programs use them.
struct VectorInstructions {
  bool avx2 = false, avx512 = false, avx512_bf16 = false;
};
VectorInstructions vector_instructions();

/// The kernels of OpenBLAS that suit these instructions if the ones in use leave most of them out; empty otherwise.
std::string better_kernels(std::string_view in_use, const VectorInstructions& here);

/// Makes OpenBLAS use the kernels of this name, as OPENBLAS_CORETYPE does when a program starts. Returns false if this
/// build of OpenBLAS has no choice. No product may be running.
bool use_kernels(const std::string& name);

/// Replaces the fallback kernels, once per process, unless OPENBLAS_CORETYPE names what the user wants.
void replace_fallback_kernels();

}  // namespace reel::cpu
