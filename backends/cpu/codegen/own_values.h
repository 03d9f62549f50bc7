// What a row chain keeps to itself: values that no other call of the loop reads.
#pragma once
#include <utility>
#include <vector>

#include "backends/cpu/codegen/row_calls.h"

namespace reel::cpu {

/// Calls of a loop, from the one at `first` on.
struct CallsOfLoop {
  const LoweredLoop& loop;
  std::size_t first;
  const std::vector<RowCall>& calls;
};

/// Values that are written before they are read, in memory that holds nothing after the step. One row of each is
/// enough.
std::vector<RowAccess> row_values(const CallsOfLoop& chain);

/// States, before the step and after it, of which the loop saves more values than the caches hold: written by a fusion
/// group, and read in the next step where they were written.
std::vector<std::pair<RowAccess, RowAccess>> own_states(const CallsOfLoop& chain);

}  // namespace reel::cpu
