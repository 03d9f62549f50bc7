// Batches that are made ahead are those that would have been made in time.
#include <dlfcn.h>
#include <pthread.h>

#include <set>
#include <thread>

#include "tasks/training/prefetch.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

bool starts_threads = true;

/// A batch with its number in it, after so many milliseconds.
Drawn slow(std::int64_t step, int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return {{static_cast<std::uint64_t>(step)}, {Tensor::full({1}, static_cast<double>(step), DType::f64), {}}};
}

}  // namespace

/// Goes before that of the C library: a system that may refuse to start threads.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*f)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return starts_threads ? create(thread, attributes, f, argument) : EAGAIN;
}

TEST_CASE("each batch once and in order; slow ones on a thread of their own") {
  for (bool free_core : {false, true}) {
    CAPTURE(free_core);
    std::vector<std::int64_t> made;
    std::set<std::thread::id> threads;
    Prefetcher batches(
        [&](std::int64_t step) {
          made.push_back(step);
          threads.insert(std::this_thread::get_id());
          return slow(step, 2);
        },
        free_core);
    for (std::int64_t step = 3; step < 9; ++step) {
      const Drawn drawn = batches.take(step, step + 1 < 9);
      CHECK(drawn.streams == std::vector<std::uint64_t>{static_cast<std::uint64_t>(step)});
      CHECK(drawn.batch.x.item() == static_cast<double>(step));
      std::this_thread::sleep_for(std::chrono::milliseconds(6));  // a step that takes longer than its batch
    }
    CHECK(made == std::vector<std::int64_t>{3, 4, 5, 6, 7, 8});  // and none after the last
    CHECK((threads.size() > 1) == free_core);
  }
}

TEST_CASE("an error comes out where its batch is asked for") {
  Prefetcher breaks(
      [&](std::int64_t step) {
        if (step == 3) throw Error("data", "file 3 is damaged");
        return slow(step, 2);
      },
      true);
  for (std::int64_t step = 0; step < 3; ++step) breaks.take(step, true);
  CHECK(error_of([&] { breaks.take(3, true); }) == "[data] file 3 is damaged");
}

TEST_CASE("where the system starts no thread, batches are made when they are asked for") {
  starts_threads = false;
  std::vector<std::int64_t> made;
  {
    Prefetcher batches(
        [&](std::int64_t step) {
          made.push_back(step);
          return slow(step, 2);
        },
        true);
    for (std::int64_t step = 0; step < 4; ++step) {
      CHECK(batches.take(step, true).streams == std::vector<std::uint64_t>{static_cast<std::uint64_t>(step)});
      CHECK(std::ssize(made) == step + 1);
    }
  }
  starts_threads = true;
  CHECK(made.size() == 4);  // the fifth, put off, is not made for nobody
}
