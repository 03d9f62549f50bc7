#include "tasks/app/run_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tasks/app/provenance.h"

namespace reel {

using Json = nlohmann::ordered_json;

Json run_json(const RunRecord& r) {
  Json json{{"task", r.task},
            {"cell", r.cell},
            {"parameters", r.parameters},
            {"seed", r.seed},
            {"steps", r.steps},
            {"baseline", r.baseline},
            {"train_loss", r.train_loss},
            {"valid_loss", r.valid_loss},
            {"accuracy", r.accuracy},
            {"seconds", r.seconds},
            {"steps_per_second", r.steps_per_second},
            {"update_seconds", r.update_seconds},
            {"device", r.device},
            {"threads", r.threads},
            {"finished", r.finished},
            {"version", version()},
            {"processor", processor()},
            {"date", utc_now()}};
  if (r.ranks > 1) json["ranks"] = r.ranks;
  if (!r.kernels.empty()) json["kernels"] = r.kernels;
  if (!commit().empty()) json["commit"] = commit();
  if (!r.command.empty()) json["command"] = r.command;
  if (!r.plugins.empty()) json["plugins"] = r.plugins;
  if (!r.preset.empty()) json["preset"] = r.preset;
  if (r.diverged_at_step >= 0) json["diverged_at_step"] = r.diverged_at_step;
  if (!r.stopped_by.empty()) json["stopped_by"] = r.stopped_by;
  if (r.best_step >= 0) {
    json["best"] = {{"step", r.best_step}, {"valid_loss", r.best_loss}};
    if (!std::isnan(r.best_accuracy)) json["best"]["accuracy"] = r.best_accuracy;
  }
  if (r.solved_share > 0 && r.baseline > 0) {
    json["solved_at"] = {{"share", r.solved_share}, {"step", nullptr}, {"examples", nullptr}, {"seconds", nullptr}};
    if (r.solved_step >= 0)
      json["solved_at"].update(
          {{"step", r.solved_step}, {"examples", r.solved_examples}, {"seconds", r.solved_seconds}});
  }
  if (!r.test.empty()) {
    json["test"] = {{"step", r.best_step}};
    for (const auto& [name, value] : r.test) json["test"][name] = value;
  }
  return json;
}

bool complete(RunRecord& r, const Json& earlier, bool trained) {
  if (std::isnan(r.update_seconds)) r.update_seconds = metric_in(earlier, "update_seconds");
  if (trained || !r.finished) return false;
  const Json now = run_json(r);
  for (const char* key :
       {"finished", "steps", "best", "solved_at", "stopped_by"})  // an older Reel may have written others
    if (now.value(key, Json()) != earlier.value(key, Json())) return false;
  if (now.contains("test") != earlier.contains("test")) return false;
  r.seconds = metric_in(earlier, "seconds");
  r.steps_per_second = metric_in(earlier, "steps_per_second");
  r.command = text_in(earlier, "command");
  r.kernels = text_in(earlier, "kernels");
  return true;
}

void find_solved(RunRecord& record, const std::vector<RunFolder::Row>& rows) {
  const double limit = record.solved_share * record.baseline;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.valid_loss < limit; });
  if (row == rows.end()) return;
  record.solved_step = row->step;
  record.solved_examples = row->examples;
  record.solved_seconds = row->seconds;
}

double metric_in(const Json& run, const std::string& metric) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t dot = metric.find('.');
  if (dot != metric.npos) {
    const auto object = run.find(metric.substr(0, dot));
    if (object == run.end() || !object->is_object()) return nan;
    const auto inner = object->find(metric.substr(dot + 1));
    if (metric.starts_with("solved_at.") && inner != object->end() && inner->is_null()) return INFINITY;
    return inner != object->end() && inner->is_number() ? inner->get<double>() : nan;
  }
  const auto number = run.find(metric);
  return number != run.end() && number->is_number() ? number->get<double>() : nan;
}

std::string text_in(const Json& run, const std::string& name) {
  const auto text = run.find(name);
  return text != run.end() && text->is_string() ? text->get<std::string>() : "";
}

double measured_in(const Json& run, const Measure& m, double epoch_updates) {
  const double value =
      m.metric == "epoch_seconds" ? metric_in(run, "update_seconds") * epoch_updates : metric_in(run, m.metric);
  return in_unit(m, value);
}

double in_unit(const Measure& m, double value) {
  if (m.unit == "%") return value * 100;
  return m.unit == "bits" && m.metric.ends_with("loss") ? value / std::numbers::ln2 : value;
}

}  // namespace reel
