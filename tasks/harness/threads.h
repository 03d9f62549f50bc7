// How many threads of the CPU a run uses. Who adds up what depends on it, and so do the last places of numbers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace reel {

constexpr int most_threads = 1024;

struct ThreadsAsked {
  std::int64_t option = 0;         // of the command line or config.toml; 0: one for each core
  bool typed = false;              // on the command line
  std::optional<int> so_far = {};  // of a resumed run; 0: its checkpoint does not say
  int cores = 1;                   // that the process may use
};

struct Threads {
  int count = 1;
  std::string note;  // a line for the user, where results may differ, or work is shared out for another machine
};

/// A resumed run keeps its number, so that its results stay the same to the last bit, unless another one is typed.
Threads choose_threads(const ThreadsAsked& asked);

}  // namespace reel
