// What an update and a validation of a task cost, measured.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reel {

struct StepCost {
  double update = 0, validation = 0;  // seconds
  /// Of a whole run.
  double of(std::int64_t updates, std::int64_t interval) const;
};

constexpr std::int64_t measured_updates = 8;

/// The share of a run's updates that its metrics.csv does not have; 1 if that cannot be read, which the run will say.
double share_left(const std::string& folder, std::int64_t updates);

/// Adds a cost to a file of JSON to which other programs add theirs.
void add_cost(const std::string& file, const std::string& key, const nlohmann::ordered_json& cost);

/// Times a program's updates and validations in a run of eight updates, in a folder FOLDER-... of its own that is
/// removed. Throws Error with the program's words if it fails. While it runs, `stop` is called, and returns true to end
/// it.
StepCost measure_step(const std::string& task, const std::vector<std::string>& options, const std::string& folder,
                      const std::function<bool()>& stop);

}  // namespace reel
