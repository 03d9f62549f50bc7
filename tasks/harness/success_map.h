// How often copying by hand-made weights came out right, over numbers of symbols and lengths: the table that
// `mechanism` writes, and its picture (Henaff et al. 2016, Figure 1).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace reel {

class SuccessMap {
 public:
  /// Adds the lines of a table: K, S, planes, T, right, draws; others are passed over.
  void add(const std::string& tsv);
  /// Of all tries.
  std::int64_t right() const;
  std::int64_t draws() const;
  /// The draws of a field, the most there are; 0 for an empty table.
  std::int64_t draws_of_a_field() const;
  /// Draws `svg` and a png beside it; returns one line that says why there is no picture, or nothing.
  std::optional<std::string> draw(const std::string& svg, const std::string& title) const;

 private:
  struct Tries {
    std::int64_t right = 0, draws = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Tries> fields_;  // (K, S)
};

}  // namespace reel
