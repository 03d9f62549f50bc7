// IDX, the file format of MNIST: a header of big-endian numbers, then the elements; plain or packed by gzip.
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

/// The unsigned bytes of an IDX file of the given rank. Throws DataError, which names the data set and the file, when
/// it cannot be read, is not of this kind, or has more or fewer bytes than its header says; memory is asked for no more
/// than it says, and for 2^30 bytes at most.
Idx read_idx(const std::string& set, const std::string& path, int rank);

/// The same from the bytes of a file; set and name are for errors only.
Idx parse_idx(const std::string& set, const std::string& name, std::string_view bytes, int rank);

}  // namespace reel
