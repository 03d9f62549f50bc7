// Ctrl-C in a long call. Python notes a signal at once and raises KeyboardInterrupt at the next line of Python, but a
// loop over time may be minutes away from that: so it looks for signals between its steps.
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "backends/cpu/threads/thread_pool.h"
#include "python/src/python.h"

namespace reel::python {

namespace {

/// Ends a loop over time: thrown on each thread that runs a part of it.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

constexpr std::int64_t pause = 50;  // milliseconds between two looks, which need the GIL

std::atomic<std::thread::id> ending;                 // the thread with the exception, for those that help it
thread_local bool released = false;                  // is this thread in a call of Python, without the GIL?
thread_local std::int64_t looked = 0;                // when it looked last, in milliseconds
thread_local std::unique_ptr<nb::python_error> why;  // what the handler of the signal raised

std::atomic<bool> at_exit{false};   // the interpreter is about to end
std::atomic<std::thread::id> last;  // on this thread

bool finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // some nanoseconds, as this is done in each step
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void before_step() {
  if (!released) {
    const std::thread::id ends = ending.load(std::memory_order_relaxed);
    if (ends != std::thread::id() && ends == cpu::ThreadPool::caller()) throw Interrupted();
    return;
  }
  const std::int64_t now = milliseconds();
  if (now - looked < pause) return;
  looked = now;
  wait_if_ending();
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() == 0) return;  // always on other threads than the main one
  why = std::make_unique<nb::python_error>();
  ending = std::this_thread::get_id();
  throw Interrupted();
}

/// Daemon threads that run on when the program ends stay in their calls. Those that wait for the GIL get it first.
void end_threads(bool others) {
  last = std::this_thread::get_id();
  at_exit = true;
  if (!others) return;
  const nb::gil_scoped_release released;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

void wait_if_ending() noexcept {
  if (!at_exit || std::this_thread::get_id() == last.load()) return;
  for (int i = 0; i < 500 && at_exit; ++i) {
    while (finalizing()) ::pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  at_exit = false;  // other functions of atexit take their time, and may wait for this thread
}

Interruptible::Interruptible() : outer_(std::exchange(released, true)) { looked = milliseconds(); }

Interruptible::~Interruptible() {
  released = outer_;
  if (why) ending = std::thread::id();
  wait_if_ending();
}

void bind_interrupt(nb::module_& m) {
  m.def("_end_threads", end_threads, nb::arg("others"));
  backend().before_step = before_step;
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Interrupted&) {
      why->restore();
      why.reset();
    }
  });
}

}  // namespace reel::python
