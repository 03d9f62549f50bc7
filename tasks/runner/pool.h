// Calls that wait for child processes, side by side.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace reel {

/// Calls work(0) to work(count - 1), at most `jobs` at a time, fewer where the system starts no more threads, and
/// in this order, and waits for all. After an exception no further call begins; the first one is thrown here.
inline void in_parallel(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first;
  std::mutex mutex;
  const auto loop = [&] {
    for (std::size_t i; !failed && (i = next++) < count;) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 1; i < std::min(jobs, count); ++i) threads.emplace_back(loop);
  } catch (const std::system_error&) {  // the system has no more threads: those that there are do all
  }
  loop();
  threads.clear();  // waits for them
  if (first) std::rethrow_exception(first);
}

}  // namespace reel
