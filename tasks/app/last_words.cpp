#include "tasks/app/last_words.h"

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>

namespace reel {

namespace {

std::terminate_handler usual = nullptr;  // set once, before main()

void last_words() {
  try {
    if (const std::exception_ptr e = std::current_exception()) std::rethrow_exception(e);
  } catch (const std::bad_alloc&) {
    say_out_of_memory(program_invocation_short_name);
    _exit(1);
  } catch (...) {
  }
  usual();
}

struct Install {
  Install() { usual = std::set_terminate(last_words); }
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
