// IDX, the file format of MNIST: a header of big-endian integers, then the elements; plain or gzipped.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

struct Idx {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// Reads the unsigned bytes of an IDX file of the given rank. Throws DataError naming the data set and the file if it
/// cannot be read, is of another kind, or has more or fewer bytes than its header says. Allocates no more than the
/// header says, and at most 2^30 bytes.
Idx read_idx(const std::string& set, const std::string& path, int rank);

/// The same from the bytes of a file; set and name are used in errors only.
Idx parse_idx(const std::string& set, const std::string& name, std::string_view bytes, int rank);

}  // namespace reel
