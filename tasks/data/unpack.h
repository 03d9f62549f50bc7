// Decompresses gzip and zlib data, up to a limit.
#pragma once
#include <string>
#include <string_view>

namespace reel {

enum class Unpacked { whole, cut_off, damaged, too_long };

/// True if the bytes start like a gzip file.
bool is_gzip(std::string_view bytes);

/// Decompresses gzip or zlib data into `out`, with gzip members concatenated, but at most `limit` bytes of it. Verifies
/// the checksums.
Unpacked unpack(std::string_view packed, std::size_t limit, std::string& out);

}  // namespace reel
