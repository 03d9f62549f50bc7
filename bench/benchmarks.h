// Programs made of Google Benchmark's benchmarks: options, --help and errors as in all others.
#pragma once
#include <benchmark/benchmark.h>

#include <regex>
#include <string>
#include <vector>

#include "tasks/app/run.h"

namespace reel::bench {

/// The work of a main(): adds --filter and --budget to the program's own options, and runs what `add_benchmarks`
/// registers. Arguments that start with --benchmark_ go to Google Benchmark.
inline int run_benchmarks(int argc, char** argv, Options& options, const std::function<void()>& add_benchmarks) {
  std::string filter = ".";
  double budget = 0.5;
  options.add("filter", filter, "a regular expression: run the benchmarks whose names have a match", "Run");
  options.add("budget", budget, "seconds a benchmark, but at least one round", "Run", Bounds{.low = 0, .high = 1e4});
  std::vector<std::string> words{argv[0]};
  std::vector<const char*> own{argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).starts_with("--benchmark_"))
      words.emplace_back(argv[i]);
    else
      own.push_back(argv[i]);
  }
  options.parse(static_cast<int>(own.size()), own.data());
  try {
    const std::regex valid(filter.substr(filter.starts_with('-') ? 1 : 0), std::regex::extended);  // -: all others
  } catch (const std::regex_error& e) {
    throw Usage(fmt::format("--filter \"{}\": {}", filter, e.what()));
  }
  words.insert(words.begin() + 1, {"--benchmark_filter=" + filter, fmt::format("--benchmark_min_time={}", budget)});

  std::vector<char*> theirs;
  for (std::string& word : words) theirs.push_back(word.data());
  int count = static_cast<int>(theirs.size());
  add_benchmarks();
  benchmark::Initialize(&count, theirs.data());
  if (count > 1) throw Usage(fmt::format("{}: there is no such option. See --help.", theirs[1]));
  if (benchmark::RunSpecifiedBenchmarks() == 0)
    throw Usage(fmt::format("--filter: no name has a match of \"{}\"", filter));
  return 0;
}

}  // namespace reel::bench
