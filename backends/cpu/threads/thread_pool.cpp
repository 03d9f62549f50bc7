#include "backends/cpu/threads/thread_pool.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "backends/cpu/threads/denormals.h"
#include "engine/core/error.h"

namespace reel::cpu {

namespace {

thread_local std::thread::id part_of;  // the caller, on a thread that runs a part

/// Spin-wait hint: leaves more of the core to its other hyperthread.
void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns when the value is no longer `old`.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  constexpr int looks = 4000;  // tens of microseconds, the gap between two calls of a training step
  for (int look = 0; look < looks && value.load(std::memory_order_acquire) == old; ++look) pause();
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

std::thread::id ThreadPool::caller() { return part_of; }

void ThreadPool::Worker::call() {
  turn.fetch_add(called, std::memory_order_release);
  turn.notify_one();
}

bool ThreadPool::Worker::claim() {
  std::uint32_t now = turn.load(std::memory_order_acquire);
  return now % 4 == called && turn.compare_exchange_strong(now, now - called + claimed, std::memory_order_acq_rel);
}

void ThreadPool::Worker::finish() {
  turn.fetch_add(4 - claimed, std::memory_order_release);
  turn.notify_one();
}

void ThreadPool::Worker::wait_until(State state) const {
  for (std::uint32_t now; (now = turn.load(std::memory_order_acquire)) % 4 != state;) wait_while(turn, now);
}

void ThreadPool::resize(int threads, int cores) {
  const std::lock_guard guard(one_caller_);
  stop_ = true;
  for (const auto& worker : workers_) worker->call();
  for (const auto& worker : workers_) worker->thread.join();
  workers_.clear();
  stop_ = false;
  threads_ = threads;
  const int members = std::min(threads, cores);
  for (int member = 1; member < members; ++member) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    try {
      worker.thread = std::thread([this, member, &worker] { work(member, worker); });
    } catch (const std::system_error& e) {  // a limit on processes (ulimit -u) or memory
      workers_.pop_back();
      warn("threads", fmt::format("the system started {} of {} ({}); these do all the work, with the same results",
                                  member, members, e.code().message()));
      return;
    }
  }
}

void ThreadPool::work(int member, Worker& self) {
  while (true) {
    self.wait_until(called);
    if (!self.claim()) continue;
    if (stop_) return;
    if (flushes_denormals() != flushes_) flush_denormals(flushes_);
    take_parts(member);
    self.finish();
  }
}

void ThreadPool::take_parts(int member) {
  part_of = caller_;
  try {
    for (int p = member; p < parts_; p += takers_) (*f_)(p);
  } catch (...) {
    const std::lock_guard guard(error_lock_);
    if (!error_) error_ = std::current_exception();
  }
  part_of = {};
}

void ThreadPool::run(int parts, const std::function<void(int)>& f) {
  if (parts <= 1 || inside()) {
    for (int p = 0; p < parts; ++p) f(p);
    return;
  }
  // A caller that finds the pool taken works alone: it may hold what the other one waits for, as Python's global lock.
  std::unique_lock guard(one_caller_, std::defer_lock);
  if (threads_ == 1 || !guard.try_lock()) {
    struct Inside {
      Inside() { part_of = std::this_thread::get_id(); }
      ~Inside() { part_of = {}; }
    } const inside;
    for (int p = 0; p < parts; ++p) f(p);
    return;
  }
  caller_ = std::this_thread::get_id();
  f_ = &f;
  parts_ = parts;
  takers_ = std::min(parts, members());
  flushes_ = flushes_denormals();
  const std::span workers(workers_.data(), static_cast<std::size_t>(takers_ - 1));
  for (const auto& worker : workers) worker->call();
  take_parts(0);
  for (int member = 1; const auto& worker : workers) {
    if (worker->claim()) {
      take_parts(member);
      worker->finish();
    }
    ++member;
  }
  for (const auto& worker : workers) worker->wait_until(idle);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace reel::cpu
