// Batches ahead of time: while a step trains on one batch, a thread of its own makes the next.
#pragma once
#include <chrono>
#include <functional>
#include <future>

#include "tasks/harness/task.h"

namespace reel {

/// A batch, and the examples in it.
struct Drawn {
  std::vector<std::uint64_t> streams;
  Batch batch;
};

class Ahead {
 public:
  /// `make` gives the batch of a training step; it is called for one step at a time. Without `free_core` it is called
  /// when the batch is asked for, on the same thread.
  Ahead(std::function<Drawn(std::int64_t step)> make, bool free_core) : make_(std::move(make)), free_core_(free_core) {}
  ~Ahead() {
    if (next_.valid() && next_.wait_for(Clock::duration::zero()) != std::future_status::deferred) next_.wait();
  }
  Ahead(const Ahead&) = delete;

  /// The batch of a step, which is the one after the last one asked for; throws what making it threw. `more`: the next
  /// will be asked for.
  Drawn take(std::int64_t step, bool more) {
    const Clock::time_point asked = Clock::now();
    Drawn drawn = next_.valid() ? next_.get() : make_(step);
    const Clock::time_point here = Clock::now();
    if (!pays_ && left_ != Clock::time_point()) pays_ = (here - asked) * few > asked - left_;
    left_ = here;
    // a system that starts no more threads defers it: then the batch is made when it is asked for
    if (free_core_ && pays_ && more) next_ = std::async(std::launch::async | std::launch::deferred, make_, step + 1);
    return drawn;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int few = 20;  // a batch that takes less than a 20th of a step is not worth waking a thread for

  std::function<Drawn(std::int64_t)> make_;
  bool free_core_, pays_ = false;
  Clock::time_point left_;  // when the last batch was handed out
  std::future<Drawn> next_;
};

}  // namespace reel
