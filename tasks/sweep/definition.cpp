#include "tasks/sweep/definition.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tasks/app/options.h"
#include "tasks/io/files.h"
#include "tasks/io/json_fault.h"
#include "tasks/io/output.h"
#include "tasks/page/compare.h"
#include "tasks/runner/pool.h"
#include "tasks/runner/program.h"

namespace reel {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::uint64_t most_bytes = 1 << 28;

std::string file_of(const std::string& folder) { return folder + "/sweep.json"; }

Sweep from_json(const std::string& folder, const Json& json) {
  Sweep s;
  s.folder = folder;
  json.at("task").get_to(s.task);
  json.at("options").get_to(s.fixed);
  json.at("where").get_to(s.where);
  json.at("stop_below").get_to(s.stop_below);
  json.at("halving").get_to(s.halving);
  json.at("rungs").get_to(s.rungs);
  json.at("has_epochs").get_to(s.has_epochs);
  json.at("metric").get_to(s.metric);
  json.at("best").get_to(s.best);
  json.at("threads").get_to(s.threads);
  s.engine = json.at("engine").dump();
  for (const Json& one : json.at("combinations")) {
    Combination c;
    for (const auto& [option, value] : one.at("options").items()) c.point.emplace_back(option, value);
    one.at("updates").get_to(c.updates);
    one.at("validation").get_to(c.validation);
    if (c.updates < 1 || c.validation < 1) throw Error("its numbers of updates are below 1");
    s.combinations.push_back(std::move(c));
  }
  std::set<std::string> names;
  for (const Json& one : json.at("runs")) {
    SweepRun run{one.at("combination"), one.at("seed"), one.at("name")};
    if (run.at >= s.combinations.size() || run.name.find('/') != std::string::npos || run.name.starts_with('.'))
      throw Error("it has a run that cannot be");
    if (!names.insert(run.name).second)
      throw Error(
          fmt::format("two of its runs share the folder {}, so that one has the results of the other", run.name));
    s.runs.push_back(std::move(run));
  }
  const bool halves = s.halving == 0 || (s.halving >= 2 && s.rungs >= 1 && s.rungs <= 20);
  if (s.runs.empty() || !halves || s.threads < 1) throw Error("its numbers cannot be");
  return s;
}

/// "lr=1e-2: said"
std::string named_after(const Combination& c, const std::string& said) {
  return c.point.empty() ? said : text_of(c.point) + ": " + said;
}

/// A hint if the task refuses an option behind -- as a setting of another cell, which it takes from --grid.
std::string grid_hint(const Sweep& sweep, const Combination& c, const std::string& said) {
  if (std::ranges::none_of(c.point, [](const auto& p) { return p.first == "cell"; })) return "";
  for (std::size_t i = 0; i < sweep.fixed.size(); ++i) {
    const std::string& word = sweep.fixed[i];
    const std::size_t equals = word.find('='), dot = word.find('.');
    if (!word.starts_with("--") || dot == std::string::npos || equals < dot) continue;
    const std::string option = word.substr(2, std::min(equals, word.size()) - 2);
    if (said.find(fmt::format("--{}: is not a setting of --cell ", option)) == std::string::npos) continue;
    std::string value = equals < word.size() ? word.substr(equals + 1) : "";
    if (equals == std::string::npos && i + 1 < sweep.fixed.size()) value = sweep.fixed[i + 1];
    if (value.find(',') != std::string::npos) value = "(" + value + ")";
    return fmt::format(". Hint: in --grid, {}={} goes to {} alone", option, value, word.substr(2, dot - 2));
  }
  return "";
}

/// Throws Usage if the runs of a combination cannot go from rung to rung; `said` is what the task says of a whole run.
void check_halving(const Sweep& sweep, std::size_t at, const std::string& said) {
  const std::int64_t warmup = number_behind(said, ", warm-up "), first = sweep.rungs_of({at, 1, ""}).front();
  for (const char* kind : {"cosine", "linear"})
    if (said.find(fmt::format("\nschedule {},", kind)) != std::string::npos)
      throw Usage(
          fmt::format("--schedule {}: falls to the end of the run, and each rung of --halving has another end. "
                      "Hint: --schedule step, or no --halving",
                      kind));
  if (warmup > first)
    throw Usage(
        fmt::format("--warmup: the first rung of --halving has {} updates, got {}. Hint: --warmup {}, or fewer "
                    "--rungs",
                    first, warmup, first));
}

/// "--delay 50 against --delay 60"
[[noreturn]] void differs(const Sweep& stored, const std::string& what, const std::string& had,
                          const std::string& wanted) {
  throw Usage(fmt::format("--out {}: holds a sweep with {} {}, not {}. Hint: another folder; sweep {} goes on with it",
                          stored.folder, what, had.empty() ? "none" : had, wanted.empty() ? "none" : wanted,
                          shell_path(stored.folder)));
}

/// The names of a combination's runs begin with this: "lr=1e-2,". Two long or unusual ones may have one folder_name();
/// the second gets a number behind it.
std::string new_prefix(const Point& point, std::set<std::string>& taken) {
  const std::string name = folder_name(point);
  if (name.empty()) return "";  // it is the only one
  std::string prefix = name + ",";
  for (int i = 2; !taken.insert(prefix).second; ++i) prefix = fmt::format("{}-{},", name, i);
  return prefix;
}

std::string prefix_of(const SweepRun& run) { return run.name.substr(0, run.name.rfind('s')); }

}  // namespace

