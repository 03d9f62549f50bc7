// Sweeps as tests run them: of small copying tasks, in a folder of their own.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

namespace reel::test {

using Words = std::vector<std::string>;

/// The words of a line.
inline Words words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The fields of a line of a CSV file without quotes.
inline Words fields(const std::string& line) {
  Words out{""};
  for (const char c : line)
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

/// A folder for sweeps.
struct SweepFolder {
  TempDir dir;
  Result sweep(const Words& arguments) const { return run("sweep", arguments, dir.path); }
  nlohmann::json record(const std::string& of) const {
    return nlohmann::json::parse(read_file(dir / of + "/run.json"));
  }
};

/// copying with a grid and so many updates, into the folder `out`.
inline Words small_sweep(const std::string& grid, const std::string& out, const std::string& more,
                         const std::string& steps = "60") {
  Words line{"copying", "--grid", grid, "--out", out};
  for (const std::string& word : words(more)) line.push_back(word);
  for (const std::string& word :
       words("-- --delay 5 --hidden 8 --batch 2 --valid-size 4 --valid-every 20 --steps " + steps))
    line.push_back(word);
  return line;
}

/// A file of commas without its column of seconds: the third of metrics.csv, the last of results.csv.
inline std::string timeless(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (path.ends_with("results.csv")) {
      out += line.substr(0, line.rfind(',')) + "\n";
      continue;
    }
    const std::size_t second = line.find(',', line.find(',') + 1);
    out += line.substr(0, second) + line.substr(line.find(',', second + 1)) + "\n";
  }
  return out;
}

/// The table and the validations of all runs of a sweep, without times, by the names of the files.
inline std::map<std::string, std::string> outcome(const std::string& folder) {
  std::map<std::string, std::string> out{{"results.csv", timeless(folder + "/results.csv")}};
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/runs"))
    out[entry.path().filename()] = timeless(entry.path() / "metrics.csv");
  return out;
}

/// What is in a file below /proc; empty if its process has just ended, for which an iterator would throw.
inline std::string text_in_proc(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

/// Ends at once all processes whose command line names the folder.
inline int kill_processes_of(const std::string& folder) {
  int killed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
    if (text_in_proc(entry.path() / "cmdline").find(folder) != std::string::npos && kill(std::stoi(name), SIGKILL) == 0)
      ++killed;
  }
  return killed;
}

}  // namespace reel::test
