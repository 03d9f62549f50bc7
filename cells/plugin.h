// Plugins: shared libraries with cells of other projects, loaded while a program runs.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// Loads a shared library whose cells register themselves by REEL_CELL. The program must export the symbols of Reel
/// that it is linked with (CMake's ENABLE_EXPORTS), if Reel is no shared library; Reel's own programs do. What is
/// loaded already is not loaded again. Throws Error naming the file if it is no library, was compiled with other
/// headers than those of this Reel, or has no cell, or one whose name is taken.
void load_plugin(const std::string& path);

/// The absolute paths of the plugins that are loaded.
const std::vector<std::string>& loaded_plugins();

}  // namespace reel
