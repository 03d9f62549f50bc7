// Inside the preloaded library: what is to become of a call.
#pragma once
#include <cerrno>

#include "tests/faults/plan.h"

namespace reel::faults {

/// Notes a call on a file below the root, and says what becomes of it: none, fail or half. Kills the process where the
/// plan has kill_before; after a call with kill_after, `done` does.
Action called(Kind kind, const char* path);
/// The same for a call that asks for memory.
Action asked(Kind kind);
/// After a call that came through: kills the process where the plan says so.
void done();
/// errno of calls that fail.
int planned_error();
/// Whether the file lies below the root; a relative path is one below the folder of `directory`, as openat(2) takes it.
bool below_root(const char* path, int directory);

/// The real call, or the planned fault in its place.
template <class F, class R>
R instead(Action action, R failed, const F& real) {
  if (action == Action::fail) {
    errno = planned_error();
    return failed;
  }
  const R result = real();
  if (action == Action::kill_after) done();
  return result;
}

}  // namespace reel::faults
