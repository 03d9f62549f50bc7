// Generated kernels compiled for the host, where what a GPU has is loops and threads.
#pragma once
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <fstream>

#include "engine/error.h"
#include "tasks/harness/files.h"
#include "tests/temp_dir.h"

namespace reel::test {

class HostKernels {
 public:
  /// Are g++ and the headers here? A bundle has neither.
  static bool available() {
    for (const char* file : {REEL_SOURCE_DIR "/ops/functors/unary.h", REEL_CUDA_INCLUDE_DIR "/cuda.h"}) {
      if (!std::filesystem::exists(file)) return false;
    }
    return std::system("g++ --version >/dev/null 2>&1") == 0;
  }
  /// What kernel i must be called in its text.
  static std::string name(std::size_t i) { return fmt::format("kernel{}", i); }

  explicit HostKernels(const std::vector<std::string>& texts) {
    std::ofstream file(folder_ / "kernels.cpp");
    file << start;
    for (const std::string& text : texts) file << text;
    for (std::size_t i = 0; i < texts.size(); ++i) file << fmt::format("CALL({})\n", name(i));
    file.close();
    const std::string command = fmt::format(
        "g++ -std=c++20 -O1 -w -shared -fPIC -pthread -I{0} -isystem {1}/cccl -isystem {1} -o {2} {3} 2>{4}",
        REEL_SOURCE_DIR, REEL_CUDA_INCLUDE_DIR, folder_ / "kernels.so", folder_ / "kernels.cpp", folder_ / "errors");
    REQUIRE_MESSAGE(std::system(command.c_str()) == 0, read_file(folder_ / "errors").substr(0, 3000));
    library_ = dlopen((folder_ / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open
    REQUIRE_MESSAGE(library_, dlerror());
  }
  /// Launches kernel i. `together`: the threads of a block run at the same time, so that they can wait for each other.
  void call(std::size_t i, const std::vector<std::uint64_t>& argument, unsigned blocks, unsigned threads,
            bool together) const {
    using Call = void (*)(const void*, unsigned, unsigned, bool);
    reinterpret_cast<Call>(dlsym(library_, ("call_" + name(i)).c_str()))(argument.data(), blocks, threads, together);
  }

 private:
  static constexpr const char* start = R"(
#include <barrier>
#include <thread>
#include <vector>
#define REEL_WITH_COMPLEX
#define __global__
#define __launch_bounds__(n)
struct Place { unsigned x; };
static thread_local Place blockIdx, threadIdx;
static Place blockDim, gridDim;
static std::barrier<>* gate;
static void __syncthreads() { gate->arrive_and_wait(); }
template <class F> static void launch(F f, unsigned blocks, unsigned threads, bool together) {
  gridDim.x = blocks, blockDim.x = threads;
  for (unsigned b = 0; b < blocks; ++b) {
    std::barrier<> all(threads);
    gate = &all;
    std::vector<std::jthread> running;
    for (unsigned t = 0; t < threads; ++t) {
      const auto one = [=] { blockIdx.x = b, threadIdx.x = t, f(); };
      together ? (void)running.emplace_back(one) : one();
    }
  }
}
#define CALL(name) extern "C" void call_##name(const void* a, unsigned blocks, unsigned threads, bool together) { \
  launch([=] { name(*static_cast<const name##_Arguments*>(a)); }, blocks, threads, together); }
)";
  TempDir folder_;
  void* library_ = nullptr;
};

}  // namespace reel::test
