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

/// What is known of the run of a curve.
struct Source {
  std::string folder, task;  // task: not known of a run that has not ended
  std::string diverged;      // the step; empty: it did not
  bool left_out = false;     // of the mean of its name
};

/// Says which runs that diverged are left out of the mean of the others of their name, and where a mean ends before one
/// of its runs does.
void tell_means(std::vector<Curve>& curves, std::vector<Source>& sources, const std::string& unit,
                const std::string& hint) {
  std::map<std::string, std::vector<std::size_t>> of_name;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curves[i].counts = sources[i].diverged.empty();
    of_name[curves[i].name].push_back(i);
  }
  const std::vector<bool> out = left_out(curves);
  for (auto& [name, runs] : of_name) {
    for (const std::size_t i : runs) {
      if (!out[i]) continue;
      sources[i].left_out = true;
      print_err("compare: left out of {}: {}: it diverged at step {}{}\n", one_line(name), one_line(sources[i].folder),
                sources[i].diverged, hint);
    }
    std::erase_if(runs, [&](std::size_t i) { return out[i]; });
    std::vector<double> shared = curves[runs.front()].at;
    for (const std::size_t i : runs) {
      std::vector<double> both;
      std::ranges::set_intersection(shared, curves[i].at, std::back_inserter(both));
      shared = std::move(both);
    }
    const auto end_of = [&](std::size_t i) { return curves[i].at.back(); };
    const auto first = std::ranges::min_element(runs, {}, end_of), last = std::ranges::max_element(runs, {}, end_of);
    if (shared.size() < 2 || shared.back() >= end_of(*last)) continue;  // no mean, or one of all
    print_err("compare: {}: the mean ends at {:.15g} {}, with {}; {} goes on to {:.15g}{}\n", one_line(name),
              shared.back(), unit, one_line(sources[*first].folder), one_line(sources[*last].folder), end_of(*last),
              hint);
  }
}

/// Says which values a logarithmic axis does not show; throws Error if it shows none.
void tell_hidden(const std::vector<Curve>& curves, const std::vector<Source>& sources, const std::string& out) {
  const auto hidden = [](const auto& point) { return point.second <= 0; };
  bool shown = false;
  std::string notes;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (sources[i].left_out) continue;
    const auto count = static_cast<std::size_t>(std::ranges::count_if(curves[i].points, hidden));
    shown = shown || count < curves[i].points.size();
    if (count > 0)
      notes += fmt::format(
          "compare: --log on: {} of {} values of {} are not above 0, which a logarithmic axis cannot show\n", count,
          curves[i].points.size(), one_line(sources[i].folder));
  }
  if (!shown) throw Error("compare", fmt::format("no picture {}: --log on: no value is above 0. Hint: --log off", out));
  print_err("{}", notes);
}

/// The curve of a run.
Curve curve_of(const std::vector<RunFolder::Row>& rows, const std::string& name, const CompareOptions& o) {
  Curve curve{name, {}};
  for (const RunFolder::Row& row : rows)
    if (const double x = x_of(row, o.x), y = metric_of(row, o.metric); std::isfinite(x) && std::isfinite(y)) {
      curve.points.emplace_back(x, y);
      curve.at.push_back(o.x == "seconds" ? static_cast<double>(row.step) : x);  // seeds never have the same seconds
    }
  return curve;
}

/// run.json, which is missing until the run ends.
nlohmann::ordered_json record_in(const std::string& folder) {
  std::error_code error;
  const std::string file = folder + "/run.json";
  return std::filesystem::exists(file, error) ? nlohmann::ordered_json::parse(read_file(file), nullptr, false)
                                              : nlohmann::ordered_json();
}

struct Curves {
  std::vector<Curve> all;
  std::vector<Source> sources;     // of each
  std::vector<double> baselines;   // of those that have one
  std::vector<std::string> empty;  // runs without a curve, and why
};

