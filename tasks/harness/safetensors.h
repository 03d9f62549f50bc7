// Tensors in a file of the safetensors format: eight bytes with the length of a JSON header (little endian), the header
// with dtype, shape and place of each tensor, then the elements. Other programs read these files.
//
// The format has no c128. Such a tensor is stored as F64 with a last axis of 2 (real, imaginary), and the metadata says
// "reel.dtype.NAME": "c128", which turns it back on reading.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace reel {

struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;  // the header's __metadata__
  /// The tensor of that name; throws Error that lists the names there are.
  const Tensor& at(const std::string& name) const;
};

/// Replaces the file at once; throws Error when a name stands twice, a tensor has no value, or the disk refuses.
void save_safetensors(const std::string& path, const TensorFile& file);

/// Reads a file in the order of its header; throws Error with the path and what is wrong for any kind of damage.
TensorFile load_safetensors(const std::string& path, Backend& backend = reel::backend());

}  // namespace reel
