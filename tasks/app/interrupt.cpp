#include "tasks/app/interrupt.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/core/parse.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace {

volatile std::sig_atomic_t wished = 0;  // a signal handler may touch nothing else
extern "C" void wish(int) { wished = 1; }

/// Lets the death of the program that started this one be a request, too, if it asked for that. The signal is one that
/// nobody else sends, and it is caught as often as it comes: Linux sends it again for each thread of that program.
void follow_owner() {
  const char* owner = std::getenv(owner_variable);
  if (!owner || parse<pid_t>(owner) != getppid()) return;
  std::signal(SIGUSR2, wish);
  prctl(PR_SET_PDEATHSIG, SIGUSR2);
}
}  // namespace

Interrupt::Interrupt() {
  wished = 0;
  struct sigaction once {};
  once.sa_handler = wish;
  sigemptyset(&once.sa_mask);
  once.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // RESETHAND: the second gets the default action
  sigaction(SIGINT, &once, &before_int_);
  sigaction(SIGTERM, &once, &before_term_);
  sigaction(SIGHUP, nullptr, &before_hup_);
  if (before_hup_.sa_handler != SIG_IGN) sigaction(SIGHUP, &once, nullptr);  // nohup stays in effect
  follow_owner();
}

Interrupt::~Interrupt() {
  prctl(PR_SET_PDEATHSIG, 0);  // the handler of SIGUSR2 stays: one may be under way
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGHUP, &before_hup_, nullptr);
}

bool Interrupt::requested() const { return wished != 0; }

}  // namespace reel
