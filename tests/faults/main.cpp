// faults: lets programs of the build fail in many places, and looks whether they end well and nothing is lost.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "tests/faults/campaigns.h"
#include "tests/faults/jobs.h"

using namespace reel::faults;

int main(int argc, char** argv) {
  doctest::Context checks;  // data is written by functions of the tests
  checks.setAsDefaultForAssertsOutOfTestCases();
  setvbuf(stdout, nullptr, _IOLBF, 0);

  Options options;
  std::vector<std::string> jobs;
  CLI::App app("Lets programs fail in many places, and looks whether they end well and nothing is lost.");
  app.require_subcommand(1);
  const std::string all = fmt::format("{}", fmt::join(job_names(), ", "));
  const auto walk = [&](const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("jobs", jobs, "which runs: " + all + "; none: all");
    sub->add_option("--at", options.at, "this call only");
    sub->add_option("--fault", options.fault, "this fault only");
    return sub;
  };
  CLI::App* const calls = walk("calls", "each call on a file fails in turn");
  CLI::App* const memory = walk("memory", "each call for memory fails in turn");
  CLI::App* const kills = app.add_subcommand("kills", "kill -9 at random times");
  kills->add_option("--at", options.at, "this point only");
  for (CLI::App* sub : {calls, memory, kills}) {
    sub->add_option("--points", options.points, "how many, taken at random; 0: all");
    sub->add_option("--seed", options.seed, "which ones");
    sub->add_flag("--verbose", options.verbose, "also print those that end well");
  }
  CLI11_PARSE(app, argc, argv);

  if (kills->parsed()) return random_kills(options);
  int code = 0;
  for (const std::string& name : jobs.empty() ? job_names() : jobs) {
    Workplace place;
    if (!place.with_faults()) {
      fmt::print("skipped: no library that makes calls fail; builds with sanitizers have none\n");
      return 0;
    }
    const Job job = make_job(name, place);
    prepare(job, place);
    const Ended whole = place.start(job.command);
    if (whole.code != 0) {
      fmt::print("{}: fails without a fault: {}", name, whole.err);
      code = 1;
      continue;
    }
    const Files expected = place.files();
    const auto walk_all = calls->parsed() ? walk_calls : walk_memory;
    code |= walk_all(job, place, expected, options);
  }
  return code;
}
