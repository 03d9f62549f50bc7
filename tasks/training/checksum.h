// A checksum of tensors, by which processes compare what they have.
#pragma once
#include <string>

#include "engine/core/tensor.h"

namespace reel {

/// The CRC-32 of the elements of these tensors, one after the other, as 8 digits; undefined ones are left out.
std::string checksum(const Tensors& tensors);

}  // namespace reel
