#include "backends/cpu/team.h"

#include <immintrin.h>

#include <utility>

namespace reel::cpu {

namespace {

thread_local bool inside_part = false;

constexpr int looks = 4000;  // some tens of microseconds, what lies between two calls of a training step

}  // namespace

bool Team::inside() { return inside_part; }

void Team::resize(int threads) {
  const std::lock_guard guard(one_caller_);
  stop_ = true;
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  for (std::thread& t : workers_) t.join();
  workers_.clear();
  stop_ = false;
  for (int member = 1; member < threads; ++member) {
    workers_.emplace_back([this, member, seen = call_.load()]() mutable {
      while (true) {
        for (int look = 0; look < looks && call_.load(std::memory_order_acquire) == seen; ++look) _mm_pause();
        call_.wait(seen, std::memory_order_acquire);
        seen = call_.load(std::memory_order_acquire);
        if (stop_) return;
        take_parts(member);
        busy_.fetch_sub(1, std::memory_order_acq_rel);
        busy_.notify_one();
      }
    });
  }
}

void Team::take_parts(int member) {
  inside_part = true;
  try {
    for (int p = member; p < parts_; p += threads()) (*f_)(p);
  } catch (...) {
    const std::lock_guard guard(error_lock_);
    if (!error_) error_ = std::current_exception();
  }
  inside_part = false;
}

void Team::run(int parts, const std::function<void(int)>& f) {
  if (parts <= 1 || workers_.empty() || inside_part) {
    for (int p = 0; p < parts; ++p) f(p);
    return;
  }
  const std::lock_guard guard(one_caller_);
  f_ = &f;
  parts_ = parts;
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  take_parts(0);
  for (int look = 0; look < looks && busy_.load(std::memory_order_acquire) > 0; ++look) _mm_pause();
  for (int left = busy_.load(std::memory_order_acquire); left > 0; left = busy_.load(std::memory_order_acquire))
    busy_.wait(left, std::memory_order_acquire);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace reel::cpu
