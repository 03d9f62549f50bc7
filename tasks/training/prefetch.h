// Prefetches batches: while a step trains on one batch, a separate thread makes the next.
#pragma once
#include <chrono>
#include <functional>
#include <future>

#include "tasks/training/task.h"

namespace reel {

class Prefetcher {
 public:
  /// `make` makes the batch of a training step; it is called for one step at a time. Without `free_core`, take() calls
  /// it on its own thread.
  Prefetcher(std::function<Drawn(std::int64_t step)> make, bool free_core)
      : make_(std::move(make)), free_core_(free_core) {}
  ~Prefetcher() {
    if (next_.valid() && next_.wait_for(Clock::duration::zero()) != std::future_status::deferred) next_.wait();
  }
  Prefetcher(const Prefetcher&) = delete;

  /// The batch of a step, which must be the one after that of the last call; rethrows what `make` threw. `more` says
  /// that the next step's batch will be taken too.
  Drawn take(std::int64_t step, bool more) {
    const Clock::time_point asked = Clock::now();
    Drawn drawn = next_.valid() ? next_.get() : make_(step);
    const Clock::time_point here = Clock::now();
    if (!pays_ && left_ != Clock::time_point()) pays_ = (here - asked) * few > asked - left_;
    left_ = here;
    // if the system can start no more threads, this is deferred, and take() makes the batch
    if (free_core_ && pays_ && more) next_ = std::async(std::launch::async | std::launch::deferred, make_, step + 1);
    return drawn;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int few = 20;  // a batch that takes less than a 20th of a step is not worth a thread

  std::function<Drawn(std::int64_t)> make_;
  bool free_core_, pays_ = false;
  Clock::time_point left_;  // when the last batch was handed out
  std::future<Drawn> next_;
};

}  // namespace reel
