#ifdef REEL_ONEDNN
#include "backends/cpu/kernels/onednn.h"

#include <dlfcn.h>

#include "engine/core/error.h"

namespace reel::cpu::onednn {

namespace {

Functions opened() {
  Functions f;
  constexpr const char* name = "libdnnl.so.2";
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    f.missing = fmt::format("it cannot be opened ({}). Hint: install libdnnl2, or take \"cpu\"", dlerror());
    return f;
  }
  bool complete = true;
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    complete &= function != nullptr;
  };
#define REEL_FIND(f_) find(f.f_, #f_);
  REEL_ONEDNN_FUNCTIONS(REEL_FIND)
  REEL_FIND(omp_get_max_threads)
  REEL_FIND(omp_set_num_threads)
#undef REEL_FIND
  if (!complete) {
    f.missing = fmt::format("this {} is not like Debian's, which uses OpenMP. Hint: take \"cpu\"", name);
    return f;
  }
  const auto has =
      static_cast<unsigned>(f.dnnl_get_effective_cpu_isa());  // each processor has the bits of those before
  if ((has & dnnl_cpu_isa_avx512_core_bf16) != dnnl_cpu_isa_avx512_core_bf16)
    f.missing =
        "this processor has neither AVX512-BF16 nor AMX, or DNNL_MAX_CPU_ISA rules them out. Hint: \"cpu\" multiplies "
        "in f32";
  return f;
}

}  // namespace

const Functions& functions() {
  static const Functions& table = *new Functions(opened());
  return table;
}

void check(dnnl_status_t status) {
  if (status == dnnl_out_of_memory) throw OutOfMemory("cpu", "oneDNN had no memory for a product of bf16");
  if (status != dnnl_success)
    throw Error("cpu", fmt::format("oneDNN failed in a product of bf16, with status {}", static_cast<int>(status)));
}

dnnl_engine_t engine() {
  static const dnnl_engine_t cpu = [] {
    dnnl_engine_t made = nullptr;
    check(functions().dnnl_engine_create(&made, dnnl_cpu, 0));
    return made;
  }();
  return cpu;
}

}  // namespace reel::cpu::onednn
#endif
