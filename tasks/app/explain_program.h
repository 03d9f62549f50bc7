// What a step becomes on its way to kernels: build/bin/explain, and --explain of the programs of tasks.
#pragma once
#include <functional>

#include "tasks/training/model.h"

namespace reel {

/// Runs explain as a program, with all cells that it is linked with. Returns the exit code.
int run_explain(int argc, const char* const* argv);

/// The device that --explain WHAT computes on: `device`, watched. Throws Usage for a WHAT that breaks the rules.
Backend& device_to_explain(const std::string& what, Backend& device);

/// Does what --explain WHAT of a task says: a training step of the model, explained as text or in files. Returns the
/// exit code.
int explain_training_step(const std::string& what, const std::string& title, const Model& model, Backend& device,
                          const std::function<void()>& step);

}  // namespace reel
