// Denormal numbers, those between 0 and 1e-38 (f64: 2e-308). Processors compute with them some 20 to 100 times slower,
// and averages and gradients that decay by half a step or slower get stuck in them.
#pragma once

namespace reel {

/// Sets whether this thread flushes denormals to zero, as XLA and TensorFlow do. Threads that it starts inherit this,
/// and those of the thread pool adopt it while they work for this one. Returns false, and does nothing, on processors
/// that are neither x86-64 nor AArch64.
bool flush_denormals(bool on);

/// Whether this thread flushes denormals to zero.
bool flushes_denormals();

}  // namespace reel
