#include "tasks/page/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "engine/core/error.h"
#include "tasks/app/provenance.h"
#include "tasks/io/files.h"
#include "tasks/io/output.h"
#include "tasks/page/groups.h"
#include "tasks/page/page.h"

namespace reel::page {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_curves = 40, most_rows = 12000;  // of all curves together
constexpr int deepest = 8;                                  // folders

/// A search for runs, which looks through each folder once, whatever links lead to it.
struct Search {
  fs::path top;
  std::vector<ComparedRun> runs = {};
  std::set<fs::path> seen = {};
  std::map<fs::path, int> links = {};  // to folders, with their depths: they are followed at last
};

void find_runs(const fs::path& folder, int depth, Search& in) {
  if (!in.seen.insert(real_path(folder)).second) return;
  if (holds_run(folder)) {
    const bool lone = folder == in.top;
    in.runs.push_back({folder.string(), (lone ? folder.filename() : folder.lexically_relative(in.top)).string()});
    return;
  }
  if (depth == deepest) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error)) {
    std::error_code none;
    if (!entry.is_directory(none)) continue;
    if (entry.is_symlink(none))
      in.links[entry.path()] = depth + 1;
    else
      find_runs(entry.path(), depth + 1, in);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(folder.string(), "cannot be read: " + error.message());
}

/// True for a folder that holds the other one, at any depth.
bool is_above(const fs::path& folder, const fs::path& other) {
  const fs::path way = other.lexically_relative(folder);
  return !way.empty() && *way.begin() != "..";
}

std::string state_of(const RunData& data) {
  const auto is = [&](const char* key) { return data.record.contains(key); };
  if (is("diverged_at_step")) return "diverged";
  if (is("finished")) return data.record["finished"] == true ? "finished" : "interrupted";
  return "not ended";
}

/// The columns of numbers: those that some run has, the one that counts first.
std::vector<std::string> metrics_of(const std::vector<ReadRun>& runs, const std::string& first) {
  std::set<std::string> known;
  for (const ReadRun& run : runs)
    for (const auto& [name, value] : run.numbers) known.insert(name);
  std::vector<std::string> out;
  if (known.erase(first)) out.push_back(first);
  for (const char* name : {"valid_loss", "best valid_loss", "accuracy"})
    if (known.erase(name)) out.emplace_back(name);
  known.erase("grad_norm");
  out.insert(out.end(), known.begin(), known.end());
  return out;
}

double seconds_of(const RunData& data) { return data.rows.empty() ? std::nan("") : data.rows.back().seconds; }

/// Marks the best number of each column of metrics, and the best row, among the rows that may be the best.
void mark_best(Json& table, std::size_t first, const std::vector<std::string>& metrics, const Comparison& comparison,
               const std::vector<bool>& ranked) {
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    const bool higher = metrics[m] == comparison.metric ? comparison.higher_is_better : higher_is_better(metrics[m]);
    double best = std::nan("");
    for (std::size_t i = 0; i < ranked.size(); ++i)
      if (const Json& cell = table["rows"][i]["cells"][first + m]; ranked[i] && cell.is_number())
        if (const double v = cell; std::isnan(best) || (higher ? v > best : v < best)) best = v;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      Json& row = table["rows"][i];
      if (!ranked[i] || row["cells"][first + m] != best) continue;
      row["top"].push_back(first + m);
      if (metrics[m] == comparison.metric) row["best"] = true;
    }
  }
}

Json column(const std::string& name, const char* kind) { return Json::array({name, kind}); }

/// A mean, or that something was never solved.
Json number_of(const std::vector<double>& values) {
  const std::string never = never_text(values);
  return never.empty() ? number(mean(values)) : Json(never);
}

Json row_of(Json cells) { return {{"cells", std::move(cells)}, {"best", false}, {"top", Json::array()}}; }

Json metric_column(const std::string& name) { return column(name, name == "parameters" ? "count" : "number"); }

