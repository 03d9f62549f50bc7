#include "tasks/app/last_words.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <new>

namespace reel {

namespace {

std::terminate_handler usual = nullptr;  // set once, before main()
std::atomic<bool> ran_out = false;

void on_failed_new() {
  ran_out = true;
  throw std::bad_alloc();
}

void last_words() {
  try {
    if (const std::exception_ptr e = std::current_exception()) std::rethrow_exception(e);
    // Where GCC 12 has inlined a noexcept function, what was thrown there is no longer known.
    if (ran_out) throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    say_out_of_memory(program_invocation_short_name);
    _exit(1);
  } catch (...) {
  }
  usual();
}

struct Install {
  Install() {
    usual = std::set_terminate(last_words);
    std::set_new_handler(on_failed_new);
  }
};
[[gnu::init_priority(101)]] const Install install;  // before the registries of ops, cells and backends are filled

}  // namespace

void say_out_of_memory(const char* program) noexcept {
  std::fputs(program, stderr);
  std::fputs(": ", stderr);
  std::fputs(out_of_memory_text, stderr);
  std::fputs("\n", stderr);
}

}  // namespace reel
