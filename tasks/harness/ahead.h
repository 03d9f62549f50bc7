// Batches ahead of time: while a step trains on one batch, a thread of its own makes the next.
#pragma once
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
  /// `make` gives the batch of a training step; it is called for one step at a time. Without `overlap` it is called
  /// when the batch is asked for, on the same thread.
  Ahead(std::function<Drawn(std::int64_t step)> make, bool overlap) : make_(std::move(make)), overlap_(overlap) {}
  ~Ahead() {
    if (next_.valid()) next_.wait();
  }
  Ahead(const Ahead&) = delete;

  /// The batch of a step, which is the one after the last one asked for; throws what making it threw. `more`: the next
  /// will be asked for.
  Drawn take(std::int64_t step, bool more) {
    Drawn drawn = next_.valid() ? next_.get() : make_(step);
    if (overlap_ && more) next_ = std::async(std::launch::async, make_, step + 1);
    return drawn;
  }

 private:
  std::function<Drawn(std::int64_t)> make_;
  bool overlap_;
  std::future<Drawn> next_;
};

}  // namespace reel
