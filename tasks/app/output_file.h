// Where programs write what their users ask for.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reel {

/// Checks the file that an option names, to be written, before any work: throws Usage if it is one that the program
/// reads, `inputs` by their options, or belongs to a run, as its config.toml and best.safetensors do, and Error if it
/// cannot be written. Empty names are of options not given.
void require_output_file(const std::string& option, const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& inputs);

/// True for a name with this ending, ".html", also in capitals.
bool has_ending(const std::string& path, std::string_view ending);

}  // namespace reel
