// What gzip and zlib packed, no more of it than is asked for.
#pragma once
#include <string>
#include <string_view>

namespace reel {

enum class Unpacked { whole, cut_off, damaged, too_long };

/// True for bytes that start as a gzip file does.
bool is_gzip(std::string_view bytes);

/// Puts into `out` what gzip or zlib packed, gzip members one after the other, but at most `limit` bytes of it. Sums in
/// the packed bytes are compared.
Unpacked unpack(std::string_view packed, std::size_t limit, std::string& out);

}  // namespace reel
