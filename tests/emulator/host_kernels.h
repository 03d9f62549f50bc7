// Generated kernels compiled for the host, where what a GPU has is loops and coroutines.
#pragma once
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <fstream>

#include "engine/core/error.h"
#include "tasks/io/files.h"
#include "tests/support/temp_dir.h"

namespace reel::test {

class HostKernels {
 public:
  /// Are g++ and the headers here? A bundle has neither; then it says that the test is skipped.
  static bool available() {
    bool all = std::system("g++ --version >/dev/null 2>&1") == 0;
    all = all && std::filesystem::exists(REEL_SOURCE_DIR "/ops/functors/unary.h");
    if (!all) MESSAGE("skipped: no g++ or no headers here");
    return all;
  }
  /// What kernel i must be called in its text.
  static std::string name(std::size_t i) { return fmt::format("kernel{}", i); }

  explicit HostKernels(const std::vector<std::string>& texts) {
    std::ofstream file(folder_ / "kernels.cpp");
    file << "#include \"" REEL_SOURCE_DIR "/tests/emulator/simt_emulator.h\"\n";
    for (const std::string& text : texts) file << text;
    for (std::size_t i = 0; i < texts.size(); ++i) file << fmt::format("CALL({})\n", name(i));
    file.close();
    const std::string command =
        fmt::format("g++ -std=c++20 -O1 -ffp-contract=off -w -shared -fPIC -I{0} -o {1} {2} -lboost_context 2>{3}",
                    REEL_SOURCE_DIR, folder_ / "kernels.so", folder_ / "kernels.cpp", folder_ / "errors");
    REQUIRE_MESSAGE(std::system(command.c_str()) == 0, read_file(folder_ / "errors").substr(0, 3000));
    library_ = dlopen((folder_ / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open
    REQUIRE_MESSAGE(library_, dlerror());
  }
  /// Launches kernel i; `together`: all blocks run at the same time and can wait for each other. Throws when its
  /// threads wait for ever.
  void call(std::size_t i, const void* argument, std::int64_t blocks, std::int64_t threads,
            bool together = false) const {
    using Call = bool (*)(const void*, unsigned, unsigned, bool);
    const auto f = reinterpret_cast<Call>(dlsym(library_, ("call_" + name(i)).c_str()));
    if (!f(argument, static_cast<unsigned>(blocks), static_cast<unsigned>(threads), together))
      throw std::logic_error(fmt::format("kernel {} of {} blocks, {} threads{}: its threads wait for ever", i, blocks,
                                         threads, together ? ", together" : ""));
  }

 private:
  TempDir folder_;
  void* library_ = nullptr;
};

}  // namespace reel::test
