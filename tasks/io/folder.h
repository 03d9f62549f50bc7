// What is in a folder, read whole or not at all.
#pragma once
#include <filesystem>
#include <vector>

namespace reel {

/// What is in a folder, in order of the names; nothing if there is no such folder. Throws Error with the path and the
/// reason if it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace reel
