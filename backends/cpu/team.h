// Threads that wait for work: a loop over time calls them thousands of times, so they look out for the next call for a
// while before they sleep.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace reel::cpu {

class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  ~Team() { resize(1); }

  /// The calling thread counts as one.
  void resize(int threads);
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  /// True on a thread that is busy with a part: what it calls does its work alone.
  static bool inside();
  /// f(part) for all parts, shared among the threads in turn; the first exception is thrown on.
  void run(int parts, const std::function<void(int)>& f);

 private:
  void work(int member);
  void take_parts(int member);

  std::vector<std::thread> workers_;
  std::mutex one_caller_;
  const std::function<void(int)>* f_ = nullptr;
  int parts_ = 0;
  std::atomic<std::uint32_t> call_{0};  // counts the calls
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  std::mutex error_lock_;
  std::exception_ptr error_;
};

}  // namespace reel::cpu
