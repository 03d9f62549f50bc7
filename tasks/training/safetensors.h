// Tensors in a file of the safetensors format: eight bytes with the length of a JSON header (little endian), the header
// with dtype, shape and byte offsets of each tensor, then the elements. Other programs can read these files.
//
// The format has no c128. Such a tensor is stored as F64 with a last axis of 2 (real, imaginary), and a metadata entry
// "reel.dtype.NAME": "c128" converts it back on reading.
//
// Files that Reel writes have a CRC-32 over all their bytes in the metadata, computed with its own eight digits as
// zeros: "reel.checksum": "crc32", "reel.crc32": "89abcdef". There are two entries, so that a flipped bit in the name
// of one does not make it a file without a checksum. A file with either entry is verified, whoever wrote it; other
// programs' files have none.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace reel {

struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;  // the header's __metadata__, without Reel's own entries
  bool checked = false;                         // it had a checksum, and it was right
  /// The tensor of that name; throws Error that lists the names there are.
  const Tensor& at(const std::string& name) const;
};

/// The bytes of such a file; throws Error like save_safetensors.
std::string safetensors_of(const std::string& path, const TensorFile& file);

/// Replaces the file atomically; throws Error if a name occurs twice, a tensor has no value, or the disk refuses.
void save_safetensors(const std::string& path, const TensorFile& file);

/// Reads a file in the order of its header; throws Error with the path and the cause for any kind of damage.
TensorFile load_safetensors(const std::string& path, Backend& backend = reel::backend());

/// The same from the bytes of a file; `path` is used in errors only.
TensorFile parse_safetensors(const std::string& path, std::string_view bytes, Backend& backend = reel::backend());

}  // namespace reel
