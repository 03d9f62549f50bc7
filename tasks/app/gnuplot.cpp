#include "tasks/app/gnuplot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <vector>

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

std::size_t letters_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string shortened(const std::string& text, std::size_t most) {
  const std::size_t letters = letters_of(text);
  if (letters <= most) return text;
  const std::size_t first = most / 2, last = letters - (most - 1 - first);
  std::string out;
  std::size_t number = 0;  // of letters up to this one
  for (const char c : text) {
    if ((c & 0xc0) != 0x80 && ++number == first + 1) out += "…";
    if (number <= first || number > last) out += c;
  }
  return out;
}

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

std::pair<std::string, int> gnuplot_lines(const std::string& text, double letters) {
  std::vector<std::string> lines{""};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (static_cast<double>(letters_of(line + " " + word)) <= letters)
      line += " " + word;
    else
      lines.push_back(word);
  }
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : " . \"\\n\" . ") + gnuplot_text(line);
  return {out, static_cast<int>(lines.size())};
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

namespace {

/// What the plot's own text of 14 pixels, and its lines, are multiplied by.
double scale_of(const PictureStyle& style) { return points_of(style) * 96 / 72 / 14; }

/// The commands that draw the picture three times, as SVG, PNG and PDF.
std::string script_of(const Drawing& drawing, const PictureStyle& style) {
  const auto [width, height] = pixels_of(drawing, style);
  const double scale = scale_of(style);
  constexpr double dense = 2;  // pixels of the PNG for one of the screen
  const std::string common = "noenhanced background '#ffffff'";
  // An SVG has no size of its own: a larger canvas makes its text smaller. Families are for a browser, which has no
  // "sans".
  const std::string svg =
      fmt::format("set terminal svg size {:.0f},{:.0f} {} dynamic font '{}Helvetica,Arial,DejaVu Sans,sans-serif,14'",
                  width / scale, height / scale, common, style.font.empty() ? "" : style.font + ",");
  // cairo's terminals take pixels for points, and draw lines and marks in units of their own
  const std::string font = fmt::format("font '{},14'", style.font.empty() ? "sans" : style.font);
  const std::string png =
      fmt::format("set terminal pngcairo size {0:.0f},{1:.0f} {3} {4} fontscale {5} linewidth {2} pointscale {2}",
                  width * dense, height * dense, scale * dense, common, font, scale * dense * 0.75);
  const std::string pdf =
      fmt::format("set terminal pdfcairo size {:.4f},{:.4f} {} {} fontscale {} linewidth {} pointscale {}", width / 96,
                  height / 96, common, font, scale * 0.5625, scale * 1.5, scale);
  // without "set output" pictures go to stdout
  return fmt::format("set encoding utf8\n{0}{2}\n{1}\n{3}\n{1}\n{4}\n{1}\n", drawing.settings, drawing.plot, svg, png,
                     pdf);
}

std::string xml_text(const std::string& text) {
  std::string out;
  for (const char c : printable(text))
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

}  // namespace

std::pair<double, double> pixels_of(const Drawing& drawing, const PictureStyle& style) {
  const auto of = [](double cm, int own) { return cm > 0 ? cm * 96 / 2.54 : own; };
  return {of(style.width, drawing.width), of(style.height, drawing.height)};
}

std::optional<std::string> draw_picture(const std::string& svg, const Drawing& drawing, const PictureStyle& style) {
  const auto no_picture = [&](const std::string& why) { return fmt::format("no picture {}: gnuplot {}", svg, why); };
  // -d ignores the user's own settings, which might set an output
  const Spawned drawn = run_child({"gnuplot", "-d"}, script_of(drawing, style));
  if (!drawn.problem.empty()) return no_picture(drawn.problem);

  constexpr std::string_view svg_end = "</svg>", png_start = "\x89PNG\r\n\x1a\n", pdf_end = "%%EOF\n",
                             png_to_pdf = "IEND\xae\x42\x60\x82%PDF-", own_title = "<title>Gnuplot</title>";
  const std::string_view all = drawn.out;
  const std::size_t start = all.find(png_start), end = all.substr(0, start).rfind(svg_end),
                    next = start == all.npos ? all.npos : all.find(png_to_pdf, start);
  if (end == all.npos || next == all.npos || !all.starts_with("<?xml") || !all.ends_with(pdf_end))
    throw Error(svg, "cannot be drawn: gnuplot left half a picture");
  const std::size_t pdf = next + png_to_pdf.find("%PDF");
  std::string text(all.substr(0, end + svg_end.size()));
  if (const std::size_t at = text.find(own_title); at != text.npos)
    text.replace(at, own_title.size(), "<title>" + xml_text(drawing.title) + "</title>");
  // fields of a heat map have edges, which a browser would smooth away
  constexpr std::string_view image = "<image ", sharp = "style='image-rendering:pixelated' ";
  for (std::size_t at = text.find(image); at != text.npos; at = text.find(image, at + image.size() + sharp.size()))
    text.insert(at + image.size(), sharp);
  if (style.width > 0) {
    constexpr std::string_view head = "<svg ";
    if (const std::size_t at = text.find(head); at != text.npos)
      text.insert(at + head.size(), fmt::format("width=\"{}cm\" height=\"{}cm\"", style.width, style.height));
  }
  write_atomically(svg, text + "\n");
  std::error_code error;  // there is no place for a second file next to a device or a pipe
  const bool beside = fs::is_regular_file(svg, error);
  if (error) throw Error(svg, "cannot be looked up: " + error.message());
  if (beside) {
    write_atomically(fs::path(svg).replace_extension(".png"), all.substr(start, pdf - start));
    write_atomically(fs::path(svg).replace_extension(".pdf"), all.substr(pdf));
  }
  return std::nullopt;
}

}  // namespace reel
