// Plugins: shared libraries with cells of other projects, loaded while a program runs.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// Loads a shared library whose cells register themselves with REEL_CELL. If Reel is linked statically, the program
/// must export its symbols (CMake's ENABLE_EXPORTS); Reel's own programs do. A loaded library is not loaded again.
/// An initial value of one of its variables that throws ends the process, with a line that names the file.
/// Throws Error naming the file if it is not a library, was compiled with headers of a different Reel, has no cell, or
/// has one whose name is taken.
void load_plugin(const std::string& path);

/// The absolute paths of the loaded plugins.
const std::vector<std::string>& loaded_plugins();

}  // namespace reel
