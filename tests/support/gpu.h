// The GPU of tests that need one.
#pragma once
#include <fmt/core.h>

#include "engine/core/error.h"
#include "engine/device/backend.h"

namespace reel::test {

/// The device of this name; null, and a line that CTest takes for "skipped", where there is none.
inline Backend* gpu_or_skip(const char* name) {
  try {
    return &backend(name);
  } catch (const Error& e) {
    fmt::print("skipped: {}\n", e.what());
    return nullptr;
  }
}

}  // namespace reel::test
