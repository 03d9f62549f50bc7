#include "tasks/app/picture_style.h"

#include <fmt/core.h>

#include <cctype>
#include <optional>

#include "engine/core/parse.h"
#include "tasks/app/options.h"

namespace reel {

namespace {

std::optional<double> within(const std::string& text, double low, double high) {
  const std::optional<double> value = parse<double>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

/// Letters and what stands between the words of a name, so that gnuplot and SVG take it for nothing else.
bool is_family(const std::string& text) {
  for (const char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != ' ' && c != '-') return false;
  return !text.empty();
}

}  // namespace

bool narrow(const PictureStyle& style) { return style.width > 0 && style.width <= 12; }

double points_of(const PictureStyle& style) { return style.points > 0 ? style.points : narrow(style) ? 8 : 10.5; }

PictureStyle picture_style(const std::string& size_option, const std::string& size, const std::string& font_option,
                           const std::string& font) {
  PictureStyle style;
  if (!size.empty()) {
    const std::size_t times = size.find('x');
    const auto width = within(size.substr(0, times), 4, 100),
               height = times == size.npos ? std::nullopt : within(size.substr(times + 1), 3, 100);
    if (!width || !height)
      throw Usage(
          fmt::format("--{}: \"{}\" is not WIDTHxHEIGHT in cm, from 4x3 to 100x100. Hint: 8.4x5.2 fits a "
                      "column of a paper",
                      size_option, size));
    style.width = *width;
    style.height = *height;
  }
  if (font.empty()) return style;
  const std::size_t comma = font.find(',');
  const std::string last = comma == font.npos ? font : font.substr(comma + 1);
  const bool sized = comma != font.npos || (!last.empty() && std::isdigit(static_cast<unsigned char>(last[0])));
  const auto points = sized ? within(last, 4, 72) : std::nullopt;
  const std::string family = comma != font.npos ? font.substr(0, comma) : sized ? "" : font;
  if (sized != points.has_value() || (!family.empty() && !is_family(family)) || (family.empty() && comma != font.npos))
    throw Usage(
        fmt::format("--{}: \"{}\" is not a family, a size of 4 to 72 points, or both as Times,9", font_option, font));
  style.font = family;
  style.points = points.value_or(0);
  return style;
}

}  // namespace reel
