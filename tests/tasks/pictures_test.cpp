// Figures as papers have them: shares in per cent, words on axes, seeds as a mean with a band, sizes and fonts; and the
// names of runs in a legend.
#include <fmt/core.h>

#include <fstream>
#include <map>
#include <regex>

#include "tasks/app/curves.h"
#include "tasks/app/heat_map.h"
#include "tasks/app/options.h"
#include "tasks/app/run_names.h"
#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

std::string drawn(const TempDir& dir, const CurvesPicture& picture, const PictureStyle& style = {}) {
  const std::string svg = dir / "figure.svg";
  CHECK(draw_curves(svg, picture, style).value_or("") == "");
  return read_file(svg);
}

void put_config(const std::string& folder, const std::string& text) {
  fs::create_directories(folder);
  std::ofstream(folder + "/config.toml") << text;
}

}  // namespace

TEST_CASE("figures: shares have an axis from 0 to 100 per cent, losses one of their own") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  CurvesPicture picture{"accuracy of it", examples_words, metric_words("accuracy"), {{"a", {{1, 0.001}, {2, 0.03}}}}};
  picture.shares = true;
  const std::string share = drawn(dir, picture);
  for (const char* part :
       {">0 %<", ">20 %<", ">100 %<", ">validation accuracy<", ">training examples<", "<title>accuracy of it</title>"})
    CHECK_MESSAGE(contains(share, part), part);
  CHECK_FALSE(contains(share, "Gnuplot</title>"));
  picture.shares = false;
  const std::string loss = drawn(dir, picture);
  CHECK_FALSE(contains(loss, "%<"));
  CHECK(contains(loss, ">0.01<"));  // logarithmic
}

TEST_CASE("figures: metrics in words") {
  CHECK(metric_words("valid_loss") == "validation loss");
  CHECK(metric_words("grad_norm") == "norm of the gradient");
  CHECK(metric_words("test.accuracy") == "test accuracy");
  CHECK(metric_words("epoch_seconds") == "time per epoch");
}

TEST_CASE("figures: curves of one name are their mean with a band, unless they have no x in common") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const auto with = [&](double shift) {
    return drawn(
        dir, {"t",
              "x",
              "y",
              {{"srnn", {{1, 1}, {2, 3}, {3, 5}}}, {"srnn", {{1 + shift, 2}, {2 + shift, 5}}}, {"lstm", {{1, 4}}}}});
  };
  const std::string mean = with(0);
  CHECK(contains(mean, ">srnn (2 runs)<"));
  CHECK(contains(mean, ">lstm<"));
  CHECK(contains(mean, "fill-opacity"));
  const std::string apart = with(0.5);
  CHECK(contains(apart, ">srnn<"));
  CHECK_FALSE(contains(apart, "runs)"));
  CHECK_FALSE(contains(apart, "fill-opacity = \"0.18"));
}

TEST_CASE("figures: sizes, fonts, and a PDF beside SVG and PNG") {
  const PictureStyle style = picture_style("size", "8.4x5.2", "font", "Times New Roman,9");
  CHECK(style.width == 8.4);
  CHECK(style.height == 5.2);
  CHECK(style.font == "Times New Roman");
  CHECK(style.points == 9);
  CHECK(picture_style("size", "", "font", "7").points == 7);
  CHECK(picture_style("size", "", "font", "Courier").font == "Courier");
  CHECK(points_of(picture_style("size", "8x6", "font", "")) == 8);
  CHECK(points_of({}) == 10.5);
  for (const char* size : {"8.4", "x", "8.4x", "x5", "8x5x3", "1x1", "1000x5", "nanx5", "8,4x5"})
    CHECK_MESSAGE(contains(error_of([&] { (void)picture_style("size", size, "font", ""); }), "--size: \""), size);
  for (const char* font : {",9", "Times,", "Times,900", "900", "a'b", "a\"b", "a`id`,9", "Times,9,9"})
    CHECK_MESSAGE(contains(error_of([&] { (void)picture_style("s", "", "picture-font", font); }), "--picture-font: \""),
                  font);
  if (!has_gnuplot()) return;
  const TempDir dir;
  const std::string svg = drawn(dir, {"t", "x", "y", {{"a", {{1, 1}, {2, 2}}}}}, style);
  CHECK(contains(svg, "width=\"8.4cm\" height=\"5.2cm\""));
  CHECK(contains(svg, "Times New Roman"));
  const std::string pdf = read_file(dir / "figure.pdf"), png = read_file(dir / "figure.png");
  CHECK(pdf.starts_with("%PDF-"));
  CHECK(contains(pdf.substr(pdf.size() - 8), "%%EOF"));
  const auto pixels = [&](std::size_t at) {
    return static_cast<unsigned char>(png[at + 2]) * 256 + static_cast<unsigned char>(png[at + 3]);
  };
  CHECK(pixels(16) == 635);  // 8.4 cm at twice the 96 pixels of an inch
  CHECK(pixels(20) == 393);
}

