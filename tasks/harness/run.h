// What every task's main() does: options, model, training, and the last words.
#pragma once
#include <functional>

#include "tasks/harness/options.h"
#include "tasks/harness/output.h"
#include "tasks/harness/pictures.h"

namespace reel {

/// What a task may want to know of the run that it is made for.
struct Setup {
  std::string data;  // the folder with all data sets
  std::uint64_t seed = 1;
  ExampleOptions examples;
};

/// Where the examples come from: made for each batch; made from a seed once, in parts to train, validate and test on;
/// or a data set of such parts, read from files.
enum class Source { fresh, fixed, files };

struct TaskProgram {
  std::string name, description;
  std::int64_t batch = 20, steps = 2000;  // the defaults
  Source source = Source::fresh;
  std::function<void(Options&)> options;                    // adds the task's own
  std::function<std::unique_ptr<Task>(const Setup&)> task;  // makes the task from them
  /// Makes the model, where it is not a stack of cells.
  std::function<std::unique_ptr<Model>(const Task&, const ModelOptions&, Init)> model = {};
  std::vector<Picture> pictures = {};  // of the task's own
  /// Called at the end of a run that was not interrupted.
  std::function<void(const Task&, const Model&, const RunFolder&)> done = {};
  std::vector<std::string> with_resume = {};  // options of the task's own that may stand beside --resume
};

/// What every main() does around its work: errors become a line on stderr and an exit code: 1 on failure, also of what
/// was printed to stdout to arrive, 2 on bad usage.
int run_program(const std::string& name, const std::function<int()>& body);

/// Adds --device, whose default is the variable's present value.
void add_device(Options& options, std::string& variable);
/// Throws Usage when there is no such device.
Backend& find_device(const std::string& name);
/// The same, and computes there from now on if nobody says otherwise.
Backend& use_device(const std::string& name);

/// Runs a task as a program. Returns the exit code: 0, 1 on failure, 2 on bad usage, 130 when interrupted.
int run_task(int argc, const char* const* argv, const TaskProgram& program);

}  // namespace reel
