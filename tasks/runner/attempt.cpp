#include "tasks/runner/attempt.h"

#include <fmt/core.h>
#include <string.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "tasks/app/interrupt.h"
#include "tasks/io/files.h"
#include "tasks/io/spawn.h"
#include "tasks/runner/claim.h"
#include "tasks/runner/program.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

using End = Attempted::End;

/// The lock that a program holds while it writes to the folder.
bool has_lock(const std::string& folder) {
  std::error_code error;
  return fs::exists(folder + "/lock", error);
}

/// Throws Busy if a program writes to the folder: its worker may have been killed, and left it alone. True if one was
/// killed.
bool clear_lock(const std::string& folder) {
  if (!has_lock(folder)) return false;
  const Lock free(folder + "/lock", folder);
  return true;
}

/// Why a program ended, in its own words; the last ones of a program that was killed are about its progress.
std::string problem_of(int code, const std::string& folder) {
  const std::string said = last_line(text_if_there(folder + "/stderr.txt"));
  if (const int signal = code - 128; signal > 0) {
    const std::string killed = fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
    if (signal == SIGKILL) return killed + ", perhaps as memory ran out";
    return signal == SIGABRT && !said.empty() ? killed + ": " + said : killed;
  }
  return said.empty() ? fmt::format("ended with code {}", code) : said;
}

std::vector<std::string> command_of(const Attempt& run) {
  std::error_code error;
  const bool begun =
      fs::exists(run.folder + "/config.toml", error) && fs::exists(run.folder + "/checkpoint.safetensors", error);
  std::vector<std::string> arguments{program_of(run.task)};
  arguments.push_back(begun ? "--resume=" + run.folder : "--out=" + run.out);  // with =: a name may start with -
  const auto& more = begun ? run.with_resume : run.options;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Attempted run_claimed(const Attempt& run, Claim& claim, const std::function<bool(const std::string&)>& waiting) {
  const std::string err = run.folder + "/stderr.txt";
  bool wished = false;
  const auto line = [&]() -> std::string {
    try {
      return last_line(read_end(err, 4096));  // all of it would be much to read so often
    } catch (const Error&) {
      return "";  // it is not there yet, or what it says matters less than that it runs
    }
  };
  const auto stop = [&] {
    claim.renew();
    return wished = waiting(line()) || wished;
  };
  const auto start = std::chrono::steady_clock::now();
  const int code = run_logged(command_of(run), run.folder + "/stdout.txt", err, stop);
  Attempted result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (run.finished()) {
    result.end = End::done;
    if (code == 0) return result;
    if (run.unfinish) run.unfinish();  // all numbers may be there, but not all pictures
  }
  result.end = wished || code == Interrupt::exit_code ? End::interrupted : End::failed;
  if (result.end == End::interrupted) return result;
  clear_lock(run.folder);
  result.problem = code == 0 ? "the program left no result" : problem_of(code, run.folder);
  return result;
}

}  // namespace

Attempted attempt(const Attempt& run, const std::function<bool(const std::string&)>& waiting) {
  try {
    if (!has_lock(run.folder) && run.kept()) {
      clear_dead_claim(run.folder);  // of a worker that was killed after the run's end
      return {End::kept};
    }
    std::error_code error;
    fs::create_directories(run.folder, error);
    if (error) throw Error(run.folder, "cannot be made: " + error.message());
    Claim claim(run.folder);
    const bool killed = clear_lock(run.folder);     // then a file may be missing, even if its numbers are there
    if (!killed && run.kept()) return {End::kept};  // another worker has finished it by now
    return run_claimed(run, claim, waiting);
  } catch (const Busy& e) {
    return {End::taken, e.what()};
  } catch (const Error& e) {
    return {End::failed, e.what()};
  }
}

}  // namespace reel
