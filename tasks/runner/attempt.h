// One run as a child process, in a folder that records whether it is done: a finished one is not repeated, a broken one
// goes on from its checkpoint, and one that another worker has is left to it.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace reel {

struct Attempt {
  std::string task;                      // the program
  std::vector<std::string> options;      // of a new run, without --out
  std::vector<std::string> with_resume;  // beside --resume
  std::string folder;                    // also gets stdout.txt and stderr.txt
  std::string out;                       // the value of --out: the folder, or a file in it
  std::function<bool()> kept;            // whether the run is done already
  std::function<bool()> finished;        // whether the program, which has ended, left its result
  std::function<void()> unfinish = {};   // makes a run with a result, which ended badly, count as unfinished
};

struct Attempted {
  enum class End { kept, done, failed, interrupted, taken };
  End end = End::failed;
  std::string problem = {};  // why it failed, or who has it
  double seconds = 0;        // that the program ran
};

/// Starts or resumes a run, unless it is done. While it runs, `waiting` is called with the last line of the program's
/// messages, and returns true to request a stop. Never throws for what the program does.
Attempted attempt(const Attempt& run, const std::function<bool(const std::string&)>& waiting);

}  // namespace reel
