// Ranks start and end together: they compare what they run, and when one fails, all end with one line about it.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/training/model.h"
#include "tasks/training/ranks.h"

namespace reel {

/// What main() makes of an exception: an exit code and a line.
struct Failure {
  int code = 1;
  std::string line;
};
/// Of the exception that is being handled, or another one.
Failure failure_of(const std::exception_ptr& error);

/// On another rank something was wrong, or on this one, and all ranks know; rank 0 says it.
struct AllFailed : Error {
  explicit AllFailed(Failure f) : Error(f.line), failure(std::move(f)) {}
  Failure failure;
};

/// What must be the same on all ranks: names and texts.
using Digest = std::vector<std::pair<std::string, std::string>>;

/// Runs `work`; if it fails on any rank, or digests differ, throws AllFailed on all. A process alone only runs it.
void together(Ranks& ranks, const std::function<Digest()>& work);

/// Throws Error naming the rank whose parameters are not those of rank 0.
void require_same(Ranks& ranks, const Model& model);

/// Runs `body`, which returns the exit code. When this rank fails, the others learn of it; one of them says why, and
/// all end. Returns the exit code.
int run_ranks(const std::string& program, Ranks& ranks, const std::function<int()>& body);

}  // namespace reel
