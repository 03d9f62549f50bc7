#include "tasks/data/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <memory>

#include "tasks/harness/data_error.h"

namespace reel {

namespace {

constexpr std::size_t largest = std::size_t{1} << 30;  // more than any such set has, less than the memory

/// All bytes of a file, unpacked when it is gzip.
std::vector<std::uint8_t> unpacked(const std::string& set, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw DataError(set, name, "cannot be opened");
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> block(1 << 18);
  int n = 0;
  while ((n = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) {
    bytes.insert(bytes.end(), block.begin(), block.begin() + n);
    if (bytes.size() > largest) throw DataError(set, name, "has more than 2^30 bytes");
  }
  int code = 0;
  const char* text = gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) throw DataError(set, name, "is cut off: the gzip stream has no end");
  if (n < 0 || code != Z_OK) throw DataError(set, name, fmt::format("is damaged ({})", text));
  return bytes;
}

}  // namespace

Idx read_idx(const std::string& set, const std::string& path, int rank) {
  const std::string name = std::filesystem::path(path).filename();
  std::vector<std::uint8_t> bytes = unpacked(set, path);
  const auto number = [&](std::size_t at) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < 4; ++i) v = v << 8 | bytes[at + i];
    return v;
  };
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(rank);
  if (bytes.size() < header)
    throw DataError(set, name, fmt::format("has {} bytes, its header alone {}", bytes.size(), header));
  const std::uint32_t magic = 0x800U + static_cast<std::uint32_t>(rank);  // unsigned bytes, so many axes
  if (number(0) != magic)
    throw DataError(set, name,
                    fmt::format("starts with {:#010x}, not the {:#010x} of IDX with {} axes", number(0), magic, rank));
  Idx idx;
  unsigned __int128 elements = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const std::uint32_t extent = number(4 + 4 * static_cast<std::size_t>(axis));
    idx.shape.push_back(extent);
    elements = elements > largest ? elements : elements * extent;
  }
  if (elements != bytes.size() - header)
    throw DataError(
        set, name,
        fmt::format("holds {} elements, its header says {}", bytes.size() - header, fmt::join(idx.shape, " x ")));
  idx.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return idx;
}

}  // namespace reel
