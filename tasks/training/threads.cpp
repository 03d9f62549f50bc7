#include "tasks/training/threads.h"

#include <fmt/format.h>

namespace reel {

Threads choose_threads(const ThreadsAsked& asked) {
  const int here = asked.option > 0 ? static_cast<int>(asked.option) : asked.cores;
  if (!asked.so_far) return {here, ""};
  const int before = *asked.so_far;
  if (before == 0)
    return {here,
            fmt::format("threads: going on with {}; the checkpoint, of an older version, does not say how many the "
                        "run has used so far. With another number, numbers may differ in their last places",
                        here)};
  if (asked.typed && here != before)
    return {here, fmt::format("threads: going on with {}, the run has used {} so far. Numbers may differ in their last "
                              "places from those of an uninterrupted run",
                              here, before)};
  if (asked.option == 0 && before != asked.cores)
    return {before,
            fmt::format("threads: going on with {}, which the run has used so far, so that its results stay the "
                        "same to the last bit; there are {} cores here",
                        before, asked.cores)};
  return {before, ""};
}

}  // namespace reel
