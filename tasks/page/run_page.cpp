#include "tasks/page/run_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tasks/app/provenance.h"
#include "tasks/app/run_json.h"
#include "tasks/io/files.h"
#include "tasks/page/compare.h"
#include "tasks/page/page.h"
#include "tasks/page/run_data.h"

namespace reel::page {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_rows = 3000, room_for_pictures = 1 << 20;
constexpr double least_pause = 2, share = 0.01;  // seconds; of the run

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string parameter_shape(const Tensor& x) {
  std::string out;
  for (int axis = 0; axis < x.rank(); ++axis) out += fmt::format("{}{}", axis ? " x " : "", x.dim(axis));
  return out.empty() ? "scalar" : out;
}

Json parameters(const Model& model) {
  Json out = Json::array();
  for (const Parameter& p : model.parameters())
    out.push_back({p.name, parameter_shape(p.value), p.count(), p.trained ? "yes" : "no"});
  return out;
}

std::string state(const Moment& at) {
  if (at.running) return "running";
  if (at.record.diverged_at_step >= 0) return "diverged";
  return at.record.finished ? "finished" : "interrupted";
}

Json record_of(const RunRecord& r) {
  Json out{{"steps", r.steps},
           {"seconds", number(r.seconds)},
           {"baseline", number(r.baseline)},
           {"parameters", r.parameters}};
  if (r.best_step >= 0) out["best"] = {{"step", r.best_step}, {"valid_loss", number(r.best_loss)}};
  if (!r.test.empty()) out["test"] = Json::object();
  for (const auto& [name, value] : r.test) out["test"][name] = number(value);
  if (r.diverged_at_step >= 0) out["diverged_at_step"] = r.diverged_at_step;
  return out;
}

/// Says how far a run is from the paper's number.
void tell_verdict(Json& preset, double above, bool higher_is_better) {
  const bool same = above == 0, better = (above > 0) == higher_is_better;
  preset["good"] = same || better;
  const std::string unit = preset["unit"] == "%" ? " points" : "";
  preset["verdict"] = same ? "The same as reported."
                           : fmt::format("{:.3g}{} {} the reported number: {}.", std::abs(above), unit,
                                         above > 0 ? "above" : "below", better ? "better" : "worse");
}

}  // namespace

RunPage::RunPage(std::string title, const std::string& preset, const std::string& task) : title_(std::move(title)) {
  if (preset.empty()) return;
  const auto [table, p] = find_preset(preset, task);
  std::vector<std::string> notes = table.notes;
  notes.insert(notes.end(), p.notes.begin(), p.notes.end());
  const Measure& m = measure_ = p.main();
  epoch_updates_ = p.epoch_updates;
  preset_ = {{"name", p.name}, {"paper", table.paper},   {"where", table.where}, {"metric", m.metric},
             {"unit", m.unit}, {"reported", m.reported}, {"notes", notes}};
}

void RunPage::validated(const Moment& at, const RunFolder::Row&, const Tensors&) {
  if (now() >= next_) write(at);
}

void RunPage::write(const Moment& at) {
  const double start = now();
  next_ = start + least_pause;  // also if this fails
  const RunRecord& r = at.record;
  const std::vector<RunFolder::Row> rows = at.folder.rows();
  data_ = {{"kind", "run"},
           {"version", version()},
           {"title", title_},
           {"state", state(at)},
           {"written", utc_now()},
           {"steps", at.steps},
           {"left", number(at.seconds_left)},
           {"record", record_of(r)}};
  // Validations may be far apart: then there is nothing new to load in between.
  const double apart = rows.size() < 2 ? 5 : rows.back().seconds - rows[rows.size() - 2].seconds;
  data_["refresh"] = std::isfinite(apart) ? std::clamp(std::round(apart), 5.0, 60.0) : 5.0;
  data_["rows"] = columns(thinned(rows, most_rows));
  data_["parameters"] = parameters(at.model);
  data_["options"] = options_in(at.folder.file("config.toml"));
  data_["facts"] = Json::array({{"task", r.task},
                                {"cell", r.cell},
                                {"seed", fmt::format("{}", r.seed)},
                                {"device", r.device},
                                {"threads", r.threads},
                                {"processor", processor()},
                                {"kernels", r.kernels},
                                {"version", version()},
                                {"commit", commit().empty() ? "-" : commit()},
                                {"command", r.command},
                                {"written", utc_now()}});
  if (r.ranks > 1) data_["facts"].push_back({"ranks", r.ranks});
  if (!preset_.is_null()) {
    Json told = preset_;
    const double value = measured_in(run_json(r), measure_, epoch_updates_);
    told["measured"] = number(value);
    if (std::isfinite(value) && measure_.value)
      tell_verdict(told, value - *measure_.value, higher_is_better(measure_.metric));
    data_["preset"] = std::move(told);
  }
  put(at.folder);
  next_ = now() + std::max(least_pause, (now() - start) / share);
}

void RunPage::drawn(const RunFolder& folder) {
  if (!data_.is_null()) put(folder);
}

void RunPage::put(const RunFolder& folder) {
  data_["pictures"] = pictures(folder.path(), room_for_pictures);
  write_atomically(folder.file("report.html"), html(title_, data_));
}

}  // namespace reel::page
