// Curves in one figure: where those of one name are averaged and which count, and axes for values that are not above 0.
#include "tasks/app/curves.h"

#include "tasks/app/figure.h"
#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::string drawn(std::vector<Curve> curves, std::optional<bool> logarithmic = {}) {
  const TempDir dir;
  CurvesPicture picture{"t", "x", "y", std::move(curves)};
  picture.logarithmic = logarithmic;
  CHECK(draw_curves(dir / "figure.svg", picture).value_or("") == "");
  return read_file(dir / "figure.svg");
}

}  // namespace

TEST_CASE("curves of one name are averaged where they say, at a mean x") {
  if (!has_gnuplot()) return;
  const std::string apart = drawn({{"a", {{1, 2}, {2, 3}}}, {"a", {{1.5, 4}, {2.5, 5}}}});
  CHECK_FALSE(contains(apart, "runs)"));
  const std::string mean = drawn({{"a", {{1, 2}, {2, 3}}, {10, 20}}, {"a", {{1.5, 4}, {2.5, 5}}, {10, 20}}});
  CHECK(contains(mean, ">a (2 runs)<"));
  CHECK(contains(mean, "fill-opacity"));
  CHECK(contains(mean, ">1.2<"));  // the ticks are those of 1.25 to 2.25
  CHECK_FALSE(contains(mean, ">2.4<"));
}

TEST_CASE("curves that are left out: those that do not count, where another one of their name does and has a point") {
  const Curve counts{"a", {{1, 2}}}, empty{"a", {{1, NAN}}}, other{"b", {{1, 2}}};
  Curve diverged{"a", {{1, 700}}};
  diverged.counts = false;
  CHECK(left_out({diverged, counts, diverged}) == std::vector{true, false, true});
  CHECK(left_out({diverged, empty, other}) == std::vector{false, false, false});
}

TEST_CASE("curves that do not count are left out beside others of their name") {
  if (!has_gnuplot()) return;
  const Curve whole{"a", {{1, 2}, {2, 3}, {3, 1}}}, other = whole;
  Curve diverged{"a", {{1, 700}}};
  diverged.counts = false;
  for (const auto& curves : {std::vector{diverged, whole, other}, {whole, diverged, other}, {whole, other, diverged}}) {
    const std::string svg = drawn(curves);
    CHECK(contains(svg, ">a (2 runs)<"));
    CHECK_FALSE(contains(svg, ">100<"));
  }
  CHECK(contains(drawn({whole, diverged}), ">a<"));
  CHECK(contains(drawn({diverged, {"b", {{1, 700}, {2, 900}}}}), ">a<"));  // the only one of its name
}

TEST_CASE("values below 0 are seen: an axis is logarithmic by itself only if there are none") {
  if (!has_gnuplot()) return;
  const auto has = [](const std::string& svg, const std::string& tick) {
    return contains(svg, ">" + tick + "<") || contains(svg, "> " + tick + "<");
  };
  const std::string below = drawn({{"a", {{1, -9}, {2, -9.5}, {3, -10}}}});
  CHECK(has(below, "-9"));
  CHECK(has(below, "-10"));
  CHECK_FALSE(has(below, "0"));
  const std::string across = drawn({{"a", {{1, 300}, {2, 20}, {3, -100}}}});
  for (const char* tick : {"-100", "0", "300"}) CHECK_MESSAGE(has(across, tick), tick);
  CHECK(has(drawn({{"a", {{1, 300}, {2, 0.1}}}}), "0.1"));
  CHECK(has(drawn({{"a", {{1, 300}, {2, 0.1}, {3, 0}}}}), "0.1"));  // solved to the last bit
  CHECK_FALSE(has(drawn({{"a", {{1, 300}, {2, 0.1}, {3, 0}}}}, false), "0.1"));
  CHECK(has(drawn({{"a", {{1, 3}, {2, 2}}}}), "0"));

  const TempDir dir;
  CHECK(draw_bars(dir / "bars.svg", "t", "y", {{"a", -200, -300, 0}, {"b", 100, 0.1, 0}}).value_or("") == "");
  for (const char* tick : {"-300", "0", "100"}) CHECK_MESSAGE(has(read_file(dir / "bars.svg"), tick), tick);
  CHECK(
      draw_curve(dir / "curve.svg", "t", {{1, 8, 1, -300, -200, 0, 1}, {2, 16, 1, -400, -300, 0, 1}}, 0).value_or("") ==
      "");
  for (const char* tick : {"-400", "-200"}) CHECK_MESSAGE(has(read_file(dir / "curve.svg"), tick), tick);
}
