// Denormal numbers, those between 0 and 1e-38 (f64: 2e-308). Processors compute with them some 20 to 100 times slower,
// and averages and gradients that decay by half a step or slower get stuck in them.
#pragma once

namespace reel {

/// Says whether this thread takes denormal numbers for 0, as XLA and TensorFlow do. Threads that it starts inherit
/// this, and Reel's own take it over while they work for this one. False on processors for which this is not built.
bool flush_denormals(bool on);

/// Whether this thread takes denormal numbers for 0.
bool flushes_denormals();

}  // namespace reel