std::vector<std::int64_t> Sweep::rungs_of(const SweepRun& run) const {
  const auto [point, whole, every] = of(run);
  std::vector<std::int64_t> out;
  for (std::int64_t r = halving > 0 ? rungs : 0; r > 0; --r) {
    const double share = static_cast<double>(whole) / std::pow(static_cast<double>(halving), static_cast<double>(r));
    const auto validations = std::llround(share / static_cast<double>(every));
    const std::int64_t updates = std::min(whole, std::max<std::int64_t>(1, validations) * every);
    out.push_back(std::max(updates, out.empty() ? 1 : out.back()));
  }
  out.push_back(whole);
  return out;
}

std::vector<std::string> Sweep::options_of(const SweepRun& run, std::int64_t updates) const {
  std::vector<std::string> words = fixed;
  for (const std::string& word : words_of(of(run).point)) words.push_back(word);
  words.push_back(fmt::format("--seed={}", run.seed));
  words.push_back(fmt::format("--threads={}", threads));
  if (stop_below > 0) words.push_back(fmt::format("--stop-below={}", stop_below));
  if (halving > 0) {
    words.push_back(fmt::format("--steps={}", updates));
    words.push_back(fmt::format("--valid-every={}", of(run).validation));
    if (has_epochs) words.emplace_back("--epochs=0");
  }
  return words;
}

bool Sweep::higher_is_better() const { return best == "auto" ? page::higher_is_better(metric) : best == "highest"; }

bool holds_sweep(const std::string& folder) {
  std::error_code error;
  return fs::exists(file_of(folder), error);
}

Sweep read_sweep(const std::string& folder) {
  std::error_code error;
  const std::string path = file_of(folder), absolute = fs::absolute(folder, error).lexically_normal().string();
  const std::string text = read_file(path, most_bytes);
  constexpr const char* hint = "Hint: put the file back, or start a new sweep in another folder";
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(path, fmt::format("is damaged: no JSON at {}. {}", json_fault(text), hint));
  try {
    return from_json(absolute.ends_with('/') ? absolute.substr(0, absolute.size() - 1) : absolute, json);
  } catch (const std::exception& e) {  // of the JSON library, or ours
    throw Error(path, fmt::format("is damaged: {}. {}", one_line(json_words(e.what())), hint));
  }
}

void write_sweep(const Sweep& s) {
  Json json{{"task", s.task},       {"options", s.fixed},        {"where", s.where},   {"stop_below", s.stop_below},
            {"halving", s.halving}, {"rungs", s.rungs},          {"metric", s.metric}, {"best", s.best},
            {"threads", s.threads}, {"has_epochs", s.has_epochs}};
  json["engine"] = Json::parse(s.engine.empty() ? "{}" : s.engine);
  json["combinations"] = json["runs"] = Json::array();
  for (const Combination& c : s.combinations) {
    Json options = Json::object();
    for (const auto& [option, value] : c.point) options[option] = value;
    json["combinations"].push_back({{"options", options}, {"updates", c.updates}, {"validation", c.validation}});
  }
  for (const SweepRun& run : s.runs)
    json["runs"].push_back({{"combination", run.at}, {"seed", run.seed}, {"name", run.name}});
  write_atomically(file_of(s.folder), json.dump(1) + "\n");
}

