// The walk over the calls for memory of a run: each fails, alone or with all that follow; then the run goes on, and has
// to end as if nothing had happened.
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "tests/faults/campaigns.h"
#include "tests/faults/jobs.h"

namespace reel::faults {

namespace {

constexpr std::uint32_t for_memory = bit(Kind::allocate) | bit(Kind::thread);

struct Point {
  std::uint64_t call;
  bool always;
};

const char* fault_name(const Point& point) { return point.always ? "always" : "once"; }

std::vector<Point> points_of(std::uint64_t first, std::uint64_t calls, const Options& options) {
  std::vector<Point> points;
  for (std::uint64_t i = first; i <= calls; ++i) {
    if (options.at > 0 && i != options.at) continue;
    for (const bool always : {false, true})
      if (options.fault.empty() || options.fault == fault_name({i, always})) points.push_back({i, always});
  }
  return thinned(points, options.points, options.seed);
}

/// The function at an address of a program.
std::string function_at(const std::string& program, const std::string& address) {
  const std::string command = fmt::format("addr2line -fe '{}' {}", program, address);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "re"), pclose);
  char name[256] = "";
  if (pipe) static_cast<void>(std::fgets(name, sizeof name, pipe.get()));
  return name;
}

bool is_of(const std::string& line, std::initializer_list<const char*> libraries) {
  const std::string file = line.substr(line.substr(0, line.find('(')).rfind('/') + 1);
  return std::any_of(libraries.begin(), libraries.end(), [&](const char* name) { return file.starts_with(name); });
}

/// The library that a program crashed in by itself, if it is one that looks at no result of malloc; else nothing. What
/// the standard library crashes of is its caller's.
std::string culprit(const std::string& trace) {
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    if (is_of(line, {"libfaults_preload", "libstdc++", "libc.so", "libgcc_s", "ld-linux"})) continue;
    if (line.starts_with("[0x")) return "libxsmm";  // code made at run time, left in memory that must not be executed
    for (const char* library : {"libopenblas", "libfftw3", "libgomp"})
      if (is_of(line, {library})) return library;
    const std::size_t open = line.find("(+0x"), close = line.find(')');  // the program: PATH(+ADDRESS)[...]
    if (open == std::string::npos) return "";
    const std::string name = function_at(line.substr(0, open), line.substr(open + 2, close - open - 2));
    return name.starts_with("libxsmm_") || name.starts_with("internal_") ? "libxsmm" : "";
  }
  return "";
}

/// How the program took it.
std::string outcome(const Ended& ended, const std::string& program) {
  if (ended.stuck) return "stuck";
  if (ended.code == 128 + SIGABRT) return "abort";
  if (ended.code == 128 + SIGSEGV) return "segfault";
  if (ended.crashed()) return fmt::format("signal {}", ended.code - 128);
  if (ended.code == 0) return "ran through";
  return clear_lines(ended.err, program) ? "clear line" : "unclear";
}

/// The innermost functions of a stack that are not the fault's own: LIBRARY(FUNCTION) < LIBRARY(FUNCTION) ...
std::string innermost(const std::string& trace) {
  std::istringstream lines(trace);
  std::string line, text;
  for (int frames = 0; frames < 8 && std::getline(lines, line);) {
    line = line.substr(line.rfind('/') + 1);
    if (line.starts_with("libfaults_preload") || line.starts_with("libstdc++")) continue;
    text += (frames++ > 0 ? " < " : "") + line.substr(0, line.find(' '));
  }
  return text;
}

}  // namespace

int walk_memory(const Job& job, Workplace& place, const Files& expected, const Options& options) {
  const std::uint64_t calls = place.state().allocations, before_main = place.state().before_main;
  // Before main() the CUDA runtime registers the kernels that are linked in, and looks at no result of malloc.
  const std::vector<Point> points = points_of(REEL_FAULTS_CUDA ? before_main + 1 : 1, calls, options);

  std::map<std::string, int> ends;
  int struck = 0, bad = 0, lost = 0, wrong = 0;
  for (const Point& point : points) {
    Plan plan{.action = Action::fail,
              .memory = true,
              .error = ENOMEM,
              .lasts = point.always ? for_memory : 0,
              .at = point.call};
    const auto broken = [&] {
      prepare(job, place);
      return place.start(job.command, plan);
    };
    const Ended ended = broken();
    struck += place.state().struck > 0;
    std::string end = outcome(ended, job.command[0]);
    std::string trace = place.trace();
    const std::string library = end == "segfault" ? culprit(trace) : "";
    if (!library.empty()) end = "crash in " + library;
    ++ends[end];
    const bool bad_end = library.empty() && end != "ran through" && end != "clear line";
    bad += bad_end;
    const Ended more = place.start(again(job, place));
    const std::string differs = more.code == 0 ? difference(expected, place.files()) : "";
    lost += more.code != 0, wrong += !differs.empty();
    if (bad_end || more.code != 0 || !differs.empty() || options.verbose) {
      fmt::print("{} --at {} --fault {}{}: {}: {}\n", job.name, point.call, fault_name(point),
                 point.call <= before_main ? " (before main)" : "", end, ended.err.substr(0, ended.err.find('\n')));
      if (more.code != 0) fmt::print("  lost: exit {}: {}\n", more.code, more.err);
      if (!differs.empty()) fmt::print("  wrong: {}\n", differs);
    }
    if (bad_end || options.verbose) {
      if (trace.empty()) {
        plan.trace = true;
        broken();
        trace = place.trace();
      }
      fmt::print("  in {}\n", innermost(trace));
    }
  }
  fmt::print("{}: {} allocations, {} before main; {} of {} points struck", job.name, calls, before_main, struck,
             points.size());
  for (const auto& [end, count] : ends) fmt::print(", {} {}", count, end);
  fmt::print("; {} lost, {} wrong\n", lost, wrong);
  return bad + lost + wrong > 0 ? 1 : 0;
}

}  // namespace reel::faults
