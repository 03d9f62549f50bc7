#include "tasks/runner/record.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tasks/runner/program.h"

namespace reel {

namespace {

double number_of(const nlohmann::json& json, const std::string& key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t integer_of(const nlohmann::json& json, const char* key, std::int64_t otherwise) {
  return json.contains(key) && json[key].is_number_integer() ? json[key].get<std::int64_t>() : otherwise;
}

}  // namespace

std::optional<RunSummary> read_summary(const std::string& folder, const std::string& metric) {
  const std::string text = text_if_there(folder + "/run.json");
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  RunSummary s;
  s.finished = json.contains("finished") && json["finished"] == true;
  s.steps = integer_of(json, "steps", 0);
  s.parameters = integer_of(json, "parameters", -1);
  s.diverged_at_step = integer_of(json, "diverged_at_step", -1);
  s.threads = static_cast<int>(integer_of(json, "threads", 0));
  s.seconds = number_of(json, "seconds");
  s.baseline = number_of(json, "baseline");
  s.update_seconds = number_of(json, "update_seconds");
  const auto test = json.contains("test") && json["test"].is_object() ? json["test"] : nlohmann::json::object();
  s.metric = metric.starts_with("test.") ? number_of(test, metric.substr(5)) : number_of(json, metric);
  return s;
}

}  // namespace reel
