// Which open files count.
#pragma once
#include "tests/faults/preload.h"

namespace reel::faults {

/// Notes a call on an open file, if that lies below the root.
Action called_on(Kind kind, int file);

}  // namespace reel::faults