void add_runs(Sweep& sweep, const std::vector<Point>& points, std::int64_t seeds) {
  constexpr std::size_t most = 100'000;
  if (points.size() * static_cast<std::size_t>(seeds) > most)
    throw Usage(fmt::format("--grid, --seeds: these are {} runs; {} at most",
                            points.size() * static_cast<std::size_t>(seeds), most));
  std::set<std::string> taken;
  for (const Point& point : points) {
    sweep.combinations.push_back({point});
    const std::string prefix = new_prefix(point, taken);
    for (std::int64_t seed = 1; seed <= seeds; ++seed)
      sweep.runs.push_back({sweep.combinations.size() - 1, seed, fmt::format("{}s{}", prefix, seed)});
  }
}

Sweep extended(const Sweep& stored, const Sweep& wanted) {
  const auto text = [](const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); };
  if (stored.task != wanted.task) differs(stored, "task", stored.task, wanted.task);
  if (stored.fixed != wanted.fixed) differs(stored, "options", text(stored.fixed), text(wanted.fixed));
  if (stored.stop_below != wanted.stop_below)
    differs(stored, "--stop-below", fmt::format("{}", stored.stop_below), fmt::format("{}", wanted.stop_below));
  if (stored.halving != wanted.halving || (stored.halving > 0 && stored.rungs != wanted.rungs))
    differs(stored, "--halving, --rungs", fmt::format("{}, {}", stored.halving, stored.rungs),
            fmt::format("{}, {}", wanted.halving, wanted.rungs));
  const auto runs_of = [](const Sweep& sweep) {
    std::set<std::pair<Point, std::int64_t>> runs;
    for (const SweepRun& run : sweep.runs) runs.emplace(sweep.of(run).point, run.seed);
    return runs;
  };
  const auto had = runs_of(stored), asked = runs_of(wanted);
  std::set<std::string> taken;
  std::map<Point, std::pair<std::size_t, std::string>> known;  // number and prefix
  for (const SweepRun& run : stored.runs) {
    known[stored.of(run).point] = {run.at, *taken.insert(prefix_of(run)).first};
    if (!asked.contains({stored.of(run).point, run.seed}))
      throw Usage(
          fmt::format("--out {}: holds a sweep with the run {}, which this one has not. Hint: another folder; "
                      "sweep {} goes on with it",
                      stored.folder, run.name, shell_path(stored.folder)));
  }
  Sweep out = wanted;
  out.where = stored.where;
  out.combinations = stored.combinations;
  out.runs = stored.runs;
  for (const SweepRun& run : wanted.runs) {
    const Point& point = wanted.of(run).point;
    if (had.contains({point, run.seed})) continue;
    if (!known.contains(point)) {
      known[point] = {out.combinations.size(), new_prefix(point, taken)};
      out.combinations.push_back(wanted.of(run));
    }
    const auto& [at, prefix] = known[point];
    out.runs.push_back({at, run.seed, fmt::format("{}s{}", prefix, run.seed)});
  }
  return out;
}

std::vector<std::string> check_combinations(Sweep& sweep, std::size_t jobs,
                                            const std::function<bool(std::size_t)>& step) {
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < sweep.combinations.size(); ++i)
    if (sweep.combinations[i].updates == 0) fresh.push_back(i);
  std::atomic<std::size_t> left = fresh.size();
  std::vector<std::vector<std::string>> notes(fresh.size());
  in_parallel(fresh.size(), jobs, [&](std::size_t i) {
    Combination& c = sweep.combinations[fresh[i]];
    std::vector<std::string> words = sweep.fixed;
    for (const std::string& word : words_of(c.point)) words.push_back(word);
    if (sweep.stop_below > 0) words.push_back(fmt::format("--stop-below={}", sweep.stop_below));
    const auto named = [&](const std::string& said) { return named_after(c, said); };
    try {
      const std::string said = dry_run(
          sweep.task, words, [&] { return step(left); }, &notes[i]);
      c.updates = number_behind(said, "\nupdates ");
      c.validation = number_behind(said, ", validation every ");
      if (sweep.halving > 0 && c.updates > 0 && c.validation > 0) check_halving(sweep, fresh[i], said);
    } catch (const Usage& e) {
      throw Usage(named(e.what()) + grid_hint(sweep, c, e.what()));
    } catch (const Error& e) {
      throw Error(named(e.what()));
    }
    if (c.updates < 1 || c.validation < 1)
      throw Usage(fmt::format("{}: is no program that trains, of the same version", sweep.task));
    --left;
  });
  std::set<std::string> known;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < fresh.size(); ++i)
    for (const std::string& note : notes[i])
      if (known.insert(note).second) out.push_back(named_after(sweep.combinations[fresh[i]], note));
  return out;
}

}  // namespace reel
