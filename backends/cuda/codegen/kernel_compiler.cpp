#include "backends/cuda/codegen/kernel_compiler.h"

#include <algorithm>

#include "engine/core/error.h"

namespace reel::cuda {

bool KernelCompiler::available() {
  if (!looked_) {
    looked_ = true;
    try {
      look();
    } catch (const Error& e) {
      warn("cuda",
           fmt::format("kernels cannot be compiled here, so time loops run step by step and elementwise calls one "
                       "by one, which is slower: {}",
                       e.what()));
    }
  }
  return !architecture_.empty();
}

void KernelCompiler::look() {
  open_library(nvrtc_);
  int major = 0, minor = 0, count = 0;
  check(nvrtc_.nvrtcVersion(&major, &minor), "nvrtcVersion");
  version_ = fmt::format("{}.{}", major, minor);
  check(nvrtc_.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtc_.nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
  std::sort(known.begin(), known.end());
  const auto above = std::upper_bound(known.begin(), known.end(), capability_);
  if (above == known.begin())
    throw Error("cuda", fmt::format("NVRTC {} does not know sm_{}. Hint: a version that does, on LD_LIBRARY_PATH",
                                    version_, capability_));
  const int nearest = *std::prev(above);
  ptx_ = nearest != capability_;
  architecture_ = fmt::format("{}_{}", ptx_ ? "compute" : "sm", nearest);
}

std::string KernelCompiler::compile(const KernelSource& source) {
  if (!available()) throw Error("cuda", "a kernel was to be compiled, but there is no NVRTC for it here");
  std::string all = fmt::format("NVRTC {}\n", version_);
  for (const std::string& o : options()) all += o + "\n";
  for (const KernelHeader& h : own_headers()) all += h.text;
  const std::string name = fmt::format("{}-{}.{}", hash_text(all + source.text), architecture_, ptx_ ? "ptx" : "cubin");
  std::string code = files_.read(name);
  if (!code.empty()) return code;
  code = compile_anew(source);
  files_.write(name, code);
  return code;
}

std::vector<std::string> KernelCompiler::options() const {
  return {"--gpu-architecture=" + architecture_, "--std=c++20", "--device-as-default-execution-space",
          "--ptxas-options=-v"};
}

std::string KernelCompiler::compile_anew(const KernelSource& source) {
  std::vector<const char*> names, texts;
  for (const KernelHeader& h : own_headers()) {
    names.push_back(h.name);
    texts.push_back(h.text);
  }
  for (const char* standard :
       {"algorithm", "cmath", "complex", "cstddef", "cstdint", "stdexcept", "string_view", "type_traits"}) {
    names.push_back(standard);
    texts.push_back("#include \"backends/cuda/codegen/device/prelude.h\"\n");
  }
  nvrtcProgram program = nullptr;
  check(nvrtc_.nvrtcCreateProgram(&program, source.text.c_str(), source.name.c_str(), static_cast<int>(names.size()),
                                  texts.data(), names.data()),
        "nvrtcCreateProgram");
  const std::vector<std::string> options = this->options();
  std::vector<const char*> words;
  for (const std::string& o : options) words.push_back(o.c_str());
  const nvrtcResult result = nvrtc_.nvrtcCompileProgram(program, static_cast<int>(words.size()), words.data());
  std::size_t bytes = 0;
  nvrtc_.nvrtcGetProgramLogSize(program, &bytes);
  log_.resize(bytes);
  nvrtc_.nvrtcGetProgramLog(program, log_.data());
  std::string code;
  if (result == NVRTC_SUCCESS) {
    check((ptx_ ? nvrtc_.nvrtcGetPTXSize : nvrtc_.nvrtcGetCUBINSize)(program, &bytes), "the size of a kernel");
    code.resize(bytes);
    check((ptx_ ? nvrtc_.nvrtcGetPTX : nvrtc_.nvrtcGetCUBIN)(program, code.data()), "a kernel");
  }
  nvrtc_.nvrtcDestroyProgram(&program);
  if (result != NVRTC_SUCCESS)
    throw Error("cuda", fmt::format("NVRTC does not take a kernel: {}", log_.substr(0, 2000)));
  ++compiled_;
  return code;
}

}  // namespace reel::cuda
