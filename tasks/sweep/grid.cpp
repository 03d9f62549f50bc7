#include "tasks/sweep/grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/core/parse.h"
#include "ops/functors/philox.h"
#include "tasks/app/option.h"
#include "tasks/app/options.h"
#include "tasks/runner/program.h"

namespace reel {

namespace {

constexpr std::size_t most_points = 10'000;

/// Splits at each of `separators` that is not within parentheses; empty parts are kept if `empty`.
std::vector<std::string> split(const std::string& text, const std::string& separators, bool empty) {
  std::vector<std::string> out{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) break;
    if (depth == 0 && separators.find(c) != std::string::npos)
      out.emplace_back();
    else
      out.back() += c;
  }
  if (depth != 0) throw Usage(fmt::format("--grid: \"{}\" has parentheses that do not match", text));
  if (!empty) std::erase(out, "");
  return out;
}

/// KIND(LOW,HIGH), or nothing if the text has another form.
std::optional<Axis> range_of(const std::string& option, const std::string& text) {
  constexpr std::pair<const char*, Axis::Kind> kinds[] = {
      {"uniform(", Axis::Kind::uniform}, {"log(", Axis::Kind::log}, {"int(", Axis::Kind::integer}};
  for (const auto& [start, kind] : kinds) {
    if (!text.starts_with(start) || !text.ends_with(')')) continue;
    const std::string inside = text.substr(std::string(start).size(), text.size() - std::string(start).size() - 1);
    const auto parts = split(inside, ",", true);
    const auto low = parse<double>(parts.front()), high = parse<double>(parts.back());
    const bool good = parts.size() == 2 && low && high && std::isfinite(*low) && std::isfinite(*high) && *low < *high;
    if (!good || (kind == Axis::Kind::log && *low <= 0) ||
        (kind == Axis::Kind::integer &&
         (*low != std::floor(*low) || *high != std::floor(*high) || std::abs(*low) > 1e15 || std::abs(*high) > 1e15)))
      throw Usage(fmt::format("--grid: {}={}: {}LOW,HIGH) expected, with {} LOW < HIGH", option, text, start,
                              kind == Axis::Kind::log       ? "0 <"
                              : kind == Axis::Kind::integer ? "integers"
                                                            : "numbers"));
    return Axis{option, kind, {}, *low, *high, text};
  }
  return std::nullopt;
}

Axis axis_of(const std::string& part) {
  const std::size_t equals = part.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == part.size())
    throw Usage(fmt::format("--grid: \"{}\" is not of the form OPTION=VALUE,VALUE", part));
  const std::string option =
      part.substr(std::min(part.find_first_not_of('-'), equals), equals - part.find_first_not_of('-'));
  const std::string text = part.substr(equals + 1);
  if (option.empty()) throw Usage(fmt::format("--grid: \"{}\" is not of the form OPTION=VALUE,VALUE", part));
  if (const auto range = range_of(option, text)) return *range;
  Axis axis{option, Axis::Kind::list, {}, 0, 0, text};
  for (std::string value : split(text, ",", true)) {
    if (value.starts_with('(') && value.ends_with(')')) value = value.substr(1, value.size() - 2);
    if (value.empty()) throw Usage(fmt::format("--grid: {}={}: has an empty value", option, text));
    const auto number = parse<double>(value);
    const auto same = [&](const std::string& other) {
      return other == value || (number && number == parse<double>(other));
    };
    if (const auto found = std::find_if(axis.values.begin(), axis.values.end(), same); found != axis.values.end())
      throw Usage(fmt::format("--grid: {}={}: has {} twice{}", option, text, *found,
                              *found == value ? "" : ", also as " + value));
    axis.values.push_back(value);
  }
  return axis;
}

/// The cell that an option is a setting of, "srnn" of srnn.width; empty for others.
std::string cell_of(const std::string& option) {
  const std::size_t dot = option.find('.');
  return dot == std::string::npos ? "" : option.substr(0, dot);
}

/// Throws Usage for a setting of a cell that is no value of the axis cell: no combination would keep it.
void check_settings(const std::vector<Axis>& axes) {
  const auto cells = std::ranges::find(axes, "cell", &Axis::option);
  if (cells == axes.end()) return;
  std::vector<std::string> known;
  for (const std::string& value : cells->values)
    for (const std::string& cell : split_list(value)) known.push_back(cell);
  for (const Axis& axis : axes)
    if (const std::string cell = cell_of(axis.option); !cell.empty() && std::ranges::find(known, cell) == known.end())
      throw Usage(fmt::format("--grid: {}={}: {} is not among cell={}{}", axis.option, axis.text, cell, cells->text,
                              nearest_hint(cell, known)));
}

