// A thread pool whose workers spin briefly before sleeping: a loop over time calls them thousands of times.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace reel::cpu {

class ThreadPool {
 public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool() { resize(1, 1); }

  /// Divides work among `threads`, the calling thread included. At most `cores` threads run, since more would only wait
  /// for each other, and no more than the system can start. How work is divided, and so the results, does not depend on
  /// how many run.
  void resize(int threads, int cores);
  int threads() const { return threads_; }
  /// The number of running threads, the calling one included.
  int members() const { return static_cast<int>(workers_.size()) + 1; }
  /// True on a thread that is running a part; nested calls then run on that thread alone.
  static bool inside() { return caller() != std::thread::id(); }
  /// The thread whose call this one runs a part of; that of no thread outside of parts.
  static std::thread::id caller();
  /// Calls f(part) for all parts, dealt to the threads in turn; rethrows the first exception. All threads treat
  /// denormal numbers as the caller does, so results do not depend on how many there are.
  void run(int parts, const std::function<void(int)>& f);

 private:
  enum State : std::uint32_t { idle = 0, called = 1, claimed = 2 };
  /// Whoever claims a call runs its parts: the worker, or the caller if it finishes its own parts before the worker
  /// starts. On a busy machine a worker may wait for a core longer than the work takes.
  struct Worker {
    alignas(64) std::atomic<std::uint32_t> turn{idle};  // 4 x number of calls + state
    std::thread thread;

    void call();
    bool claim();
    void finish();
    void wait_until(State state) const;
  };
  void work(int member, Worker& self);
  void take_parts(int member);

  std::atomic<int> threads_ = 1;  // read without the lock
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex one_caller_;
  // of the current call
  const std::function<void(int)>* f_ = nullptr;
  int parts_ = 0, takers_ = 0;
  bool flushes_ = false;
  bool stop_ = false;
  std::mutex error_lock_;
  std::exception_ptr error_;
  std::thread::id caller_;
};

}  // namespace reel::cpu
