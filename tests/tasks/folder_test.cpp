// What is in a folder, also when there is no memory to tell.
#include "tasks/io/folder.h"

#include <cstdlib>
#include <fstream>
#include <new>

#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {
long left = -1;  // allocations before memory is out; negative: there is enough
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const p = left == 0 ? nullptr : std::malloc(bytes);
  left -= left > 0;
  return p ? p : throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

TEST_CASE("what is in a folder, by name; nothing if there is none; an error if it cannot be read") {
  const TempDir dir;
  for (const char* name : {"/b", "/.a", "/c d"}) std::ofstream(dir.path + name);
  using Paths = std::vector<std::filesystem::path>;
  CHECK(entries_of(dir.path) == Paths{dir / ".a", dir / "b", dir / "c d"});
  CHECK(entries_of(dir / "nowhere").empty());
  CHECK(error_of([&] { entries_of(dir / "b"); }) == "[" + dir.path + "/b] cannot be read: Not a directory");
}

TEST_CASE("a folder is read with too little memory: bad_alloc, whichever allocation fails") {
  const TempDir dir;
  for (int i = 0; i < 20; ++i) std::ofstream(fmt::format("{}/a rather long name, which needs memory, {}", dir.path, i));
  const std::filesystem::path folder = dir.path;
  int failed = 0;
  for (bool done = false; !done; ++failed) {
    REQUIRE(failed < 1000);
    left = failed;
    try {
      done = entries_of(folder).size() == 20;
    } catch (const std::bad_alloc&) {
    }
    left = -1;
  }
  CHECK(failed > 20);
}
