// Polyphonic music as piano rolls in MATLAB files: cell arrays "traindata", "validdata", "testdata" of matrices [T,
// 88], 1 where a key sounds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reel {

/// A tune: its frames in order, 88 keys each.
using Tune = std::vector<std::uint8_t>;
constexpr std::int64_t piano_keys = 88;

struct Tunes {
  std::vector<Tune> train, valid, test;
};

/// Throws DataError naming the file and the array if an array is missing or malformed.
Tunes read_piano_rolls(const std::string& set, const std::string& path);

}  // namespace reel
