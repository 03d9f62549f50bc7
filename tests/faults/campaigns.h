// The three campaigns. Each prints what it finds, with the options that repeat it, and a line of figures; and returns
// the exit code.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/faults/jobs.h"

namespace reel::faults {

struct Options {
  std::size_t points = 0;  // how many of all; 0: all
  std::uint64_t seed = 1;  // which ones, where not all
  std::uint64_t at = 0;    // this call only; 0: any
  std::string fault;       // this fault only; empty: any
  bool verbose = false;    // also those that end well
};

/// Each call on a file of this job, which has just run to its end, fails in turn; `expected` is what it left.
int walk_calls(const Job& job, Workplace& place, const Files& expected, const Options& options);
/// Likewise each call for memory: `--fault once`, and `always` from there on.
int walk_memory(const Job& job, Workplace& place, const Files& expected, const Options& options);
/// kill -9 at random times, in runs of all cells, optimisers and schedules.
int random_kills(const Options& options);

/// So many of all points, taken at random, in their order.
template <class Point>
std::vector<Point> thinned(const std::vector<Point>& all, std::size_t count, std::uint64_t seed) {
  if (count == 0 || count >= all.size()) return all;
  std::vector<Point> some;
  std::mt19937_64 random(seed);
  std::sample(all.begin(), all.end(), std::back_inserter(some), count, random);
  return some;
}

}  // namespace reel::faults
