// The plugins of a program: REEL_PLUGINS in the environment names them.
#pragma once
namespace reel {

/// Loads the libraries that REEL_PLUGINS names, with ':' between them (cells/plugin.h). Their paths become absolute
/// there, for the programs that this one starts. Throws Usage for what is no plugin, and Error if two cells, ops or
/// kinds of device of the program itself have one name.
void load_plugins();

/// The end of a message about a cell that does not exist, and that has no name like it.
constexpr const char* plugin_hint = ". Hint: REEL_PLUGINS=FILE.so loads cells of other projects";

}  // namespace reel