namespace {

/// The heights of texts in an SVG, and its own, in units of its canvas.
struct Heights {
  double all = 0;
  std::map<std::string, double> of;
};

Heights heights_in(const std::string& svg) {
  Heights out;
  std::smatch found;
  const std::regex box("viewBox=\"0 0 [0-9]+ ([0-9]+)\""),
      text("translate\\([0-9.]+,([-0-9.]+)\\)[^>]*>\\s*<text>(?:<[^>]*>)? ?([^<]*)<");
  if (std::regex_search(svg, found, box)) out.all = std::stod(found[1]);
  for (std::sregex_iterator i(svg.begin(), svg.end(), text), end; i != end; ++i) out.of[(*i)[2]] = std::stod((*i)[1]);
  return out;
}

}  // namespace

TEST_CASE("figures: a legend of any length leaves the plot its height, and title and axis in the picture") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const std::string numbered = ", hidden 128, lr 0.00001";  // with a cell before it, as runs have that differ in three
  for (const PictureStyle& style : {PictureStyle{}, picture_style("size", "8.4x5.2", "font", "")}) {
    for (const int count : {1, 8, 12, 20, 36, 60}) {
      CurvesPicture picture{"a title", "x axis", "y axis", {}};
      for (int i = 0; i < count; ++i)
        picture.curves.push_back({fmt::format("c{}{}", i, numbered), {{1, i + 1.0}, {2, 2}}});
      picture.baseline = 1.5;
      const Heights at = heights_in(drawn(dir, picture, style));
      CAPTURE(style.width);
      CAPTURE(count);
      CHECK(at.all > 0);
      for (const auto& [text, height] : at.of) CHECK_MESSAGE((height > 0 && height < at.all), text);
      REQUIRE(at.of.contains("a title"));
      REQUIRE(at.of.contains("x axis"));
      REQUIRE(at.of.contains("c0" + numbered));
      const double last = std::max(at.of.at("baseline 1.5"), at.of.at(fmt::format("c{}{}", count - 1, numbered)));
      // of a line of 21: two lines between title and legend at most, and six and more for the plot with its labels
      CHECK(at.of.at("c0" + numbered) - at.of.at("a title") > 21);
      CHECK(at.of.at("c0" + numbered) - at.of.at("a title") < 2.5 * 21);
      CHECK(at.of.at("x axis") - last > (style.width > 0 ? 6 : 14) * 21);
    }
  }
  CurvesPicture picture{"", "x", "y", {{std::string(40, 'a') + std::string(40, 'b') + "ü", {{1, 1}, {2, 2}}}}};
  const std::string cut = drawn(dir, picture, picture_style("size", "8.4x5.2", "font", ""));
  CHECK(contains(cut, "aaa…bbb"));
  CHECK(contains(cut, "bü<"));
  CHECK_FALSE(contains(cut, std::string(40, 'a')));

  CurvesPicture alike{"", "x", "y", {}};  // they differ in what is cut out of a long name
  for (const char* differing : {"clip-norm 0, lr 0.01", "clip-norm 0, lr 0.001", "clip-norm 1, lr 0.01"})
    alike.curves.push_back({fmt::format("lstm, {}, optimizer rmsprop", differing), {{1, 1}, {2, 2}}});
  const std::string legend = drawn(dir, alike, picture_style("size", "8.4x5.2", "font", ""));
  for (const char* name : {"lstm, 0, 0.01, rmsprop<", "lstm, 0, 0.001, rmsprop<", "lstm, 1, 0.01, rmsprop<"})
    CHECK_MESSAGE(contains(legend, name), legend);
}

TEST_CASE("figures: a heat map says what its colours are") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  HeatMap map{"title of it", "x", "y", 1, 2, {1, 2}};
  map.value_label = "share of <all>";
  CHECK(draw_heat_map(dir / "map.svg", map).value_or("") == "");
  CHECK(contains(read_file(dir / "map.svg"), "share of &lt;all"));
  CHECK(contains(read_file(dir / "map.svg"), "<title>title of it</title>"));
  CHECK_FALSE(contains(read_file(dir / "map.svg"), "<image"));  // a small one consists of rectangles
  map.rows = map.columns = 40;
  map.values.assign(1600, 1);
  map.values[0] = 2;
  CHECK(draw_heat_map(dir / "map.svg", map).value_or("") == "");
  CHECK(contains(read_file(dir / "map.svg"), "<image style='image-rendering:pixelated' "));
}

