// Where the runs of a campaign take place: a folder with data and one run, a program started in it with a fault
// planned, and what it leaves behind.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/faults/plan.h"

namespace reel::faults {

/// How a program ended.
struct Ended {
  int code = -1;       // exit status, or 128 and the signal
  bool stuck = false;  // it was ended after the time limit
  std::string out, err;

  bool crashed() const { return code >= 128 && code != 130; }
};

/// Whether what a failed program says is a line that starts with its name and a colon, or one for each thing that
/// failed.
bool clear_lines(const std::string& err, const std::string& program);

/// All files of a run by name, without what may differ from run to run: seconds, checksums over them, and who holds the
/// lock.
using Files = std::map<std::string, std::string>;

class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  std::string data() const { return tree() + "/data"; }  // what runs read
  std::string run() const { return tree() + "/run"; }    // what they write
  std::string side() const { return dir_ + "/side"; }

  /// Whether calls can be made to fail: not in a build with sanitizers.
  bool with_faults() const { return !preload_.empty(); }
  /// Makes the run's folder as new: empty, or a copy of another.
  void clear(const std::string& copy_of = "") const;
  /// Runs a program of the build to its end, or kills it after so many seconds (negative: never).
  Ended start(const std::vector<std::string>& command, const Plan& plan = {}, double kill_after = -1);
  /// What the calls of the last program were, and how many of them were made to fail.
  const State& state() const { return *state_; }
  /// The stack of the crash, or of the call that failed, of a plan with `trace`.
  std::string trace() const;
  Files files() const;

 private:
  std::string tree() const { return dir_ + "/tree"; }

  std::string dir_;  // below TMPDIR
  std::string bin_, preload_;
  State* state_ = nullptr;
};

/// Where two ends differ: a line that names the file, and what differs; empty when they are the same.
std::string difference(const Files& expected, const Files& found);

}  // namespace reel::faults
