// Curves of several runs in one figure.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/app/curves.h"
#include "tasks/app/run.h"
#include "tasks/io/files.h"

namespace reel {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string out = "compare.svg", metric = "valid_loss", x = "examples", log = "auto", title, names;
};

double x_of(const RunFolder::Row& row, const std::string& x) {
  if (x == "steps") return static_cast<double>(row.step);
  return x == "seconds" ? row.seconds : static_cast<double>(row.examples);
}

/// A string from run.json; empty if it is missing.
std::string text_of(const nlohmann::json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key] : "";
}

int compare(int argc, const char* const* argv) {
  CompareOptions o;
  Options options("compare", "Curves of several runs in one figure, SVG and PNG.");
  options.arguments("RUN...", o.runs);
  options.add("out", o.out, "the figure, FILE.svg; FILE.png is drawn beside it", "Figure");
  options.choice("metric", o.metric, curve_metrics(), "what is drawn", "Figure");
  options.choice("x", o.x, {"examples", "steps", "seconds"}, "against what", "Figure");
  options.choice("log", o.log, {"auto", "on", "off"},
                 "logarithmic y axis; auto: for losses and norms that span more than a factor of 20", "Figure");
  options.add("title", o.title, "above the figure; empty: the task's name", "Figure");
  options.add("names", o.names, "of the runs in the legend, with commas between; empty: the cells, or the folders",
              "Figure");
  options.parse(argc, argv);
  if (o.runs.empty()) throw Usage("folders of runs expected, as arguments");
  const std::filesystem::path out = o.out;
  if (out.extension() != ".svg") throw Usage(fmt::format("--out {}: a name that ends with .svg expected", o.out));
  const std::vector<std::string> names = split_list(o.names);
  if (!names.empty() && names.size() != o.runs.size())
    throw Usage(fmt::format("--names: {} names for {} runs", names.size(), o.runs.size()));

  CurvesPicture picture{o.title, o.x, o.metric, {}};
  std::vector<std::string> cells, tasks;
  std::vector<double> baselines;
  for (const std::string& folder : o.runs) {
    Curve curve{std::filesystem::path(folder).lexically_normal().filename(), {}};
    if (curve.name.empty()) curve.name = std::filesystem::path(folder).parent_path().filename();
    for (const RunFolder::Row& row : RunFolder::view(folder).rows())
      curve.points.emplace_back(x_of(row, o.x), metric_of(row, o.metric));
    picture.curves.push_back(curve);
    std::error_code error;
    const std::string file = folder + "/run.json";  // missing until the run ends
    const auto json = std::filesystem::exists(file, error) ? nlohmann::json::parse(read_file(file), nullptr, false)
                                                           : nlohmann::json();
    cells.push_back(text_of(json, "cell"));
    if (json.is_object() && json.contains("baseline") && json["baseline"].is_number())
      baselines.push_back(json["baseline"]);
    if (const std::string task = text_of(json, "task"); !task.empty()) tasks.push_back(task);
  }
  // the cells name the runs only if no two are the same
  std::vector<std::string> sorted = cells;
  std::sort(sorted.begin(), sorted.end());
  const bool apart = sorted.front() != "" && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  for (std::size_t i = 0; i < picture.curves.size(); ++i)
    picture.curves[i].name = !names.empty() ? names[i] : apart ? cells[i] : picture.curves[i].name;
  if (picture.title.empty() && !tasks.empty()) picture.title = tasks.front();
  if (o.metric.ends_with("loss") && !baselines.empty() &&
      std::equal(baselines.begin() + 1, baselines.end(), baselines.begin()))
    picture.baseline = baselines.front();  // only if all runs have the same
  if (o.log != "auto") picture.logarithmic = o.log == "on";
  if (o.log == "auto" && o.metric == "accuracy") picture.logarithmic = false;  // a share, often 0
  if (const auto problem = draw_curves(o.out, picture)) throw Error("compare", *problem);
  print_out("{}\n", one_line(fmt::format("picture: {}, {}", o.out,
                                         std::filesystem::path(o.out).replace_extension(".png").string())));
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("compare", [&] { return reel::compare(argc, argv); });
}
