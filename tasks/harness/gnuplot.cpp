#include "tasks/harness/gnuplot.h"

#include <fmt/core.h>

#include <filesystem>

#include "tasks/harness/spawn.h"

namespace reel {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c == '\n' || c == '\r' ? ' ' : c);
  return out + "'";
}

std::optional<std::string> draw_picture(const std::string& svg, const std::string& settings, const std::string& plot,
                                        int width, int height) {
  const auto no_picture = [&](const std::string& why) { return fmt::format("no picture {}: {}", svg, why); };
  const std::string png = fs::path(svg).replace_extension(".png");
  const std::string new_svg = svg + ".tmp", new_png = png + ".tmp";
  // nothing between "set output" and the end of the plot may fail, or half a picture would be left
  const auto draw = [&](const std::string& terminal, const std::string& path) {
    return fmt::format("set terminal {} background '#ffffff'\nset output {}\n{}\nunset output\n", terminal,
                       quoted(path), plot);
  };
  const std::string size = fmt::format("{},{}", width, height);
  const std::string script =
      settings + draw("svg size " + size + " dynamic font 'Helvetica,Arial,DejaVu Sans,sans-serif,14'", new_svg) +
      draw("pngcairo size " + size + " font 'sans,11'", new_png);
  const std::string wrong = run_child({"gnuplot"}, script).problem;
  std::error_code error, failed;
  if (wrong.empty()) {
    fs::rename(new_svg, svg, failed);
    fs::rename(new_png, png, error);
    if (!failed) failed = error;
  }
  fs::remove(new_svg, error);
  fs::remove(new_png, error);
  if (!wrong.empty()) return no_picture("gnuplot " + wrong);
  return failed ? std::optional(no_picture(failed.message())) : std::nullopt;
}

}  // namespace reel
