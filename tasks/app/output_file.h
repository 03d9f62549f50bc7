// Where programs write what their users ask for.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace reel {

/// Checks the file that an option names, to be written, before any work: throws Usage if it is one that the program
/// reads, `inputs` by their options, or belongs to a run, as its config.toml and best.safetensors do, and Error if it
/// cannot be written. Empty names are of options not given.
void require_output_file(const std::string& option, const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& inputs);

}  // namespace reel
