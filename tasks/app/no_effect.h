// Options on the command line that change nothing: whoever typed them expects that they do.
#pragma once
#include <string>
#include <vector>

#include "tasks/app/shared_options.h"

namespace reel {

/// A line for each such option: "--dropout has no effect: ...". A value that means "without" is none of them, nor is
/// what a preset or a file says, since they may be for several optimisers or models.
std::vector<std::string> without_effect(const Options& options, const Shared& shared, const Task& task,
                                        const TaskProgram& program, const Model& made);

}  // namespace reel
