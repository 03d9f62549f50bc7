// What the device gives: the measures for what a loop takes.
#pragma once
#include "engine/device/backend.h"

namespace reel::explain {

/// Each 0: not known.
struct Rates {
  double products = 0;              // operations a second of matrix products
  double cache = 0, memory = 0;     // bytes a second, from a cache and from memory
  std::string device;               // that was measured; empty: given by the user
  std::int64_t rows = 0, size = 0;  // of the product [rows, size] x [size, size] that was measured
};

/// Measures the rates of one thread of a device, or of a GPU: products [rows, size] x [size, size] in f32, and sums of
/// two arrays in a cache and in memory.
Rates measure_rates(Backend& device, std::int64_t rows, std::int64_t size);

}  // namespace reel::explain