/// The curves of the runs, under these names if there are some.
Curves curves_of(const CompareOptions& o, const std::vector<std::string>& names) {
  Curves out;
  const std::vector<std::string> found = names_of_runs(o.runs, o.seeds == "each");
  std::map<std::pair<std::string, std::string>, std::string> drawn;  // folders by name and options
  for (std::size_t i = 0; i < o.runs.size(); ++i) {
    const std::string &folder = o.runs[i], &name = names.empty() ? found[i] : names[i];
    // With another name the same run is a curve of its own.
    const std::string options = options_text(folder), run = options.empty() ? folder : options;
    const auto [first, is_new] = drawn.try_emplace({name, run}, folder);
    if (!is_new) {
      print_err("compare: left out: {}: has the options and the seed of {}\n", one_line(folder),
                one_line(first->second));
      continue;
    }
    const std::vector<RunFolder::Row> rows = RunFolder::view(folder).rows();
    const Curve curve = curve_of(rows, name, o);
    const auto json = record_in(folder);
    const bool has_diverged = json.is_object() && json.contains("diverged_at_step");
    const std::string diverged = has_diverged ? json["diverged_at_step"].dump() : "";
    if (rows.empty()) {
      out.empty.push_back(fmt::format("{}: has no validation{}", folder,
                                      has_diverged ? fmt::format("; it diverged at step {}", diverged) : ""));
      continue;
    }
    if (curve.points.empty()) {
      out.empty.push_back(fmt::format("{}: its metrics.csv has no {}", folder, o.metric));
      continue;
    }
    out.all.push_back(curve);
    if (json.is_object() && json.contains("baseline") && json["baseline"].is_number())
      out.baselines.push_back(json["baseline"]);
    out.sources.push_back({folder, text_in(json, "task"), diverged});
  }
  return out;
}

/// The tasks that are known.
std::set<std::string> tasks_of(const std::vector<Source>& sources) {
  std::set<std::string> tasks;
  for (const Source& source : sources) tasks.insert(source.task);
  tasks.erase("");
  return tasks;
}

void add_options(Options& options, CompareOptions& o) {
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
  options.add("names", o.names,
              "names of the runs in the legend, comma-separated; empty: the cell and the options that differ",
              "Figure");
  options.add(
      "size", o.size,
      "size in cm, WIDTHxHEIGHT, e.g. 8.4x5.2 for a column of a paper; a long legend makes the picture higher; empty: "
      "23.8x14.3",
      "Figure");
  options.add("font", o.font, "font family, size in points, or both, e.g. Times,9; empty: sans serif", "Figure");
}

/// Throws Usage for options that no figure can have.
void check(const CompareOptions& o, const Options& options) {
  if (o.runs.empty()) throw Usage("folders of runs expected, as arguments");
  if (std::filesystem::path(o.out).extension() != ".svg")
    throw Usage(fmt::format("--out {}: a name that ends with .svg expected", o.out));
  require_output_file("out", o.out, {{"config", options.config()}});
  if (!o.names.empty() && ("," + o.names + ",").find(",,") != std::string::npos)
    throw Usage(fmt::format("--names {}: a name for each run expected, got an empty one", o.names));
  if (const auto names = split_list(o.names); !names.empty() && names.size() != o.runs.size())
    throw Usage(fmt::format("--names: {} names for {} runs", names.size(), o.runs.size()));
}

int compare(int argc, const char* const* argv) {
  CompareOptions o;
  Options options("compare", "Plots the curves of several runs in one figure: SVG, PNG and PDF.");
  add_options(options, o);
  options.parse(argc, argv);
  check(o, options);
  const std::vector<std::string> names = split_list(o.names);
  const PictureStyle style = picture_style("size", o.size, "font", o.font);

  auto [curves, sources, baselines, empty] = curves_of(o, names);
  if (curves.empty())
    throw Error("compare", fmt::format("no picture {}: there is nothing to draw: {}", o.out, fmt::join(empty, "; ")));
  for (const std::string& what : empty) print_err("compare: left out: {}\n", one_line(what));
  CurvesPicture picture{o.title, words_of_x(o.x), metric_words(o.metric), std::move(curves)};
  const std::set<std::string> tasks = tasks_of(sources);
  // a figure for a column of a paper has a caption
  if (picture.title.empty() && tasks.size() == 1 && !narrow(style)) picture.title = *tasks.begin();
  for (std::size_t i = 0; tasks.size() > 1 && names.empty() && i < sources.size(); ++i)
    if (!sources[i].task.empty()) picture.curves[i].name = sources[i].task + ", " + picture.curves[i].name;
  tell_means(picture.curves, sources, o.x == "examples" ? "examples" : "updates",
             names.empty() ? ". Hint: --seeds each" : "");
  if (o.log == "on") tell_hidden(picture.curves, sources, o.out);
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
