// The plan of a fault, carried out: counts calls, and lets the one that the plan names fail. Made to be loaded before a
// program (LD_PRELOAD); neither allocates nor calls what it replaces.
#include "tests/faults/preload.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace reel::faults {

namespace {

State* state = nullptr;
char trace_path[PATH_MAX];
[[gnu::tls_model("initial-exec")]] thread_local bool tracing = false;

void write_trace() {
  tracing = true;
  void* frames[64];
  const int count = backtrace(frames, 64);
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, trace_path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  if (file >= 0) backtrace_symbols_fd(frames, count, file);
  if (file >= 0) syscall(SYS_close, file);
  tracing = false;
}

/// Leaves a stack behind where the program crashes; then it crashes.
void write_crashes() {
  tracing = true;
  void* frame;
  backtrace(&frame, 1);  // loads what it needs, while there is memory
  tracing = false;
  struct sigaction action {};
  action.sa_handler = [](int) { write_trace(); };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGSEGV, &action, nullptr);
}

/// Maps the shared file, before anything of the program itself runs.
[[gnu::constructor]] void attach() {
  const char* path = getenv(state_variable);
  if (!path || strlen(path) + 8 > sizeof trace_path) return;
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  if (file < 0) return;
  const long at = syscall(SYS_mmap, nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (at < 0 && at > -4096) return;
  stpcpy(stpcpy(trace_path, path), ".trace");
  std::int32_t nobody = 0;
  auto* mapped = reinterpret_cast<State*>(at);
  mapped->owner.compare_exchange_strong(nobody, getpid());
  write_crashes();
  state = mapped;
}

void die() {
  for (;;) syscall(SYS_kill, getpid(), SIGKILL);
}

Action verdict(Kind kind, bool memory, std::uint64_t number) {
  const Plan& plan = state->plan;
  if (plan.action == Action::none || plan.memory != memory || plan.at == 0 || number < plan.at) return Action::none;
  if (number > plan.at) {
    if ((plan.lasts & bit(kind)) == 0) return Action::none;
  } else if (plan.trace) {
    write_trace();
  }
  ++state->struck;
  if (plan.action == Action::kill_before) die();
  return plan.action;
}

}  // namespace

Action called(Kind kind, const char* path) {
  if (!state) return Action::none;
  const std::uint64_t number = ++state->calls;
  if (number <= State::most) {
    Call& call = state->log[number - 1];
    call.kind = kind;
    strncpy(call.path, path, sizeof call.path - 1);
  }
  return verdict(kind, false, number);
}

Action asked(Kind kind) {
  if (!state || tracing || state->owner != getpid()) return Action::none;
  return verdict(kind, true, ++state->allocations);
}

void done() { die(); }

int planned_error() { return state->plan.error; }

bool below_root(const char* path, int directory) {
  if (!state || !path) return false;
  const char* root = state->plan.root;
  const std::size_t length = strlen(root);
  if (length == 0) return false;
  char whole[PATH_MAX + 32];
  if (path[0] != '/') {
    char link[40] = "/proc/self/cwd";
    if (directory != AT_FDCWD) {
      char digits[12];
      int n = 0;
      for (int d = directory; d > 0 || n == 0; d /= 10) digits[n++] = static_cast<char>('0' + d % 10);
      char* to = stpcpy(link, "/proc/self/fd/");
      while (n > 0) *to++ = digits[--n];
      *to = 0;
    }
    const long size = syscall(SYS_readlink, link, whole, PATH_MAX);
    if (size <= 0 || static_cast<std::size_t>(size) + strlen(path) + 2 > sizeof whole) return false;
    whole[size] = '/';
    strcpy(whole + size + 1, path);
    path = whole;
  }
  return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

}  // namespace reel::faults

using reel::faults::state;

namespace {
int (*program_main)(int, char**, char**) = nullptr;
int main_with_note(int argc, char** argv, char** environment) {
  if (state && state->owner == getpid()) state->before_main = state->allocations.load();
  return program_main(argc, argv, environment);
}
}  // namespace

/// What calls main(): the allocations before it are noted.
extern "C" [[gnu::visibility("default")]] int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                                                void (*init)(), void (*fini)(), void (*rtld_fini)(),
                                                                void* stack_end) {
  using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto real = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  program_main = main;
  return real(main_with_note, argc, argv, init, fini, rtld_fini, stack_end);
}
