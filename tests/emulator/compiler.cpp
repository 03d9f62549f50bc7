// NVRTC and the driver of the GPU in software: kernels are compiled by g++ into libraries, which are loaded.
#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include "backends/cuda/codegen/generated_kernels.h"
#include "backends/cuda/runtime/libraries.h"
#include "engine/core/error.h"
#include "tasks/io/files.h"
#include "tests/emulator/device.h"
#include "tests/support/temp_dir.h"

using cuda_emulator::misused;

struct _nvrtcProgram {
  std::string name, text, code, log;
};
struct CUmod_st {
  void* library;
};
struct CUfunc_st {
  bool (*call)(const void* argument, unsigned blocks, unsigned threads, bool together);
  std::size_t bytes;  // of the argument
  unsigned shared;    // memory, at most
};

namespace {

nvrtcResult compile(nvrtcProgram program) {
  const reel::test::TempDir folder;
  const std::string source = folder / "kernel.cpp", code = folder / "kernel.so", log = folder / "log";
  std::ofstream(source) << "#include \"prelude.h\"\n"
                        << program->text
                        << fmt::format("CALL({0})\nextern \"C\" const unsigned {0}_bytes = sizeof({0}_Arguments);\n",
                                       program->name);
  const std::string command =
      fmt::format(REEL_EMULATOR_COMPILER " -shared -o {} {} -lboost_context 2>{}", code, source, log);
  const bool good = std::system(command.c_str()) == 0;
  program->log = reel::read_file(log);
  if (good) program->code = reel::read_file(code);
  return good ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

/// A library from the memory it lies in, whose table of sections is its end. The loader knows libraries by their names.
void* load(const void* code) {
  const auto* const header = static_cast<const Elf64_Ehdr*>(code);
  const auto bytes =
      static_cast<std::streamsize>(header->e_shoff) + std::streamsize{header->e_shnum} * header->e_shentsize;
  const reel::test::TempDir folder;
  const std::string path = folder / "kernel.so";
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(code), bytes);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

CUresult launch(CUfunction f, unsigned blocks, unsigned threads, unsigned shared, cudaStream_t stream, void** arguments,
                bool together) {
  if (blocks == 0 || threads == 0 || threads > cuda_emulator::most_threads || shared > f->shared ||
      f->bytes > reel::cuda::most_argument_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (together && blocks > static_cast<unsigned>(cuda_emulator::processors()))
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  cuda_emulator::check_current(stream);
  const auto* const first = static_cast<const std::byte*>(arguments[0]);
  cuda_emulator::submit(stream, [=, argument = std::vector<std::byte>(first, first + f->bytes)] {
    if (!f->call(argument.data(), blocks, threads, together)) misused("kernel", "its threads wait for ever");
  });
  return CUDA_SUCCESS;
}

}  // namespace

namespace reel::cuda {

void open_library(Nvrtc& table) {
  table.nvrtcVersion = [](int* major, int* minor) {
    // What is cached is nobody else's, and of these threads.
    *major = 0, *minor = static_cast<int>(std::hash<std::string>{}(reel::read_file(REEL_EMULATOR_THREADS)) % 1000000);
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetNumSupportedArchs = [](int* count) {
    *count = 1;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetSupportedArchs = [](int* capabilities) {
    *capabilities = 90;
    return NVRTC_SUCCESS;
  };
  table.nvrtcCreateProgram = [](nvrtcProgram* program, const char* text, const char* name, int, const char* const*,
                                const char* const*) {
    *program = new _nvrtcProgram{name, text, {}, {}};
    return NVRTC_SUCCESS;
  };
  table.nvrtcCompileProgram = [](nvrtcProgram program, int, const char* const*) { return compile(program); };
  table.nvrtcDestroyProgram = [](nvrtcProgram* program) {
    delete *program;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetProgramLogSize = [](nvrtcProgram program, std::size_t* bytes) {
    *bytes = program->log.size() + 1;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetProgramLog = [](nvrtcProgram program, char* log) {
    std::strcpy(log, program->log.c_str());
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetCUBINSize = [](nvrtcProgram program, std::size_t* bytes) {
    *bytes = program->code.size();
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetCUBIN = [](nvrtcProgram program, char* code) {
    program->code.copy(code, program->code.size());
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetPTXSize = table.nvrtcGetCUBINSize;
  table.nvrtcGetPTX = table.nvrtcGetCUBIN;
}

void open_library(Driver& table) {
  table.cuModuleLoadData = [](CUmodule* module, const void* code) {
    void* const library = load(code);
    if (!library) return CUDA_ERROR_INVALID_IMAGE;
    *module = new CUmod_st{library};
    return CUDA_SUCCESS;
  };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    const auto symbol = [&](const std::string& s) { return dlsym(module->library, s.c_str()); };
    void* const call = symbol(fmt::format("call_{}", name));
    const void* const bytes = symbol(fmt::format("{}_bytes", name));
    if (!call || !bytes) return CUDA_ERROR_NOT_FOUND;
    *function = new CUfunc_st{reinterpret_cast<decltype(CUfunc_st::call)>(call), *static_cast<const unsigned*>(bytes),
                              cuda_emulator::usual_shared_bytes};
    return CUDA_SUCCESS;
  };
  table.cuGetErrorName = [](CUresult, const char** name) {
    *name = "an error of the GPU in software";
    return CUDA_SUCCESS;
  };
  table.cuFuncSetAttribute = [](CUfunction f, CUfunction_attribute what, int value) {
    if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > cuda_emulator::shared_bytes)
      return CUDA_ERROR_INVALID_VALUE;
    f->shared = static_cast<unsigned>(value);
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
    *value = 0;  // of registers and local memory, g++ knows nothing
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = [](CUfunction f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                            unsigned shared, CUstream stream, void** arguments,
                            void**) { return launch(f, blocks, threads, shared, stream, arguments, false); };
  table.cuLaunchCooperativeKernel = [](CUfunction f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                                       unsigned, unsigned shared, CUstream stream, void** arguments) {
    return launch(f, blocks, threads, shared, stream, arguments, true);
  };
}

}  // namespace reel::cuda
