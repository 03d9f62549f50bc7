#include "tasks/data/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tasks/data/data_error.h"
#include "tasks/data/unpack.h"

namespace reel {

namespace {

constexpr std::size_t largest = std::size_t{1} << 30;  // more than any such data set has, less than the memory

/// The first `limit` bytes of a file (all of them if it has fewer), decompressed if it is gzip, and whether there are
/// more.
std::pair<std::string, bool> first_bytes(const std::string& set, const std::string& name, std::string_view bytes,
                                         std::size_t limit) {
  if (!is_gzip(bytes)) return {std::string(bytes.substr(0, limit)), bytes.size() > limit};
  std::string out;
  const Unpacked result = unpack(bytes, limit, out);
  if (result == Unpacked::cut_off) throw DataError(set, name, "is cut off: the gzip stream has no end");
  if (result == Unpacked::damaged) throw DataError(set, name, "is damaged: it does not unpack");
  return {std::move(out), result == Unpacked::too_long};
}

}  // namespace

Idx read_idx(const std::string& set, const std::string& path, int rank) {
  const std::string name = std::filesystem::path(path).filename();
  return parse_idx(set, name, read_data(set, name, path, largest), rank);
}

Idx parse_idx(const std::string& set, const std::string& name, std::string_view bytes, int rank) {
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(rank);
  const std::string head = first_bytes(set, name, bytes, header).first;
  const auto number = [&](std::size_t at) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<std::uint8_t>(head[at + i]);
    return v;
  };
  if (head.size() < header)
    throw DataError(set, name, fmt::format("has {} bytes, its header alone {}", head.size(), header));
  const std::uint32_t magic = 0x800U + static_cast<std::uint32_t>(rank);  // unsigned bytes, `rank` axes
  if (number(0) != magic)
    throw DataError(set, name,
                    fmt::format("starts with {:#010x}, not the {:#010x} of IDX with {} axes", number(0), magic, rank));
  Idx idx;
  std::size_t elements = 1;
  bool too_many = false;
  for (int axis = 0; axis < rank; ++axis) {
    idx.shape.push_back(number(4 + 4 * static_cast<std::size_t>(axis)));
    too_many = __builtin_mul_overflow(elements, static_cast<std::size_t>(idx.shape.back()), &elements) || too_many;
  }
  const std::string says = fmt::format("its header says {}", fmt::join(idx.shape, " x "));
  if (too_many || elements > largest) throw DataError(set, name, says + ", more than 2^30 elements");
  const auto [all, more] = first_bytes(set, name, bytes, header + elements);
  if (more) throw DataError(set, name, fmt::format("holds more than {} elements, {}", elements, says));
  if (all.size() != header + elements)
    throw DataError(set, name, fmt::format("holds {} elements, {}", all.size() - header, says));
  idx.values.assign(all.begin() + static_cast<std::ptrdiff_t>(header), all.end());
  return idx;
}

}  // namespace reel
