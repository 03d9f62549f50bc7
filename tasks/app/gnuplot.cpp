#include "tasks/app/gnuplot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/core/error.h"
#include "tasks/io/files.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

/// Valid UTF-8 without control characters.
std::string printable(const std::string& text) {
  using nlohmann::json;  // it replaces bytes that are not UTF-8
  std::string out = json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

}  // namespace

std::string gnuplot_text(const std::string& text) {
  // Escapes every special character by its octal code: gnuplot runs what is in backquotes even within a string, and its
  // strings in single quotes end at two quotes in a row.
  std::string out;
  for (const char c : printable(text)) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view(" .,:;()+-=/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return "\"" + out + "\"";
}

std::string gnuplot_tick(const std::string& text) {
  std::string format;
  for (const char c : text) format += c == '%' ? "%%" : std::string(1, c);
  return gnuplot_text(format);
}

std::string gnuplot_datum(const std::string& text) {
  std::string out = printable(text);
  std::replace(out.begin(), out.end(), '"', '\'');
  return "\"" + out + "\"";
}

std::optional<std::string> draw_picture(const std::string& svg, const std::string& settings, const std::string& plot,
                                        int width, int height) {
  const auto no_picture = [&](const std::string& why) { return fmt::format("no picture {}: gnuplot {}", svg, why); };
  // Without "set output" pictures go to stdout; -d ignores the user's own settings, which might set one.
  const std::string size = fmt::format("{},{} noenhanced background '#ffffff'", width, height);
  const std::string script = fmt::format(
      "set encoding utf8\n{0}set terminal svg size {1} dynamic font 'Helvetica,Arial,DejaVu Sans,"
      "sans-serif,14'\n{2}\nset terminal pngcairo size {1} font 'sans,11'\n{2}\n",
      settings, size, plot);
  const Spawned drawn = run_child({"gnuplot", "-d"}, script);
  if (!drawn.problem.empty()) return no_picture(drawn.problem);

  constexpr std::string_view svg_end = "</svg>", png_start = "\x89PNG\r\n\x1a\n", png_end = "IEND\xae\x42\x60\x82";
  const std::string_view all = drawn.out;
  const std::size_t start = all.find(png_start), end = all.substr(0, start).rfind(svg_end);
  if (end == all.npos || start == all.npos || !all.starts_with("<?xml") || !all.ends_with(png_end))
    throw Error(svg, "cannot be drawn: gnuplot left half a picture");
  write_atomically(svg, fmt::format("{}\n", all.substr(0, end + svg_end.size())));
  std::error_code error;  // there is no place for a second file next to a device or a pipe
  const bool beside = fs::is_regular_file(svg, error);
  if (error) throw Error(svg, "cannot be looked up: " + error.message());
  if (beside) write_atomically(fs::path(svg).replace_extension(".png"), all.substr(start));
  return std::nullopt;
}

}  // namespace reel
