// Threads that wait for work: a loop over time calls them thousands of times, so they look out for the next call for a
// while before they sleep.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace reel::cpu {

class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  ~Team() { resize(1, 1); }

  /// Work is shared out for `threads`, of which the calling one is the first. So many run, but no more than `cores`, as
  /// they would only wait for each other, and no more than the system starts. Parts of the work, and so its results, do
  /// not depend on how many do.
  void resize(int threads, int cores);
  int threads() const { return threads_; }
  /// How many threads there are, the calling one included.
  int members() const { return static_cast<int>(workers_.size()) + 1; }
  /// True on a thread that is busy with a part: what it calls does its work alone.
  static bool inside();
  /// f(part) for all parts, shared among the threads in turn; the first exception is rethrown.
  void run(int parts, const std::function<void(int)>& f);

 private:
  enum State : std::uint32_t { idle = 0, called = 1, claimed = 2 };
  /// Whoever claims a call does its parts: the worker, or the caller where the worker has not begun when the caller's
  /// own are done. On a busy machine a worker may wait for a processor for longer than the work takes.
  struct Worker {
    alignas(64) std::atomic<std::uint32_t> turn{idle};  // 4 x calls + state
    std::thread thread;

    void call();
    bool claim();
    void finish();
    void wait_until(State state) const;
  };
  void work(int member, Worker& self);
  void take_parts(int member);

  int threads_ = 1;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex one_caller_;
  // of the present call
  const std::function<void(int)>* f_ = nullptr;
  int parts_ = 0, takers_ = 0;
  bool stop_ = false;
  std::mutex error_lock_;
  std::exception_ptr error_;
};

}  // namespace reel::cpu