/// Without settings of cells that the combination does not have, such as srnn.width beside cell=lstm.
Point without_other_cells(Point point) {
  const auto cell = std::find_if(point.begin(), point.end(), [](const auto& p) { return p.first == "cell"; });
  if (cell == point.end()) return point;
  const std::vector<std::string> chosen = split_list(cell->second);
  std::erase_if(point, [&](const auto& p) {
    const std::string of = cell_of(p.first);
    return !of.empty() && std::ranges::find(chosen, of) == chosen.end();
  });
  return point;
}

void add_new(std::vector<Point>& points, Point point) {
  point = without_other_cells(std::move(point));
  if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(std::move(point));
}

/// Digits for values of a range: four, as a user would type them, but where these tell fewer than 50 values apart, as
/// many as tell 1000 apart.
int digits_of(const Axis& axis) {
  const double size = (std::abs(axis.low) + std::abs(axis.high)) / 2;
  const auto values = [&](int digits) {
    return (axis.high - axis.low) / std::pow(10, std::floor(std::log10(size)) + 1 - digits);
  };
  int digits = 4;
  if (values(digits) < 50)
    while (digits < 17 && values(digits) < 1000) ++digits;
  return digits;
}

/// The text of a number in a range; rounding does not leave the range.
std::string number_in(const Axis& axis, double value) {
  const std::string text = fmt::format("{:.{}g}", value, digits_of(axis));
  const double rounded = parse<double>(text).value_or(value);
  return rounded < axis.low || rounded > axis.high ? fmt::format("{}", rounded < axis.low ? axis.low : axis.high)
                                                   : text;
}

/// The value at `share` in [0, 1) of an axis.
std::string value_at(const Axis& axis, double share) {
  switch (axis.kind) {
    case Axis::Kind::list:
      return axis.values[static_cast<std::size_t>(share * static_cast<double>(axis.values.size()))];
    case Axis::Kind::uniform:
      return number_in(axis, axis.low + share * (axis.high - axis.low));
    case Axis::Kind::log:
      return number_in(axis, axis.low * std::pow(axis.high / axis.low, share));
    case Axis::Kind::integer:
      return fmt::format("{:.0f}", std::min(axis.low + std::floor(share * (axis.high - axis.low + 1)), axis.high));
  }
  return "";
}

}  // namespace

std::vector<Axis> parse_grid(const std::string& text) {
  std::vector<Axis> axes;
  for (const std::string& part : split(text, " \t\n", false)) {
    axes.push_back(axis_of(part));
    const auto same = [&](const Axis& a) { return a.option == axes.back().option; };
    if (std::count_if(axes.begin(), axes.end(), same) > 1)
      throw Usage(fmt::format("--grid: has {} twice. Hint: {}=VALUE,VALUE", axes.back().option, axes.back().option));
  }
  check_settings(axes);
  return axes;
}

std::vector<Point> all_points(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    if (axis.kind != Axis::Kind::list)
      throw Usage(fmt::format("--grid: {}={}: is a range to draw from. Hint: --sample N", axis.option, axis.text));
    count *= axis.values.size();
    if (count > most_points) throw Usage(fmt::format("--grid: has more than {} combinations", most_points));
  }
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i) {
    Point point(axes.size());
    std::size_t rest = i;
    for (std::size_t a = axes.size(); a-- > 0; rest /= axes[a].values.size())
      point[a] = {axes[a].option, axes[a].values[rest % axes[a].values.size()]};
    add_new(points, std::move(point));
  }
  return points;
}

std::vector<Point> drawn_points(const std::vector<Axis>& axes, std::int64_t count, std::uint64_t seed) {
  std::vector<Point> points;
  for (std::int64_t i = 0; i < count; ++i) {
    Point point;
    for (std::size_t a = 0; a < axes.size(); ++a)  // a stream for each axis
      point.emplace_back(axes[a].option, value_at(axes[a], uniform_at(seed, a, static_cast<std::uint64_t>(i))));
    add_new(points, std::move(point));
  }
  return points;
}

std::string text_of(const Point& point) {
  std::string out;
  for (const auto& [option, value] : point) out += fmt::format("{}{}={}", out.empty() ? "" : ",", option, value);
  return out;
}

std::string folder_name(const Point& point) {
  constexpr std::size_t longest = 120;
  const std::string text = text_of(point);
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_-.,=+").find(c) != std::string_view::npos;
    name += plain ? c : '_';
  }
  if (name == text && name.size() <= longest) return name;
  return fmt::format("{}-{}", name.substr(0, longest), mark_of(words_of(point)));
}

std::vector<std::string> words_of(const Point& point) {
  std::vector<std::string> words;
  for (const auto& [option, value] : point) words.push_back(fmt::format("--{}={}", option, value));
  return words;
}

}  // namespace reel
