// All test programs' main(): doctest's, and --device NAME, on which tensors are made that nobody places. Exits with 77,
// which CTest shows as skipped, when there is no such device.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstring>

#include "engine/core/error.h"
#include "engine/device/backend.h"

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--device") != 0) continue;
    try {
      reel::set_default_backend(argv[i + 1]);
    } catch (const reel::Error& e) {
      fmt::print("skipped: {}\n", e.what());
      return skipped;
    }
  }
  return doctest::Context(argc, argv).run();
}
