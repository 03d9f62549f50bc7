#include "tasks/runner/record.h"

#include "tasks/app/run_json.h"
#include "tasks/runner/program.h"

namespace reel {

using Json = nlohmann::ordered_json;

namespace {

std::int64_t integer_of(const Json& json, const char* key, std::int64_t otherwise) {
  return json.contains(key) && json[key].is_number_integer() ? json[key].get<std::int64_t>() : otherwise;
}

}  // namespace

std::optional<RunSummary> read_summary(const std::string& folder) {
  const std::string text = text_if_there(folder + "/run.json");
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  RunSummary s;
  s.finished = json.contains("finished") && json["finished"] == true;
  s.steps = integer_of(json, "steps", 0);
  s.parameters = integer_of(json, "parameters", -1);
  s.diverged_at_step = integer_of(json, "diverged_at_step", -1);
  s.threads = static_cast<int>(integer_of(json, "threads", 0));
  s.seconds = metric_in(json, "seconds");
  s.baseline = metric_in(json, "baseline");
  s.update_seconds = metric_in(json, "update_seconds");
  s.device = text_in(json, "device");
  s.version = text_in(json, "version");
  s.commit = text_in(json, "commit");
  s.processor = text_in(json, "processor");
  s.kernels = text_in(json, "kernels");
  s.date = text_in(json, "date");
  s.json = std::move(json);
  return s;
}

}  // namespace reel
