// What a row of a table must show to pass: bounds of its number, and its place beside other rows. Presets say it under
// `expect` (docs/reproducing.md).
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace reel {

/// One side of an order: the number of a row, changed as "NAME * 2" or "NAME + 0.05" says.
struct Term {
  std::string label;
  double factor = 1, offset = 0;
};

struct Order {
  Term left, right;
  bool less = true;  // left < right; otherwise left > right
};

/// Everything that is given must hold. All numbers are in the unit of the row.
struct Expectation {
  std::optional<double> below, above;              // the number is below, above this
  std::optional<double> below_share, above_share;  // the same for the number's share of the baseline
  std::optional<double> within;                    // of the reported number, at most so far away
  std::optional<double> within_share;              // the same as a share of the reported number
  bool diverges = false;                           // every run diverges
  std::vector<Order> orders;                       // this row is the left side of each
  bool empty() const {
    return !below && !above && !below_share && !above_share && !within && !within_share && !diverges && orders.empty();
  }
};

/// The pairs of neighbours in "A < B * 2 < C" or "A > B + 0.1", in words between spaces. Throws Error with the rule
/// that the text breaks.
std::vector<Order> parse_order(const std::string& text);

}  // namespace reel
