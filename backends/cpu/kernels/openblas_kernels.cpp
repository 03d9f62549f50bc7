#include "backends/cpu/kernels/openblas_kernels.h"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

// OpenBLAS calls these two when it is loaded and unloaded. They are exported, but in no header, and a build for one
// processor has none.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace reel::cpu {

namespace {
constexpr const char* variable = "OPENBLAS_CORETYPE";
}

VectorInstructions vector_instructions() {
#ifdef __x86_64__
  return {.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"),
          .avx512_bf16 = __builtin_cpu_supports("avx512bf16") != 0};
#else
  return {};
#endif
}

std::string better_kernels(std::string_view in_use, const VectorInstructions& here) {
  // Those without AVX2 and FMA; names that come later are not among them.
  constexpr std::array<std::string_view, 19> old{"katmai", "coppermine",  "northwood",    "prescott",   "banias",
                                                 "atom",   "core2",       "penryn",       "dunnington", "nehalem",
                                                 "athlon", "opteron",     "opteron_sse3", "barcelona",  "bobcat",
                                                 "nano",   "sandybridge", "bulldozer",    "piledriver"};
  std::string name(in_use);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!here.avx2 || std::find(old.begin(), old.end(), name) == old.end()) return "";
  return !here.avx512 ? "Haswell" : here.avx512_bf16 ? "Cooperlake" : "SkylakeX";
}

bool use_kernels(const std::string& name) {
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit) return false;
  const char* before = std::getenv(variable);
  const std::string kept = before ? before : "";
  setenv(variable, name.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  before ? setenv(variable, kept.c_str(), 1) : unsetenv(variable);
  return true;
}

void replace_fallback_kernels() {
  [[maybe_unused]] static const bool done = [] {
    const std::string better = better_kernels(openblas_get_corename(), vector_instructions());
    return !better.empty() && !std::getenv(variable) && use_kernels(better);
  }();
}

}  // namespace reel::cpu
