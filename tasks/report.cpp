// Many runs on one page for a browser: curves, with seeds as bands, and tables to sort.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tasks/app/output_file.h"
#include "tasks/app/run.h"
#include "tasks/io/files.h"
#include "tasks/page/compare.h"

namespace reel {
namespace {

/// True for the folder of a sweep with --halving.
bool halves(const std::string& folder) {
  std::error_code error;
  const std::string file = folder + "/sweep.json";
  if (!std::filesystem::exists(file, error)) return false;
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  return json.is_object() && json.contains("halving") && json["halving"] != 0;
}

int report(int argc, const char* const* argv) {
  std::vector<std::string> folders;
  page::Comparison comparison;
  std::string out = "runs.html", best = "auto";
  Options options("report",
                  "Compares runs on one HTML page: curves, seeds as bands, sortable tables.\n"
                  "RUN is a run folder, a sweep folder, or any folder with runs below it.");
  options.arguments("RUN...", folders);
  options.add("out", out, "page to write, FILE.html", "Page");
  options.add("title", comparison.title, "title of the page; empty: the folders", "Page");
  options.add("metric", comparison.metric,
              "metric to compare, a number of metrics.csv or run.json: valid_loss, accuracy, test.accuracy, ..., or "
              "\"best valid_loss\", the lowest",
              "Page");
  options.choice("best", best, {"auto", "lowest", "highest"}, "which value of the metric is best; auto: by its name",
                 "Page");
  options.parse(argc, argv);
  if (folders.empty()) throw Usage("folders of runs expected, as arguments");
  if (!has_ending(out, ".html")) throw Usage(fmt::format("--out {}: a name that ends with .html expected", out));
  require_output_file("out", out, {{"config", options.config()}});
  std::set<std::filesystem::path> taken;  // a folder by another name is not another run
  for (const std::string& folder : folders) {
    const std::vector<page::ComparedRun> below = page::runs_below(folder);
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) throw Error(folder, "does not exist");
    if (below.empty()) throw Error(folder, "holds no run: there is no config.toml in it, nor below it");
    comparison.most_updates_first = comparison.most_updates_first || halves(folder);
    for (const page::ComparedRun& run : below) {
      if (!taken.insert(page::real_path(run.folder)).second) continue;
      const bool lone = below.size() == 1 || folders.size() == 1;
      comparison.runs.push_back({run.folder, lone ? run.name : folder + "/" + run.name});
    }
  }
  if (comparison.title.empty())
    comparison.title = folders.size() == 1 ? folders[0] : fmt::format("{} and others", folders[0]);
  comparison.higher_is_better = best == "auto" ? page::higher_is_better(comparison.metric) : best == "highest";
  comparison.must_have_metric = options.typed("metric");
  const page::NotCompared left_out = page::write_comparison(comparison, out);
  for (const auto* lines : {&left_out.unreadable, &left_out.repeated})
    for (const std::string& line : *lines) print_err("report: left out: {}\n", one_line(line));
  const std::size_t runs = comparison.runs.size() - left_out.unreadable.size() - left_out.repeated.size();
  print_out("page: {}, {} run{}\n", one_line(out), runs, runs == 1 ? "" : "s");
  return left_out.unreadable.empty() ? 0 : 1;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("report", [&] { return reel::report(argc, argv); });
}
