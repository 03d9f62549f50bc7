// The values that a sweep tries: "cell=lstm,srnn lr=1e-2,1e-3" as a grid, or drawn at random from lists and ranges.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reel {

/// An option of the task and its values: a list, or a range to draw from.
struct Axis {
  enum class Kind { list, uniform, log, integer };
  std::string option;
  Kind kind = Kind::list;
  std::vector<std::string> values = {};  // of a list
  double low = 0, high = 0;              // of a range
  std::string text = {};                 // as typed
};

/// Options with their values, in the order of the axes: one combination.
using Point = std::vector<std::pair<std::string, std::string>>;

/// Parses "OPTION=VALUE,VALUE OPTION=log(LOW,HIGH)"; a value that holds commas is in parentheses,
/// "cell=lstm,(gru,srnn)". Throws Usage that quotes the part that is wrong.
std::vector<Axis> parse_grid(const std::string& text);

/// Every combination; the last axis varies fastest. Throws Usage if an axis is a range, or there are more than 10,000.
std::vector<Point> all_points(const std::vector<Axis>& axes);
/// So many combinations at random, each a function of seed and number alone, so that more of them begin with the same.
std::vector<Point> drawn_points(const std::vector<Axis>& axes, std::int64_t count, std::uint64_t seed);

/// "cell=lstm,lr=1e-2"
std::string text_of(const Point& point);
/// The same as part of a folder's name: no letter means anything to a shell, and a long text ends in a hash.
std::string folder_name(const Point& point);
/// The words of a command line.
std::vector<std::string> words_of(const Point& point);

}  // namespace reel
