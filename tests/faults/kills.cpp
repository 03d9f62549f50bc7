// kill -9 at random times: the run goes on, is killed again, and has to end as if nothing had happened. Every cell,
// with every optimiser and every schedule of the learning rate, on fresh examples and on a text.
#include <fmt/core.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "cells/cell.h"
#include "tasks/io/files.h"
#include "tasks/training/optimizer.h"
#include "tests/faults/campaigns.h"
#include "tests/faults/jobs.h"

namespace reel::faults {

namespace {

struct Whole {
  Files files;
  double seconds = 0;
};

/// The run of a point: points that follow each other have different cells, and go through all combinations.
Job job_of(std::uint64_t point, const Workplace& place) {
  static const std::vector<std::string> schedules{"constant", "step", "plateau", "window", "cosine", "linear"};
  const auto next = [&point](const std::vector<std::string>& all) {
    const std::string& one = all[point % all.size()];
    point /= all.size();
    return one;
  };
  const std::string cell = next(cell_names()), optimizer = next(OptimizerOptions::kinds()), schedule = next(schedules),
                    program = next({"copying", "charlm"});
  Job job;
  job.name = fmt::format("{} {} {} {}", program, cell, optimizer, schedule);
  job.command = {program,
                 "--cell",
                 cell,
                 "--optimizer",
                 optimizer,
                 "--schedule",
                 schedule,
                 "--lr-every",
                 "20",
                 "--lr-factor",
                 "0.9",
                 "--lr-patience",
                 "1",
                 "--lr-after",
                 "2",
                 "--hidden",
                 "8",
                 "--clip-norm",
                 "1",
                 "--batch",
                 "4",
                 "--steps",
                 "120",
                 "--valid-every",
                 "5",
                 "--threads",
                 "1",
                 "--quiet",
                 "--out",
                 place.run(),
                 "--accumulate",
                 "2",
                 "--warmup",
                 "7",
                 "--weight-decay",
                 "0.001"};
  const std::vector<std::string> more =
      program == "copying"
          ? std::vector<std::string>{"--delay", "5", "--valid-size", "8"}
          : std::vector<std::string>{
                "--text", place.data() + "/text.txt", "--unroll", "10", "--layers", "2", "--dropout", "0.2"};
  job.command.insert(job.command.end(), more.begin(), more.end());
  return job;
}

}  // namespace

int random_kills(const Options& options) {
  Workplace place;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i * i % 23);
  write_atomically(place.data() + "/text.txt", text);

  std::map<std::string, Whole> wholes;
  int kills = 0, before_checkpoint = 0, different = 0, lost = 0;
  const std::uint64_t count = options.points > 0 ? options.points : 1000;
  for (std::uint64_t i = 1; i <= count; ++i) {
    if (options.at > 0 && i != options.at) continue;
    // a seed moves the first combination, too
    const Job job = job_of(i - 1 + 389 * (options.seed - 1), place);
    Whole& whole = wholes[job.name];
    if (whole.files.empty()) {
      prepare(job, place);
      const auto start = std::chrono::steady_clock::now();
      const Ended ended = place.start(job.command);
      whole.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (ended.code != 0) {
        fmt::print("{}: fails without a fault: {}", job.name, ended.err);
        return 1;
      }
      whole.files = place.files();
    }

    std::mt19937_64 random(options.seed * 1'000'003 + i);
    std::uniform_real_distribution<double> time(0, whole.seconds);
    prepare(job, place);
    std::string times;
    Ended ended;
    ended.code = 128 + SIGKILL;
    for (std::uint64_t kill = random() % 3 + 1; kill > 0 && ended.code == 128 + SIGKILL; --kill) {
      const double after = time(random);
      ended = place.start(again(job, place), {}, after);
      if (ended.code != 128 + SIGKILL) break;
      ++kills;
      before_checkpoint += again(job, place) == job.command;
      times += fmt::format(" {:.4f}", after);
    }
    if (ended.code == 0 || ended.code == 128 + SIGKILL) ended = place.start(again(job, place));
    const std::string differs = ended.code == 0 ? difference(whole.files, place.files()) : "";
    lost += ended.code != 0, different += !differs.empty();
    if (options.verbose || ended.code != 0 || !differs.empty())
      fmt::print("--seed {} --at {}: {}, killed after{} s of {:.4f}: exit {}: {}{}\n", options.seed, i, job.name, times,
                 whole.seconds, ended.code, ended.err, differs);
  }
  fmt::print(
      "kills: {} points of {} runs, {} kills, {} of them before the first checkpoint; {} different, {} lost (--seed "
      "{})\n",
      options.at > 0 ? 1 : count, wholes.size(), kills, before_checkpoint, different, lost, options.seed);
  return different + lost > 0 ? 1 : 0;
}

}  // namespace reel::faults
