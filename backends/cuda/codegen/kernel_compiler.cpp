#include "backends/cuda/codegen/kernel_compiler.h"

#include <algorithm>

#include "engine/core/error.h"

namespace reel::cuda {

bool KernelCompiler::available() {
  if (!looked_) {
    looked_ = true;
    try {
      open_library(nvrtc_);
      int major = 0, minor = 0, count = 0;
      check(nvrtc_.nvrtcVersion(&major, &minor), "nvrtcVersion");
      version_ = fmt::format("{}.{}", major, minor);
      check(nvrtc_.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
      std::vector<int> known(static_cast<std::size_t>(count));
      check(nvrtc_.nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
      found_ = std::find(known.begin(), known.end(), capability_) != known.end();
    } catch (const Error&) {
      found_ = false;  // time loops then run call by call
    }
  }
  return found_;
}

std::string KernelCompiler::compile(const KernelSource& source) {
  if (!available()) throw Error("cuda", "a kernel was to be compiled, but there is no NVRTC here");
  std::string all = fmt::format("NVRTC {}, sm_{}\n", version_, capability_);
  for (const KernelHeader& h : own_headers()) all += h.text;
  const std::string name = fmt::format("{}-sm_{}.cubin", hash_text(all + source.text), capability_);
  std::string code = files_.read(name);
  if (!code.empty()) return code;
  code = compile_anew(source);
  files_.write(name, code);
  return code;
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
  const std::vector<std::string> options{fmt::format("--gpu-architecture=sm_{}", capability_), "--std=c++20",
                                         "--device-as-default-execution-space", "--ptxas-options=-v"};
  std::vector<const char*> words;
  for (const std::string& o : options) words.push_back(o.c_str());
  const nvrtcResult result = nvrtc_.nvrtcCompileProgram(program, static_cast<int>(words.size()), words.data());
  std::size_t bytes = 0;
  nvrtc_.nvrtcGetProgramLogSize(program, &bytes);
  log_.resize(bytes);
  nvrtc_.nvrtcGetProgramLog(program, log_.data());
  std::string code;
  if (result == NVRTC_SUCCESS) {
    check(nvrtc_.nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize");
    code.resize(bytes);
    check(nvrtc_.nvrtcGetCUBIN(program, code.data()), "nvrtcGetCUBIN");
  }
  nvrtc_.nvrtcDestroyProgram(&program);
  if (result != NVRTC_SUCCESS)
    throw Error("cuda", fmt::format("NVRTC does not take a kernel: {}", log_.substr(0, 2000)));
  ++compiled_;
  return code;
}

}  // namespace reel::cuda
