// What a run leaves in run.json, as programs that start many runs read it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace reel {

struct RunSummary {
  bool finished = false;
  std::int64_t steps = 0, parameters = -1, diverged_at_step = -1;
  int threads = 0;
  double seconds = 0, baseline = 0, update_seconds = 0;  // NaN: unknown
  double metric = 0;                                     // the one asked for; NaN: the run does not have it
};

/// Reads FOLDER/run.json with one of its numbers: "valid_loss", "accuracy", "test.loss", ...; nothing if there is none,
/// or it is damaged. Throws Error if it cannot be read.
std::optional<RunSummary> read_summary(const std::string& folder, const std::string& metric);

}  // namespace reel
