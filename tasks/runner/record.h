// What a run leaves in run.json, as programs that start many runs read it.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace reel {

struct RunSummary {
  bool finished = false;
  std::int64_t steps = 0, parameters = -1, diverged_at_step = -1;
  int threads = 0;
  double seconds = 0, baseline = 0, update_seconds = 0;           // NaN: unknown
  std::string device, version, commit, processor, kernels, date;  // empty: unknown
  nlohmann::ordered_json json = {};                               // all of it, for metric_in() and measured_in()
};

/// Reads FOLDER/run.json. Nothing if there is none, or it is damaged. Throws Error if it cannot be read.
std::optional<RunSummary> read_summary(const std::string& folder);

}  // namespace reel
