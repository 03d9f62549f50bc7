// Who looks on at a run of a task: its page, TensorBoard.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tasks/app/observer.h"
#include "tasks/app/shared_options.h"

namespace reel {

/// What looks on, as the options say.
std::vector<std::unique_ptr<Observer>> observers_of(const Shared& s, const RunFolder& folder, const std::string& title,
                                                    const std::string& task);

}  // namespace reel
