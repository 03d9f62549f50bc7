// The compiler of fusion groups is a process: what becomes of it, and of its files, when a program ends meanwhile.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "backends/cpu/codegen/group_compiler.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;
using cpu::GroupCompiler;
namespace fs = std::filesystem;

namespace {

/// Is there a process whose command line has these texts?
bool running(const std::string& option, const std::string& file_name) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string command{std::istreambuf_iterator<char>(file), {}};
    if (command.find(option) != std::string::npos && command.find(file_name) != std::string::npos) return true;
  }
  return false;
}

bool soon(auto&& condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

}  // namespace

TEST_CASE("stop() ends the compiler and all it has started, and leaves no files") {
  const TempDir folder;
  fs::create_directory(folder / "tmp");
  setenv("TMPDIR", (folder / "tmp").c_str(), 1);
  GroupCompiler compiler(folder / "cache");
  std::vector<cpu::GroupFunction> functions;
  std::thread thread([&] { functions = compiler.compile({"(void**) {}"}) /* its headers take seconds */; });
  const std::string name = folder / "tmp";
  CHECK(soon([&] { return running("-quiet", name) || running("-cc1", name); }));  // GCC's compiler proper, or Clang's
  compiler.stop();
  thread.join();
  unsetenv("TMPDIR");
  CHECK(functions.empty());
  CHECK(soon([&] { return !running("", name); }));
  CHECK(fs::is_empty(folder / "tmp"));
}
