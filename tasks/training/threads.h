// How many CPU threads a run uses. It decides the order of additions, and so the last digits of results.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace reel {

constexpr int most_threads = 1024;

struct ThreadsAsked {
  std::int64_t option = 0;         // from the command line or config.toml; 0: one per core
  bool typed = false;              // typed on the command line
  std::optional<int> so_far = {};  // of a resumed run; 0: its checkpoint does not say
  int cores = 1;                   // cores that the process may use
};

struct Threads {
  int count = 1;
  std::string note;  // a line for the user if results may differ, or if the work is divided for another machine
};

/// A resumed run keeps its number of threads, so that its results stay the same to the last bit, unless another is
/// typed.
Threads choose_threads(const ThreadsAsked& asked);

}  // namespace reel
