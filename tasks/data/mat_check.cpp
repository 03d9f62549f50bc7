#include "tasks/data/mat_check.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace reel {

namespace {

enum Type : std::uint32_t { matrix = 14, compressed = 15 };
constexpr int cell_class = 1, char_class = 4, first_number = 6, last_number = 15, complex_flag = 8;

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t w = 0;
  std::memcpy(&w, bytes.data() + at, 4);
  return w;
}

struct Element {
  std::uint32_t type = 0;
  std::string_view data;
};

/// Takes the element at the front: its type, its size, then so many bytes; or, of up to four bytes, all in one place.
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

/// Bytes of a number of a type; 0 for what holds none.
std::size_t width_of(std::uint32_t type) {
  constexpr std::size_t widths[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
  return type < std::size(widths) ? widths[type] : 0;
}

/// True when the parts of a matrix are all there, and as many as its extents say.
bool sound(std::string_view rest, int depth) {
  if (rest.empty()) return true;
  const auto flags = take(rest), extents = take(rest), name = take(rest);
  if (!flags || !extents || !name || flags->data.size() < 8 || depth == 0) return false;
  std::size_t count = 1;
  for (std::size_t at = 0; at + 4 <= extents->data.size(); at += 4) {
    count *= word(extents->data, at);
    if (count > rest.size()) return false;  // none takes less than a byte
  }
  const int kind = static_cast<unsigned char>(flags->data[0]);
  if (kind == cell_class) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto cell = take(rest);
      if (!cell || cell->type != matrix || !sound(cell->data, depth - 1)) return false;
    }
  } else if (kind == char_class || (kind >= first_number && kind <= last_number)) {
    for (int parts = flags->data[1] & complex_flag ? 2 : 1; parts > 0; --parts) {
      const auto numbers = take(rest);
      if (!numbers || width_of(numbers->type) == 0 || numbers->data.size() != count * width_of(numbers->type))
        return false;
    }
  }
  return true;
}

/// What zlib unpacks the bytes to; nothing when it cannot go to their end or the checksum there is wrong.
std::optional<std::string> unpacked(std::string_view packed) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  std::string out;
  unsigned char block[1 << 14];
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<unsigned>(packed.size());
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = block;
    stream.avail_out = sizeof block;
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(reinterpret_cast<const char*>(block), sizeof block - stream.avail_out);
  }
  inflateEnd(&stream);
  return code == Z_STREAM_END ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

std::string mat_damage(const std::string& bytes) {
  constexpr std::size_t header = 128;
  constexpr int depth = 8;  // of cells within cells
  if (bytes.size() < header) return "is not a MATLAB file";
  if (bytes.compare(126, 2, "IM") != 0 || bytes.compare(0, 10, "MATLAB 5.0") != 0) return {};  // IM: little-endian
  for (std::string_view rest = std::string_view(bytes).substr(header); !rest.empty();) {
    const std::size_t at = bytes.size() - rest.size();
    const auto element = take(rest);
    if (!element) return "is cut off";
    std::optional<std::string> inside;
    std::string_view within = element->data;
    if (element->type == compressed) {
      inside = unpacked(element->data);
      if (!inside)
        return fmt::format("is damaged: bytes {} to {} do not unpack", at + 8, at + 7 + element->data.size());
      within = *inside;
      const auto only = take(within);
      if (!only) return fmt::format("is damaged: what is packed at byte {} is cut off", at + 8);
      if (only->type != matrix) continue;
      within = only->data;
    } else if (element->type != matrix) {
      continue;
    }
    if (!sound(within, depth)) return fmt::format("is damaged: the matrix at byte {} is not what it says it is", at);
  }
  return {};
}

}  // namespace reel
