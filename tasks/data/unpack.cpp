#include "tasks/data/unpack.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "engine/core/error.h"

namespace reel {

namespace {

class Inflater {
 public:
  explicit Inflater(std::string_view packed) {
    REEL_ASSERT(packed.size() <= std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    constexpr int either = 32;  // detects gzip or zlib from the first bytes
    if (inflateInit2(&stream, either + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string_view rest() const { return {reinterpret_cast<const char*>(stream.next_in), stream.avail_in}; }
  z_stream stream{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Unpacked unpack(std::string_view packed, std::size_t limit, std::string& out) {
  Inflater inflater(packed);
  z_stream& stream = inflater.stream;
  unsigned char block[1 << 14];
  out.clear();
  for (;;) {
    stream.next_out = block;
    stream.avail_out = sizeof block;
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return Unpacked::damaged;
    const std::size_t got = sizeof block - stream.avail_out;
    const std::size_t room = limit - out.size();
    out.append(reinterpret_cast<const char*>(block), std::min(got, room));
    if (got > room) return Unpacked::too_long;
    if (code == Z_STREAM_END) {
      if (!is_gzip(inflater.rest())) return Unpacked::whole;
      inflateReset(&stream);
    } else if (got == 0 && stream.avail_in == 0) {
      return Unpacked::cut_off;
    }
  }
}

}  // namespace reel
