// What a run is made of, in a few words: ranks compare it with each other, and a resumed run with its beginning.
#pragma once
#include "tasks/app/agreement.h"
#include "tasks/app/run_folder.h"
#include "tasks/app/shared_options.h"
#include "tasks/training/model.h"
#include "tasks/training/task.h"

namespace reel {

/// What the ranks of a run must have in common: programs, options, examples and initial parameters.
Digest digest_of(const std::string& name, const std::string& options, const Task& task, const Shared& s,
                 const Model& model);

/// Keeps sums of some of the data in the folder, data.json. Throws FileError if a run that is resumed began with other
/// data; one of an older version, which kept none, goes on with those that it gets.
void keep_data_sums(const Task& task, std::uint64_t seed, const RunFolder& folder, bool resumed);

}  // namespace reel
