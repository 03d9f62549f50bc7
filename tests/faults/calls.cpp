// The walk over the calls of a run: each call on a file fails once, in every way that suits it; then the run goes on,
// and has to end as if nothing had happened.
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/faults/campaigns.h"
#include "tests/faults/jobs.h"

namespace reel::faults {

namespace fs = std::filesystem;

namespace {

template <class... K>
constexpr std::uint32_t bits(K... kinds) {
  return (bit(kinds) | ...);
}

constexpr std::uint32_t all_kinds = bit(Kind::allocate) - 1;
constexpr std::uint32_t takes_room = bits(Kind::create, Kind::write, Kind::sync, Kind::mkdir);
constexpr std::uint32_t changes = takes_room | bits(Kind::rename, Kind::truncate, Kind::unlink);

struct Fault {
  const char* name;
  Action action;
  std::int32_t error;
  std::uint32_t kinds;      // which calls it suits
  std::uint32_t lasts = 0;  // which calls fail from then on
};

constexpr Fault faults[]{
    {"EIO", Action::fail, EIO, all_kinds},
    {"ENOSPC", Action::fail, ENOSPC, changes},
    {"disk-stays-full", Action::fail, ENOSPC, takes_room, takes_room},
    {"EACCES", Action::fail, EACCES,
     bits(Kind::open, Kind::create, Kind::rename, Kind::mkdir, Kind::unlink, Kind::stat, Kind::lock)},
    {"EMFILE", Action::fail, EMFILE, bits(Kind::open, Kind::create)},
    {"EINTR", Action::fail, EINTR,
     bits(Kind::open, Kind::create, Kind::read, Kind::write, Kind::sync, Kind::close, Kind::truncate, Kind::lock)},
    {"half", Action::half, 0, bits(Kind::read, Kind::write)},
    // between calls that change nothing there is nothing that a kill could leave differently
    {"kill-before", Action::kill_before, 0, changes | bit(Kind::close) | bit(Kind::lock)},
    {"kill-after", Action::kill_after, 0, changes},
};

struct Point {
  std::uint64_t call;
  const Fault* fault;
};

/// All points of a run, or those that the options choose.
std::vector<Point> points_of(const State& counted, const Options& options) {
  std::vector<Point> points;
  for (std::uint64_t i = 1; i <= std::min<std::uint64_t>(counted.calls, State::most); ++i) {
    const Call& call = counted.log[i - 1];
    for (const Fault& fault : faults) {
      if ((fault.kinds & bit(call.kind)) == 0) continue;
      if (options.at > 0 && (i != options.at || (!options.fault.empty() && options.fault != fault.name))) continue;
      points.push_back({i, &fault});
    }
  }
  return thinned(points, options.points, options.seed);
}

/// What the last program's call of this number was.
std::string call_of(const Workplace& place, std::uint64_t number) {
  const Call& call = place.state().log[number - 1];
  std::string path = call.path;
  const std::string root = fs::path(place.run()).parent_path();
  if (path.starts_with(root)) path.erase(0, root.size() + 1);
  return fmt::format("{} {}", kind_names[static_cast<std::size_t>(call.kind)], path);
}

/// What is wrong with how the program ended; empty: nothing.
std::string bad_end(const Ended& ended, const Fault& fault, const std::string& program) {
  const bool may_be_killed = fault.action == Action::kill_before || fault.action == Action::kill_after;
  if (ended.stuck) return "stuck";
  if (ended.code == 128 + SIGKILL && may_be_killed) return "";
  if (ended.crashed()) return fmt::format("crash: signal {}: {}", ended.code - 128, ended.err);
  const bool clear = clear_lines(ended.err, program) || ended.out.find("failed: ") != std::string::npos;  // in a table
  if (ended.code != 0 && !clear) return fmt::format("unclear: exit {}: {}", ended.code, ended.err);
  return "";
}

/// What is wrong with the files of a program that says it did all; a picture may be missing where it says so.
std::string bad_success(const Files& expected, Files found, const std::string& err) {
  for (const auto& [name, text] : expected)
    if ((name.ends_with(".svg") || name.ends_with(".png")) && !err.empty() && !found.contains(name)) found[name] = text;
  for (auto file = found.begin(); file != found.end();)
    file =
        expected.contains(file->first) ? std::next(file) : found.erase(file);  // what is left over, the next run clears
  const std::string what = difference(expected, found);
  return what.empty() ? "" : "wrong: exit 0, but " + what;
}

}  // namespace

int walk_calls(const Job& job, Workplace& place, const Files& expected, const Options& options) {
  const std::uint64_t calls = place.state().calls;
  const std::vector<Point> points = points_of(place.state(), options);

  std::map<std::string, int> bad;
  int struck = 0, bad_points = 0;
  for (const Point& point : points) {
    const Plan plan{
        .action = point.fault->action, .error = point.fault->error, .lasts = point.fault->lasts, .at = point.call};
    prepare(job, place);
    const Ended ended = place.start(job.command, plan);
    struck += place.state().struck > 0;
    const std::string call = call_of(place, point.call);
    std::string what = bad_end(ended, *point.fault, job.command[0]);
    if (what.empty() && ended.code == 0) what = bad_success(expected, place.files(), ended.err);
    const std::vector<std::string> command = again(job, place);
    const Ended more = place.start(command);
    if (what.empty() && more.stuck) what = "stuck: when it goes on";
    if (what.empty() && more.code != 0)
      what = fmt::format("lost: goes on with exit {}: {}", more.code, more.err.substr(0, more.err.find('\n')));
    if (what.empty()) {
      const std::string differs = difference(expected, place.files());
      if (!differs.empty()) what = "wrong: in the end " + differs;
    }
    if (options.verbose || !what.empty())
      fmt::print("{} --at {} --fault {}: {}: exit {}: {}\n", job.name, point.call, point.fault->name, call, ended.code,
                 what.empty() ? "good; " + ended.err : what);
    if (what.empty()) continue;
    ++bad_points;
    ++bad[what.substr(0, what.find(':'))];
  }
  fmt::print("{}: {} calls, {} of {} points x faults struck", job.name, calls, struck, points.size());
  for (const char* kind : {"wrong", "lost", "stuck", "crash", "unclear"}) fmt::print(", {} {}", bad[kind], kind);
  fmt::print("\n");
  return bad_points > 0 ? 1 : 0;
}

}  // namespace reel::faults
