#include "tasks/page/run_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "tasks/app/curves.h"
#include "tasks/app/options.h"
#include "tasks/app/options_file.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"
#include "tasks/page/page.h"

namespace reel::page {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::pair<std::string, std::string>> options_in(const std::string& config) try {
  std::vector<std::pair<std::string, std::string>> options;
  for (const FileValue& value : read_options_file(config))
    if (value.type != "table") options.emplace_back(value.name, value.text);
  return options;
} catch (const Usage& e) {
  throw Error(e.what());
}

RunData read_run(const std::string& folder) {
  RunData run;
  const RunFolder files = RunFolder::view(folder);
  run.options = options_in(files.file("config.toml"));
  run.rows = files.rows();
  std::error_code error;
  run.record = Json::object();
  if (const std::string path = files.file("run.json"); fs::exists(path, error)) {
    run.record = Json::parse(read_file(path, 1 << 24), nullptr, false);
    if (!run.record.is_object()) throw Error(path, "is damaged");
  }
  if (!run.record.contains("task")) run.record["task"] = task_in(folder);
  return run;
}

std::vector<RunFolder::Row> thinned(const std::vector<RunFolder::Row>& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  const auto& metrics = curve_metrics();
  const std::size_t stretches = std::max<std::size_t>(1, (most - 1) / (2 * metrics.size()));
  std::set<std::size_t> kept{rows.size() - 1};
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t first = s * rows.size() / stretches, end = (s + 1) * rows.size() / stretches;
    for (const std::string& metric : metrics) {
      std::size_t low = first, high = first;
      for (std::size_t i = first; i < end; ++i) {
        const double y = metric_of(rows[i], metric);
        if (y < metric_of(rows[low], metric) || std::isnan(metric_of(rows[low], metric))) low = i;
        if (y > metric_of(rows[high], metric) || std::isnan(metric_of(rows[high], metric))) high = i;
      }
      kept.insert({low, high});
    }
  }
  std::vector<RunFolder::Row> out;
  for (const std::size_t i : kept) out.push_back(rows[i]);
  return out;
}

Json columns(const std::vector<RunFolder::Row>& rows) {
  Json out = Json::object();  // not null: nlohmann 3.11 crashes if memory runs out as null becomes an object
  for (const char* name : {"step", "examples", "seconds"}) out[name] = Json::array();
  for (const std::string& metric : curve_metrics()) out[metric] = Json::array();
  for (const RunFolder::Row& row : rows) {
    out["step"].push_back(row.step);
    out["examples"].push_back(row.examples);
    out["seconds"].push_back(number(row.seconds));
    for (const std::string& metric : curve_metrics()) out[metric].push_back(number(metric_of(row, metric)));
  }
  return out;
}

Json pictures(const std::string& folder, std::size_t room) {
  std::error_code error;
  Json out = Json::array();
  for (const fs::path& svg : entries_of(folder)) {
    if (svg.extension() != ".svg" || svg.stem() == "curve") continue;
    fs::path file = svg;
    if (const fs::path png = fs::path(svg).replace_extension(".png");
        fs::exists(png, error) && fs::file_size(png, error) < fs::file_size(svg, error))
      file = png;
    const std::uintmax_t size = fs::file_size(file, error);
    if (error) continue;  // it has just gone
    const bool fits = size <= room;
    if (fits) room -= size;
    const char* type = file.extension() == ".png" ? "image/png" : "image/svg+xml";
    out.push_back({{"name", svg.stem().string()},
                   {"source", fits ? data_uri(type, read_file(file)) : "./" + url_path(file.filename())}});
  }
  return out;
}

}  // namespace reel::page
