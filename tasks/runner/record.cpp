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

std::string text_of(const nlohmann::json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

/// A number, or with a dot in its name one of an object in run.json.
double metric_of(const nlohmann::json& json, const std::string& metric) {
  const std::size_t dot = metric.find('.');
  if (dot == metric.npos) return number_of(json, metric);
  const std::string object = metric.substr(0, dot), key = metric.substr(dot + 1);
  if (!json.contains(object) || !json[object].is_object()) return number_of(nlohmann::json::object(), key);
  if (object == "solved_at" && json[object].contains(key) && json[object][key].is_null())
    return std::numeric_limits<double>::infinity();
  return number_of(json[object], key);
}

}  // namespace

std::optional<RunSummary> read_summary(const std::string& folder, const std::vector<std::string>& metrics) {
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
  s.device = text_of(json, "device");
  s.version = text_of(json, "version");
  s.commit = text_of(json, "commit");
  s.processor = text_of(json, "processor");
  s.date = text_of(json, "date");
  for (const std::string& metric : metrics) s.metrics.push_back(metric_of(json, metric));
  return s;
}

}  // namespace reel
