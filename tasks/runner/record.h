// What a run leaves in run.json, as programs that start many runs read it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reel {

struct RunSummary {
  bool finished = false;
  std::int64_t steps = 0, parameters = -1, diverged_at_step = -1;
  int threads = 0;
  double seconds = 0, baseline = 0, update_seconds = 0;  // NaN: unknown
  std::string device, version, commit, processor, date;  // empty: unknown
  std::vector<double> metrics = {};                      // those asked for; NaN: the run does not have it
};

/// Reads FOLDER/run.json with some of its numbers: "valid_loss", "test.loss", "best.valid_loss", ...; those of
/// "solved_at" are infinite if the run did not get there. Nothing if there is none, or it is damaged. Throws Error if
/// it cannot be read.
std::optional<RunSummary> read_summary(const std::string& folder, const std::vector<std::string>& metrics);

}  // namespace reel