Json table_of_groups(const Groups& groups, const std::vector<std::string>& metrics, const Comparison& comparison) {
  Json table{{"key", "groups"}, {"title", "Groups"}, {"columns", Json::array()}, {"rows", Json::array()}};
  table["columns"].push_back(column("group", "text"));
  for (const std::string& name : comparison.columns) table["columns"].push_back(column(name, "text"));
  for (const std::string& name : groups.differing) table["columns"].push_back(column(name, "text"));
  const std::size_t first = table["columns"].size();
  for (const std::string& name : metrics) table["columns"].push_back(metric_column(name));
  table["columns"].push_back(column("deviation over seeds", "number"));
  for (const char* name : {"seeds", "updates"}) table["columns"].push_back(column(name, "count"));
  table["columns"].push_back(column("time", "time"));
  std::vector<bool> ranked;
  for (const Group& g : groups.groups) {
    Json cells = Json::array({g.name});
    const std::vector<std::string>& more = g.runs.front()->run->cells;
    for (std::size_t i = 0; i < comparison.columns.size(); ++i) cells.push_back(i < more.size() ? more[i] : "");
    for (const std::string& value : g.values) cells.push_back(value);
    for (const std::string& metric : metrics) cells.push_back(number_of(g.numbers(metric)));
    cells.push_back(number(deviation(g.numbers(comparison.metric))));
    std::vector<double> seconds;
    for (const ReadRun* run : g.counted)
      if (const double s = seconds_of(run->data); std::isfinite(s)) seconds.push_back(s);
    const auto diverged = std::ranges::count_if(g.runs, &ReadRun::diverged);
    const auto [fewest, most] = g.updates();
    cells.push_back(diverged == 0 ? Json(g.runs.size())
                                  : Json(fmt::format("{} of {}", std::ssize(g.runs) - diverged, g.runs.size())));
    cells.push_back(fewest == most ? Json(most) : Json(fmt::format("{} to {}", fewest, most)));
    cells.push_back(number(mean(seconds)));
    table["rows"].push_back(row_of(std::move(cells)));
    ranked.push_back(g.ranked);
  }
  mark_best(table, first, metrics, comparison, ranked);
  return table;
}

Json table_of_runs(const Groups& groups, const std::vector<std::string>& metrics, const Comparison& comparison,
                   const fs::path& page_folder) {
  Json table{{"key", "runs"}, {"title", "Runs"}, {"columns", Json::array()}, {"rows", Json::array()}};
  for (const char* name : {"run", "group", "state"}) table["columns"].push_back(column(name, "text"));
  table["columns"].push_back(column("seed", "text"));
  const std::size_t first = table["columns"].size();
  for (const std::string& name : metrics) table["columns"].push_back(metric_column(name));
  table["columns"].push_back(column("updates", "count"));
  table["columns"].push_back(column("time", "time"));
  std::vector<bool> ranked;
  for (const Group& g : groups.groups) {
    for (const ReadRun* run : g.runs) {
      Json cells = Json::array({run->run->name, g.name, state_of(run->data), run->seed});
      for (const std::string& metric : metrics) {
        const auto found = run->numbers.find(metric);
        cells.push_back(found == run->numbers.end() ? Json() : number_of({found->second}));
      }
      cells.push_back(run->data.rows.empty() ? 0 : run->data.rows.back().step);
      cells.push_back(number(seconds_of(run->data)));
      Json row = row_of(std::move(cells));
      std::error_code error;
      if (const fs::path page = fs::path(run->run->folder) / "report.html"; fs::exists(page, error)) {
        const fs::path there = fs::absolute(page, error).lexically_normal().lexically_relative(page_folder);
        row["href"] = "./" + url_path(there.string());
      }
      table["rows"].push_back(std::move(row));
      ranked.push_back(!run->diverged() && (g.ranked || !comparison.most_updates_first));
    }
  }
  mark_best(table, first, metrics, comparison, ranked);
  return table;
}

