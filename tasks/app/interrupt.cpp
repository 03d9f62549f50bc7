#include "tasks/app/interrupt.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "engine/core/parse.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace {

volatile std::sig_atomic_t wished = 0;
/// When each kind of signal came first, in milliseconds; 0: not yet.
std::array<std::atomic<std::int64_t>, NSIG> came{};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // or a signal handler may not touch it

extern "C" void wish(int) { wished = 1; }

/// timeout(1) signals its program and then the program's group: one wish comes twice, within milliseconds.
extern "C" void wish_or_end(int signal) {
  constexpr std::int64_t same_wish = 250;  // milliseconds
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (!came[static_cast<std::size_t>(signal)].compare_exchange_strong(first, now) && now - first > same_wish) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // it is delivered when this returns
  }
  wished = 1;
}

bool has_owner() {
  const char* owner = std::getenv(owner_variable);
  return owner && parse<pid_t>(owner) == getppid();
}

/// Sends this process a signal when its owner dies, which it may have done just now.
void signal_with_owner(int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (!has_owner()) std::raise(signal);
}

/// Lets the death of the program that started this one be a request, too, if it asked for that. The signal is one that
/// nobody else sends, and it is caught as often as it comes: Linux sends it again for each thread of that program.
void follow_owner() {
  if (!has_owner()) return;
  std::signal(SIGUSR2, wish);
  signal_with_owner(SIGUSR2);
}

}  // namespace

Interrupt::Interrupt() {
  wished = 0;
  struct sigaction caught {};
  caught.sa_handler = wish_or_end;
  sigemptyset(&caught.sa_mask);
  caught.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    came[static_cast<std::size_t>(kinds[i])] = 0;
    sigaction(kinds[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == wish_or_end) before_[i].sa_handler = SIG_DFL;  // of an earlier one, see below
    if (before_[i].sa_handler == SIG_IGN) continue;  // nohup, or a script that has put it in the background
    sigaction(kinds[i], &caught, nullptr);
  }
  follow_owner();
}

Interrupt::~Interrupt() {
  prctl(PR_SET_PDEATHSIG, 0);  // the handler of SIGUSR2 stays: one may be under way
  if (wished != 0) return;     // so do the others: the same wish may come once more while the program ends
  for (std::size_t i = 0; i < kinds.size(); ++i) sigaction(kinds[i], &before_[i], nullptr);
}

bool Interrupt::requested() const { return wished != 0; }

void end_with_owner() {
  if (has_owner()) signal_with_owner(SIGTERM);
}

}  // namespace reel
