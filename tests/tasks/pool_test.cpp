// Calls side by side, also where the system starts no more threads.
#include "tasks/runner/pool.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

#include "tests/support/check.h"

using namespace reel;
using test::error_of;

namespace {
int threads_left = -1;  // -1: no limit
}  // namespace

/// The system's, with a limit.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*f)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  return create(thread, attributes, f, argument);
}

TEST_CASE("in_parallel: all calls are made, with as many threads as there are") {
  for (const int most : {-1, 0, 1, 2}) {
    threads_left = most;
    std::atomic<int> calls = 0;
    CHECK(error_of([&] { in_parallel(20, 4, [&](std::size_t) { ++calls; }); }).empty());
    CHECK(calls == 20);
    CHECK(error_of([&] {
            in_parallel(20, 4, [](std::size_t i) {
              if (i == 3) throw Error("three");
            });
          }) == "three");
  }
  threads_left = -1;
}
