// A machine of one core, for a while.
#pragma once
#include <sched.h>

namespace reel::test {

/// This process, and programs that it starts, may use one processor while it lives.
struct OneCore {
  OneCore() {
    sched_getaffinity(0, sizeof before, &before);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before, &before); }
  OneCore(const OneCore&) = delete;

  cpu_set_t before;
};

}  // namespace reel::test
