// Curves of several runs in one figure.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tasks/app/curves.h"
#include "tasks/app/output_file.h"
#include "tasks/app/run.h"
#include "tasks/app/run_json.h"
#include "tasks/app/run_names.h"
#include "tasks/io/files.h"

namespace reel {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string out = "compare.svg", metric = "valid_loss", x = "examples", log = "auto", seeds = "mean", title, names,
              size, font;
};

double x_of(const RunFolder::Row& row, const std::string& x) {
  if (x == "steps") return static_cast<double>(row.step);
  return x == "seconds" ? row.seconds : static_cast<double>(row.examples);
}

std::string words_of_x(const std::string& x) {
  if (x == "steps") return "updates";
  return x == "seconds" ? "seconds of training" : examples_words;
}

int compare(int argc, const char* const* argv) {
  CompareOptions o;
  Options options("compare", "Plots the curves of several runs in one figure: SVG, PNG and PDF.");
  options.arguments("RUN...", o.runs);
  options.add("out", o.out, "figure to write, FILE.svg; FILE.png and FILE.pdf are written next to it", "Figure");
  options.choice("metric", o.metric, curve_metrics(), "metric on the y axis", "Figure");
  options.choice("x", o.x, {"examples", "steps", "seconds"}, "quantity on the x axis", "Figure");
  options.choice("log", o.log, {"auto", "on", "off"},
                 "logarithmic y axis; auto: for losses and norms that span more than a factor of 20", "Figure");
  options.add(
      "title", o.title,
      "title of the figure; empty: the name of the task if all runs have the same, or none with a --size of a column",
      "Figure");
  options.choice("seeds", o.seeds, {"mean", "each"},
                 "runs that differ only in their seeds: mean with a min-max band, or a curve each", "Figure");
  options.add("names", o.names, "names of the runs in the legend, comma-separated; empty: the options that differ",
              "Figure");
  options.add(
      "size", o.size,
      "size in cm, WIDTHxHEIGHT, e.g. 8.4x5.2 for a column of a paper; a long legend makes the picture higher; empty: "
      "23.8x14.3",
      "Figure");
  options.add("font", o.font, "font family, size in points, or both, e.g. Times,9; empty: sans serif", "Figure");
  options.parse(argc, argv);
  if (o.runs.empty()) throw Usage("folders of runs expected, as arguments");
  const std::filesystem::path out = o.out;
  if (out.extension() != ".svg") throw Usage(fmt::format("--out {}: a name that ends with .svg expected", o.out));
  require_output_file("out", o.out, {{"config", options.config()}});
  const std::vector<std::string> names = split_list(o.names);
  if (!names.empty() && names.size() != o.runs.size())
    throw Usage(fmt::format("--names: {} names for {} runs", names.size(), o.runs.size()));

  const PictureStyle style = picture_style("size", o.size, "font", o.font);

  CurvesPicture picture{o.title, words_of_x(o.x), metric_words(o.metric), {}};
  const std::vector<std::string> found = names_of_runs(o.runs, o.seeds == "each");
  std::vector<std::string> tasks, empty;  // tasks: of each curve; not known of a run that has not ended
  std::map<std::pair<std::string, std::string>, std::string> drawn;  // folders by name and options
  std::vector<double> baselines;
  for (std::size_t i = 0; i < o.runs.size(); ++i) {
    const std::string& folder = o.runs[i];
    Curve curve{names.empty() ? found[i] : names[i], {}};
    // With another name the same run is a curve of its own.
    const std::string options = options_text(folder), run = options.empty() ? folder : options;
    const auto [first, is_new] = drawn.try_emplace({curve.name, run}, folder);
    if (!is_new) {
      print_err("compare: left out: {}: has the options and the seed of {}\n", one_line(folder),
                one_line(first->second));
      continue;
    }
    for (const RunFolder::Row& row : RunFolder::view(folder).rows())
      curve.points.emplace_back(x_of(row, o.x), metric_of(row, o.metric));
    std::error_code error;
    const std::string file = folder + "/run.json";  // missing until the run ends
    const auto json = std::filesystem::exists(file, error)
                          ? nlohmann::ordered_json::parse(read_file(file), nullptr, false)
                          : nlohmann::ordered_json();
    if (curve.points.empty()) {
      const bool diverged = json.is_object() && json.contains("diverged_at_step");
      empty.push_back(
          fmt::format("{}: has no validation{}", folder,
                      diverged ? fmt::format("; it diverged at step {}", json["diverged_at_step"].dump()) : ""));
      continue;
    }
    if (std::none_of(curve.points.begin(), curve.points.end(), [](const auto& p) { return std::isfinite(p.second); })) {
      empty.push_back(fmt::format("{}: its metrics.csv has no {}", folder, o.metric));
      continue;
    }
    picture.curves.push_back(curve);
    if (json.is_object() && json.contains("baseline") && json["baseline"].is_number())
      baselines.push_back(json["baseline"]);
    tasks.push_back(text_in(json, "task"));
  }
  if (picture.curves.empty())
    throw Error("compare", fmt::format("no picture {}: there is nothing to draw: {}", o.out, fmt::join(empty, "; ")));
  for (const std::string& what : empty) print_err("compare: left out: {}\n", one_line(what));
  std::set<std::string> different(tasks.begin(), tasks.end());
  different.erase("");
  // a figure for a column of a paper has a caption
  if (picture.title.empty() && different.size() == 1 && !narrow(style)) picture.title = *different.begin();
  for (std::size_t i = 0; different.size() > 1 && names.empty() && i < tasks.size(); ++i)
    if (!tasks[i].empty()) picture.curves[i].name = tasks[i] + ", " + picture.curves[i].name;
  if (o.metric.ends_with("loss") && !baselines.empty() &&
      std::equal(baselines.begin() + 1, baselines.end(), baselines.begin()))
    picture.baseline = baselines.front();  // only if all runs have the same
  if (o.log != "auto") picture.logarithmic = o.log == "on";
  picture.shares = o.metric == "accuracy" && o.log != "on";
  if (const auto problem = draw_curves(o.out, picture, style)) throw Error("compare", *problem);
  print_out("{}\n", one_line(fmt::format("picture: {}, {}, {}", o.out,
                                         std::filesystem::path(o.out).replace_extension(".png").string(),
                                         std::filesystem::path(o.out).replace_extension(".pdf").string())));
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("compare", [&] { return reel::compare(argc, argv); });
}
