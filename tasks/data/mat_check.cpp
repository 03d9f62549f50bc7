#include "tasks/data/mat_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "tasks/data/unpack.h"

namespace reel {

namespace {

enum Type : std::uint32_t { int8 = 1, int32 = 5, uint32 = 6, matrix = 14, compressed = 15 };
constexpr int cell_class = 1, char_class = 4, first_number = 6, last_number = 15, complex_flag = 8;
constexpr std::size_t most_bytes = std::size_t{1} << 28;    // of all matrices, decompressed
constexpr std::size_t most_numbers = std::size_t{1} << 26;  // in all matrices; matio takes eight bytes for each

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t w = 0;
  std::memcpy(&w, bytes.data() + at, 4);
  return w;
}

struct Element {
  std::uint32_t type = 0;
  std::string_view data;
};

/// Takes the first element: its type, its size, then that many bytes; up to four bytes may be stored inside the tag.
std::optional<Element> take(std::string_view& rest) {
  constexpr std::size_t tag = 8;
  if (rest.size() < tag) return std::nullopt;
  const std::uint32_t first = word(rest, 0);
  if (const std::uint32_t small = first >> 16; small != 0) {
    if (small > 4) return std::nullopt;
    const Element e{first & 0xffff, rest.substr(4, small)};
    rest.remove_prefix(tag);
    return e;
  }
  const std::size_t size = word(rest, 4);
  if (size > rest.size() - tag) return std::nullopt;
  const Element e{first, rest.substr(tag, size)};
  const std::size_t padded = first == compressed ? size : (size + 7) / 8 * 8;
  rest.remove_prefix(std::min(rest.size(), tag + padded));
  return e;
}

/// Bytes per number of a type; 0 for a type that holds no numbers.
std::size_t width_of(std::uint32_t type) {
  constexpr std::size_t widths[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
  return type < std::size(widths) ? widths[type] : 0;
}

/// Checks matrices, and counts the numbers in all of them.
class Checker {
 public:
  /// True if all parts of a matrix are present and have the sizes that its extents say.
  bool sound(std::string_view rest, int depth = 0) {
    constexpr int deepest = 8;  // nesting of cells
    constexpr std::size_t longest_name = 255, most_axes = 8;
    if (rest.empty()) return true;
    const auto flags = take(rest), extents = take(rest), name = take(rest);
    if (!flags || !extents || !name || depth > deepest) return false;
    if (flags->type != uint32 || flags->data.size() != 8) return false;
    if (extents->type != int32 || extents->data.size() % 4 != 0) return false;
    if (extents->data.size() < 2 * 4 || extents->data.size() > most_axes * 4) return false;
    if (name->type != int8 || name->data.size() > longest_name) return false;
    std::size_t count = 1;
    for (std::size_t at = 0; at < extents->data.size(); at += 4) {
      count *= word(extents->data, at);
      if (count > rest.size()) return false;  // every element takes at least a byte
    }
    const int kind = static_cast<unsigned char>(flags->data[0]);
    if (kind == cell_class) return sound_cells(rest, count, depth);
    const bool numbers = kind == char_class || (kind >= first_number && kind <= last_number);
    return numbers && sound_numbers(rest, count, flags->data[1] & complex_flag ? 2 : 1);
  }
  /// True if valid matrices hold more numbers than the limit.
  bool too_many() const { return numbers_ > most_numbers; }

 private:
  bool sound_cells(std::string_view& rest, std::size_t count, int depth) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto cell = take(rest);
      if (!cell || cell->type != matrix || !sound(cell->data, depth + 1)) return false;
    }
    return true;
  }
  bool sound_numbers(std::string_view& rest, std::size_t count, int parts) {
    for (int part = 0; part < parts; ++part) {
      const auto numbers = take(rest);
      if (!numbers || width_of(numbers->type) == 0 || numbers->data.size() != count * width_of(numbers->type))
        return false;
      numbers_ += count;
    }
    return true;
  }

  std::size_t numbers_ = 0;
};

}  // namespace

std::string mat_damage(std::string_view bytes) {
  constexpr std::size_t header = 128;
  if (bytes.size() < header) return "is not a MATLAB file";
  if (!bytes.starts_with("MATLAB 5.0") || bytes.substr(124, 4) != std::string_view("\x00\x01IM", 4))
    return "is not a MATLAB file of format 5, little-endian. Hint: save it with -v7";
  Checker checker;
  std::size_t unpacked = 0;
  std::string inside;
  for (std::string_view rest = bytes.substr(header); !rest.empty();) {
    const std::size_t at = bytes.size() - rest.size();
    const auto element = take(rest);
    if (!element) return "is cut off";
    std::string_view within = element->data;
    std::uint32_t type = element->type;
    if (type == compressed) {
      const Unpacked result = unpack(within, most_bytes - unpacked, inside);
      if (result == Unpacked::too_long) return fmt::format("unpacks to more than {} bytes", most_bytes);
      if (result != Unpacked::whole)
        return fmt::format("is damaged: bytes {} to {} do not unpack", at + 8, at + 7 + element->data.size());
      unpacked += inside.size();
      std::string_view all = inside;
      const auto only = take(all);
      if (!only || !all.empty()) return fmt::format("is damaged: what is packed at byte {} is no matrix", at + 8);
      within = only->data;
      type = only->type;
    }
    if (type != matrix || !checker.sound(within))
      return fmt::format("is damaged, or holds more than cells and numbers: the matrix at byte {}", at);
    if (checker.too_many()) return fmt::format("holds more than {} numbers", most_numbers);
  }
  return {};
}

}  // namespace reel
