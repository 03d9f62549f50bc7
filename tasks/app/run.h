// What every task's main() does: options, model, training, and the final output.
#pragma once
#include <functional>

#include "tasks/app/options.h"
#include "tasks/app/pictures.h"
#include "tasks/io/output.h"

namespace reel {

/// What a task may need to know about its run.
struct Setup {
  std::string data;  // --data: the folder of all data sets, or what TaskProgram::data says
  std::uint64_t seed = 1;
  ExampleOptions examples;
  std::string init_from = {};  // --init-from of a new run
};

/// Where the examples come from: generated for each batch; generated once from a seed, in training, validation and test
/// parts; or read from the files of a data set with such parts.
enum class Source { fresh, fixed, files };

/// An option that changes nothing as the task's other options are, and why: "--sample is 0".
struct Idle {
  std::string option;
  bool idle;
  std::string why;
};

struct TaskProgram {
  std::string name, description;
  std::int64_t batch = 20, steps = 2000;  // the defaults
  Source source = Source::fresh;
  std::function<void(Options&)> options;                    // adds the task's own
  std::function<std::unique_ptr<Task>(const Setup&)> task;  // makes the task from these options
  /// Makes the model if it is not a stack of cells.
  std::function<std::unique_ptr<Model>(const Task&, const ModelOptions&, Init)> model = {};
  std::vector<Picture> pictures = {};  // the task's own
  std::string data = {};               // what --data is, in --help; empty: the folder of all data sets
  /// Called before training, when the run folder is there, new or resumed; returns a line for the user, or nothing.
  std::function<std::string(const Task&, const RunFolder&, bool resumed)> begun = {};
  bool begun_checks_data = false;  // it refuses a resumed run with other data; otherwise run_task does
  std::function<std::vector<std::string>(const Task&)> notes = {};  // what the user should know beforehand
  /// Called at the end of a run that was not interrupted.
  std::function<void(const Task&, const Model&, const RunFolder&)> done = {};
  std::vector<std::string> with_resume = {};  // the task's own options that are allowed with --resume
  /// The options that may have no effect, as the parsed options are: whoever types one that is idle gets a note.
  std::function<std::vector<Idle>()> idle = {};
};

/// What every main() does around its work. Errors become a line on stderr and an exit code: 1 on failure, including
/// output to stdout that did not arrive, 2 on bad usage.
int run_program(const std::string& name, const std::function<int()>& body);
/// The same of a program that may be one of several ranks (launch.h).
int run_program_of_ranks(const std::string& name, const std::function<int()>& body);

/// Adds --device, whose default is the variable's current value.
void add_device(Options& options, std::string& variable);
/// The device of this name; throws Usage if there is none.
Backend& find_device(const std::string& name);
/// The same, and makes it the default device.
Backend& use_device(const std::string& name);

/// Runs a task as a program. Returns the exit code: 0, 1 on failure, 2 on bad usage, 130 when interrupted.
int run_task(int argc, const char* const* argv, const TaskProgram& program);

}  // namespace reel
