// Which device each of several ranks computes on, and how these send to each other.
#pragma once
#include <string>

#include "tasks/training/ranks.h"

namespace reel {

/// The name of this rank's device: "cuda" becomes the GPU whose number is the rank's place among those of its machine;
/// if there are fewer GPUs, ranks share them.
std::string device_of_rank(const std::string& device, int place);

/// Links the devices of all ranks, if theirs is of a kind that can be linked. Returns a line for the user if it can,
/// but not here; then the host sends what devices have computed. Called by all ranks.
std::string link_devices(Ranks& ranks, Backend& device);

}  // namespace reel
