// What every task's main() does: options, model, training, and the last words.
#pragma once
#include <functional>

#include "tasks/harness/options.h"
#include "tasks/harness/task.h"

namespace reel {

struct TaskProgram {
  std::string name, description;
  std::int64_t batch = 20, steps = 2000;        // the defaults
  std::function<void(Options&)> options;        // adds the task's own
  std::function<std::unique_ptr<Task>()> task;  // makes the task from them
};

/// What every main() does around its work: errors become a line on stderr and an exit code: 1 on failure, 2 on bad
/// usage.
int run_program(const std::string& name, const std::function<int()>& body);

/// Adds --device, whose default is the variable's present value.
void add_device(Options& options, std::string& variable);
/// Computes there from now on, if nobody says otherwise; throws Usage when there is no such device.
Backend& use_device(const std::string& name);

/// Runs a task as a program. Returns the exit code: 0, 1 on failure, 2 on bad usage, 130 when interrupted.
int run_task(int argc, const char* const* argv, const TaskProgram& program);

}  // namespace reel