TEST_CASE("figures: a heat map of one row, one column or one field is not blank") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const std::regex field("<polygon fill = '[^']*' points = '([0-9.]+),([0-9.]+) [^ ]* ([0-9.]+),([0-9.]+) ");
  for (const auto& [rows, columns] : {std::pair{1, 3}, {3, 1}, {1, 1}}) {
    HeatMap map{"t", "x", "y", static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), {}};
    for (int i = 0; i < rows * columns; ++i) map.values.push_back(i);
    REQUIRE(draw_heat_map(dir / "map.svg", map).value_or("") == "");
    const std::string svg = read_file(dir / "map.svg");
    int large = 0;  // not those of the colour bar
    for (std::sregex_iterator i(svg.begin(), svg.end(), field), end; i != end; ++i)
      large += std::abs(std::stod((*i)[3]) - std::stod((*i)[1])) > 100 &&
               std::abs(std::stod((*i)[4]) - std::stod((*i)[2])) > 100;
    CHECK(large == rows * columns);
  }
}

TEST_CASE("names of runs: what tells them apart") {
  const TempDir dir;
  const auto run = [&](const std::string& name, const std::string& text) {
    put_config(dir / name, text);
    return dir / name;
  };
  const std::string a = run("a", "cell = \"srnn\"\nlr = 0.001\nseed = 1\nthreads = 2\n[srnn]\nwidth = 8\n"),
                    b = run("b", "cell = \"srnn\"\nlr = 0.001\nseed = 2\nthreads = 1\n[srnn]\nwidth = 8\n"),
                    c = run("c", "cell = \"lstm\"\nlr = 0.003\nseed = 1\nthreads = 1\n"),
                    d = run("d", "cell = \"srnn\"\nlr = 0.001\nseed = 1\n[srnn]\nwidth = 4\n");
  using Names = std::vector<std::string>;
  CHECK(names_of_runs({a, b}, false) == Names{"srnn", "srnn"});
  CHECK(names_of_runs({a, b}, true) == Names{"srnn, seed 1", "srnn, seed 2"});
  CHECK(names_of_runs({a, c}, false) == Names{"srnn, lr 0.001", "lstm, lr 0.003"});
  CHECK(names_of_runs({a, d + "/"}, false) == Names{"srnn, srnn.width 8", "srnn, srnn.width 4"});
  CHECK(names_of_runs({a}, false) == Names{"srnn"});
  CHECK(names_of_runs({a, a + "/"}, true) == Names{"srnn, a", "srnn, a"});  // nothing but their folders
  CHECK(names_of_runs({dir / "nowhere"}, false) == Names{"nowhere"});
  CHECK(names_of_runs({run("bad", "cell = ")}, false) == Names{"bad"});
}

TEST_CASE("figures: in a column of a paper titles are broken into lines, and colour bars have fewer ticks") {
  if (!has_gnuplot()) return;
  const TempDir dir;
  const PictureStyle column = picture_style("size", "8.4x7", "font", "Times,8");
  HeatMap map{"copying, T = 20: change of h of layer 2 in a step", "step", "unit", 128, 40, {}};
  for (int i = 0; i < 128 * 40; ++i) map.values.push_back(0.35 * std::sin(i));
  map.value_label = "change of h of layer 2";
  std::vector<HeatMap> both{map, map};
  both[1].title = "h of layer 2, the shift undone";
  CHECK(draw_heat_maps(dir / "maps.svg", both, column).value_or("") == "");
  const std::string svg = read_file(dir / "maps.svg");
  const Heights at = heights_in(svg);
  CHECK(contains(svg, "<title>" + map.title));
  CHECK_FALSE(at.of.contains(map.title));
  for (const auto& [text, height] : at.of) {
    CHECK_MESSAGE((height > 0 && height < at.all), text);
    CHECK_MESSAGE(text.size() <= 42, text);  // letters of 17 pixels of 14
  }
  CHECK(at.of.contains("0.2"));
  CHECK(std::abs(at.of.at("0.2") - at.of.at("-0.2")) > 2 * 10);
  CHECK_FALSE(at.of.contains("0.1"));
  CHECK_FALSE(at.of.contains("40"));  // of the units, which has its 100
  CHECK(draw_heat_map(dir / "map.svg", map).value_or("") == "");
  CHECK(contains(read_file(dir / "map.svg"), map.title + "</text>"));
  CHECK(contains(read_file(dir / "map.svg"), "> 0.1<"));
}
