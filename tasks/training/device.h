// Copies between devices: batches are made on the CPU, while models may live elsewhere.
#pragma once
#include "tasks/training/model.h"

namespace reel {

/// Overwrites the elements with those of a tensor of the same dtype and shape on any device.
void fill_from(const Tensor& source, Tensor target);
/// The same values on another device; returns the tensor itself if it is already there, or undefined.
Tensor on(const Tensor& x, Backend& device);
Batch on(const Batch& batch, Backend& device);

}  // namespace reel
