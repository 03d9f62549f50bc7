// How often copying with hand-written weights came out right, by number of symbols and length: the table that
// `mechanism` writes, and its picture (Henaff et al. 2016, Figure 1).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace reel {

class SuccessMap {
 public:
  /// Adds the lines of a table: K, S, planes, T, right, draws; other lines are skipped.
  void add(const std::string& tsv);
  /// Totals over the whole table.
  std::int64_t right() const;
  std::int64_t draws() const;
  /// The largest number of draws in a field; 0 for an empty table.
  std::int64_t draws_of_a_field() const;
  /// Draws `svg` and a png next to it; returns one line saying why there is no picture, or nothing.
  std::optional<std::string> draw(const std::string& svg, const std::string& title) const;

 private:
  struct Tries {
    std::int64_t right = 0, draws = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Tries> fields_;  // (K, S)
};

}  // namespace reel