Json groups_json(const Groups& groups) {
  Json out = Json::array();
  std::size_t curves = 0;
  const std::size_t most = most_rows / std::clamp<std::size_t>(groups.groups.size(), 1, most_curves);
  for (const Group& g : groups.groups) {
    Json one{{"name", g.name}, {"values", g.values}, {"seeds", g.counted.size()}};
    if (!g.rows.mean.empty() && curves++ < most_curves) {
      const std::size_t rows = g.counted.size() > 1 ? most / 3 : most;
      const std::vector<RunFolder::Row> mean = thinned(g.rows.mean, rows);
      one["curve"] = {{"mean", columns(mean)}};
      if (g.counted.size() > 1) {
        const auto at_same_steps = [&](const std::vector<RunFolder::Row>& all) {
          std::vector<RunFolder::Row> out;
          for (std::size_t i = 0; i < all.size(); ++i)
            if (out.size() < mean.size() && all[i].step == mean[out.size()].step) out.push_back(all[i]);
          return out;
        };
        one["curve"]["low"] = columns(at_same_steps(g.rows.low));
        one["curve"]["high"] = columns(at_same_steps(g.rows.high));
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

/// The baseline that all runs share; NaN if they do not.
double baseline_of(const std::vector<ReadRun>& runs) {
  std::set<double> all;
  for (const ReadRun& run : runs)
    if (const auto found = run.data.record.find("baseline"); found != run.data.record.end() && found->is_number())
      all.insert(found->get<double>());
  return all.size() == 1 ? *all.begin() : std::nan("");
}

}  // namespace

std::string quantity_of(const std::string& metric) {
  const std::string name = metric.substr(0, metric.find(" of "));  // behind it is a column of the user's
  return name.substr(name.rfind('.') + 1);
}

bool higher_is_better(const std::string& metric) {
  const std::string name = quantity_of(metric);
  if (name == "steps_per_second" || name == "paths_right") return true;
  static const std::set<std::string> words{"accuracy", "success", "snr", "segsnr", "stoi", "pesq", "f1"};
  for (std::size_t first = 0, end = 0; end < name.size(); first = end + 1) {
    end = std::min(name.find_first_of("_- ", first), name.size());
    if (words.contains(name.substr(first, end - first))) return true;
  }
  return false;
}

bool holds_run(const std::string& folder) {
  const auto has = [&](const char* name) {
    std::error_code error;
    return fs::exists(fs::path(folder) / name, error);
  };
  return has("config.toml") || has("run.json");
}

fs::path real_path(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return error ? folder : real;
}

std::vector<ComparedRun> runs_below(const std::string& folder) {
  Search in{fs::path(folder).lexically_normal()};
  if (in.top.filename().empty() && in.top.has_parent_path()) in.top = in.top.parent_path();  // "runs/"
  find_runs(in.top, 0, in);
  while (!in.links.empty()) {
    const auto [link, depth] = *in.links.begin();
    in.links.erase(in.links.begin());
    if (!is_above(real_path(link), real_path(in.top))) find_runs(link, depth, in);
  }
  std::ranges::sort(in.runs, {}, &ComparedRun::name);
  return std::move(in.runs);
}

NotCompared write_comparison(const Comparison& comparison, const std::string& path) {
  std::vector<ReadRun> runs;
  NotCompared left_out;
  for (const ComparedRun& run : comparison.runs) try {
      RunData data = read_run(run.folder);
      std::string seed;
      for (const auto& [name, value] : data.options)
        if (name == "seed") seed = value;
      auto numbers = numbers_of(data, comparison.metric);
      runs.push_back({&run, std::move(data), seed, std::move(numbers)});
    } catch (const Error& e) {
      left_out.unreadable.push_back(one_line(e.what()));
    }
  const Groups groups = group(runs, comparison);
  left_out.repeated = groups.repeated;
  const std::vector<std::string> metrics = metrics_of(runs, comparison.metric);
  if (comparison.must_have_metric && std::find(metrics.begin(), metrics.end(), comparison.metric) == metrics.end())
    throw Error("metric", fmt::format("no run has \"{}\"{}", comparison.metric,
                                      metrics.empty() ? "" : fmt::format("; they have {}", fmt::join(metrics, ", "))));
  std::error_code error;
  const fs::path page_folder = fs::absolute(path, error).lexically_normal().parent_path();
  Json data{
      {"kind", "comparison"},
      {"version", version()},
      {"title", comparison.title},
      {"facts", comparison.facts},
      {"problems", comparison.problems},
      {"differing", groups.differing},
      {"baseline", number(baseline_of(runs))},
      {"running", std::ranges::any_of(runs, [](const ReadRun& run) { return state_of(run.data) == "not ended"; })},
      {"groups", groups_json(groups)}};
  for (const auto* lines : {&left_out.unreadable, &left_out.repeated})
    for (const std::string& line : *lines) data["problems"].push_back("left out: " + line);
  const std::size_t shown = runs.size() - left_out.repeated.size();
  data["facts"].push_back(fmt::format("{} run{} in {} group{}; {} first by {}, {} is better. Written {}.", shown,
                                      shown == 1 ? "" : "s", groups.groups.size(), groups.groups.size() == 1 ? "" : "s",
                                      "the best", comparison.metric, comparison.higher_is_better ? "higher" : "lower",
                                      utc_now()));
  data["tables"] = Json::array(
      {table_of_groups(groups, metrics, comparison), table_of_runs(groups, metrics, comparison, page_folder)});
  write_atomically(path, html(comparison.title, data));
  return left_out;
}

}  // namespace reel::page
