#include "backends/cuda/codegen/generated_kernels.h"

#include "engine/core/error.h"

namespace reel::cuda {

void GeneratedKernels::check(CUresult code, const char* what) const {
  if (code == CUDA_SUCCESS) return;
  const char* name = nullptr;
  driver_.cuGetErrorName(code, &name);
  const std::string text = fmt::format("{} of a generated kernel failed: {}", what, name ? name : "unknown error");
  if (code == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory("cuda", text + ". Hint: a smaller batch");
  throw Error("cuda", text);
}

CUfunction GeneratedKernels::get(const std::string& key, const std::function<KernelSource()>& source) {
  if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  if (!driver_.cuLaunchKernel) open_library(driver_);
  const KernelSource made = source();
  const std::string code = compiler_.compile(made);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(driver_.cuModuleLoadData(&module, code.data()), "cuModuleLoadData");
  check(driver_.cuModuleGetFunction(&function, module, made.name.c_str()), "cuModuleGetFunction");
  return kernels_[key] = function;
}

KernelResources GeneratedKernels::resources(CUfunction kernel) const {
  KernelResources out;
  check(driver_.cuFuncGetAttribute(&out.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel), "cuFuncGetAttribute");
  check(driver_.cuFuncGetAttribute(&out.spilled, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel), "cuFuncGetAttribute");
  return out;
}

void GeneratedKernels::launch(CUfunction kernel, unsigned blocks, unsigned threads, const void* argument,
                              cudaStream_t stream) {
  launch(kernel, blocks, threads, 0, false, argument, stream);
}

void GeneratedKernels::launch(CUfunction kernel, unsigned blocks, unsigned threads, std::int64_t shared, bool together,
                              const void* argument, cudaStream_t stream) {
  void* arguments[] = {const_cast<void*>(argument)};
  constexpr std::int64_t usual = 48 * 1024;  // the default limit; more needs an attribute
  const auto bytes = static_cast<unsigned>(shared);
  if (shared > usual)
    check(driver_.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
          "cuFuncSetAttribute");
  if (together)
    check(driver_.cuLaunchCooperativeKernel(kernel, blocks, 1, 1, threads, 1, 1, bytes, stream, arguments),
          "cuLaunchCooperativeKernel");
  else
    check(driver_.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, bytes, stream, arguments, nullptr),
          "cuLaunchKernel");
}

}  // namespace reel::cuda
