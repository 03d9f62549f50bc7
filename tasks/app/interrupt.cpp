#include "tasks/app/interrupt.h"

namespace reel {

namespace {
volatile std::sig_atomic_t wished = 0;  // a signal handler may touch nothing else
extern "C" void wish(int) { wished = 1; }
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
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGHUP, &before_hup_, nullptr);
}

bool Interrupt::requested() const { return wished != 0; }

}  // namespace reel
