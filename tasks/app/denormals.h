// Denormal numbers, those between 0 and 1e-38 (f64: 2e-308). Processors compute with them some 20 to 100 times slower,
// and averages and gradients that decay by half a step or slower get stuck in them.
#pragma once

namespace reel {

/// Says whether this thread, and all that it starts from now on, takes denormal numbers for 0, as XLA and TensorFlow
/// do. False on processors for which this is not built.
bool flush_denormals(bool on);

}  // namespace reel
