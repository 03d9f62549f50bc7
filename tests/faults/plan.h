// What the driver and the preloaded library share: a file that every process of a run has mapped. The driver puts the
// plan into it; the library counts, and notes each call.
#pragma once
#include <atomic>
#include <cstdint>

namespace reel::faults {

/// The kinds of calls that can be made to fail. Those up to `map` are calls on files, the rest ask for memory.
enum class Kind : std::uint32_t {
  open,
  create,
  read,
  write,
  sync,
  rename,
  mkdir,
  close,
  truncate,
  seek,
  unlink,
  lock,
  stat,
  map,
  allocate,
  thread
};
inline constexpr const char* kind_names[] = {"open",  "create", "read",     "write", "sync",   "rename",
                                             "mkdir", "close",  "truncate", "seek",  "unlink", "lock",
                                             "stat",  "map",    "allocate", "thread"};
constexpr bool on_files(Kind kind) { return kind <= Kind::map; }
constexpr std::uint32_t bit(Kind kind) { return 1U << static_cast<std::uint32_t>(kind); }

enum class Action : std::uint32_t { none, fail, half, kill_before, kill_after };

/// Which call fails, and how.
struct Plan {
  Action action = Action::none;
  bool memory = false;  // `at` counts calls for memory, of the first process; otherwise calls on files, of all of them
  bool trace = false;   // write the stack of the call into the file beside this one, as that of a crash
  std::int32_t error = 0;   // errno of a call that fails
  std::uint32_t lasts = 0;  // bits of the kinds that fail from then on
  std::uint64_t at = 0;     // number of the call, from 1
  char root[256] = "";      // only files below this folder count
};

struct Call {
  Kind kind;
  char path[124];
};

struct State {
  static constexpr std::uint64_t most = 1 << 14;
  Plan plan;
  std::atomic<std::uint64_t> calls, allocations;
  std::atomic<std::uint64_t> before_main;  // of the allocations
  std::atomic<std::uint32_t> struck;       // how many calls were made to fail
  std::atomic<std::int32_t> owner;         // process whose allocations count: the first
  Call log[most];                          // of the calls on files
};

inline constexpr const char* state_variable = "REEL_FAULTS";  // environment: path of the shared file

}  // namespace reel::faults
