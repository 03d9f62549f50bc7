// A caller that finds the pool taken works alone: it may be what the pool's user waits for.
#include <chrono>
#include <future>

#include "backends/cpu/threads/thread_pool.h"
#include "tests/support/check.h"

using namespace reel;

TEST_CASE("two callers, of which the one with the pool waits for the other") {
  cpu::ThreadPool pool;
  pool.resize(2, 2);
  std::promise<void> taken, done;
  std::atomic<int> first = 0, second = 0;
  std::thread other([&] {
    taken.get_future().wait();
    pool.run(4, [&](int) {
      CHECK(cpu::ThreadPool::caller() == std::this_thread::get_id());
      ++second;
    });
    done.set_value();
  });
  const std::shared_future<void> finished = done.get_future().share();
  pool.run(2, [&, caller = std::this_thread::get_id()](int p) {
    CHECK(cpu::ThreadPool::caller() == caller);
    if (p == 0) taken.set_value();
    if (finished.wait_for(std::chrono::minutes(1)) == std::future_status::ready) ++first;
  });
  other.join();
  CHECK(first == 2);
  CHECK(second == 4);
  CHECK_FALSE(cpu::ThreadPool::inside());
}

TEST_CASE("an error of a caller that works alone comes out, and it is no part afterwards") {
  cpu::ThreadPool pool;
  pool.resize(2, 2);
  std::string error;
  pool.run(2, [&](int p) {
    if (p != 0) return;
    std::thread([&] {
      error = test::error_of([&] { pool.run(3, [](int) { throw Error("part", "it fails"); }); });
      CHECK_FALSE(cpu::ThreadPool::inside());
    }).join();
  });
  CHECK(error.find("it fails") != std::string::npos);
}
