// Everything that registers itself has a unique name: cells, ops and devices.
#pragma once

namespace reel {

/// Throws Error if two cells, two ops or two kinds of device have the same name, or if the settings of a cell cannot be
/// options: names, and defaults of their kinds. Registration runs before main(), where it could not be caught:
/// cell_registry() and every program of tasks/ call this instead.
void check_registries();

}  // namespace reel
