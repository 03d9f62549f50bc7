#include <algorithm>
#include <array>
#include <cmath>

#include "tasks/explain/render.h"

namespace reel::explain {

namespace {

struct Point {
  double intensity, rate;  // operations a byte; operations a second
  std::string name, what;
  bool gradient, product;
};

/// The measured groups of all loops, those that compute something.
std::vector<Point> points_of(const Explanation& e) {
  std::vector<Point> out;
  for (const LoopReport& loop : e.loops) {
    for (std::size_t g = 0; g < loop.groups.size(); ++g) {
      const GroupRow& group = loop.groups[g];
      if (group.seconds <= 0 || group.flops <= 0 || group.bytes <= 0) continue;
      const double steps = static_cast<double>(loop.signature.length);
      out.push_back({group.flops / group.bytes, group.flops * steps / group.seconds, fmt::format("{}", g + 1),
                     fmt::format("{}, group {}: {}, {}/s, {}", loop.title, g + 1, ops_text(group),
                                 flops_text(group.flops * steps / group.seconds), milliseconds_text(group.seconds)),
                     loop.signature.gradient, group.product_flops > 0});
    }
  }
  return out;
}

/// Logarithmic axes in a picture of 900 x 440.
struct Frame {
  static constexpr double left = 66, right = 880, top = 14, bottom = 372;
  double x_low, x_high, y_low, y_high;  // powers of ten
  double x(double v) const { return left + (right - left) * (std::log10(v) - x_low) / (x_high - x_low); }
  double y(double v) const { return bottom - (bottom - top) * (std::log10(v) - y_low) / (y_high - y_low); }

  std::string grid() const {
    std::string out;
    for (double d = x_low; d <= x_high; ++d) {
      const double at = x(std::pow(10, d));
      out += fmt::format(R"svg(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)svg", at, top, bottom);
      out += fmt::format(R"svg(<text x="{:.1f}" y="{}" text-anchor="middle">{:g}</text>)svg", at, bottom + 17,
                         std::pow(10, d));
    }
    for (double d = y_low; d <= y_high; ++d) {
      const double at = y(std::pow(10, d));
      out += fmt::format(R"svg(<line class="grid" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>)svg", at, left, right);
      out += fmt::format(R"svg(<text x="{}" y="{:.1f}" text-anchor="end">{:g}</text>)svg", left - 8, at + 4,
                         std::pow(10, d - 9));
    }
    out += fmt::format(
        R"svg(<text x="{}" y="{}" text-anchor="middle">operations a byte that is read or written</text>)svg",
        (left + right) / 2, bottom + 40);
    out += fmt::format(R"svg(<text transform="translate(16 {}) rotate(-90)" text-anchor="middle">Gflop/s</text>)svg",
                       (top + bottom) / 2);
    return out;
  }

  /// What a rate of memory allows, up to the rate of products; its name is above its lower end, or below it.
  std::string slope(double bytes, double flops, const char* kind, const std::string& name, bool above) const {
    const double ridge = flops / bytes, first = std::max(std::pow(10, x_low), std::pow(10, y_low) / bytes);
    const double last = std::min(ridge, std::pow(10, x_high));
    if (first >= last) return "";
    std::string out = fmt::format(R"svg(<path class="{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>)svg", kind, x(first),
                                  y(first * bytes), x(last), y(last * bytes));
    const double at = 0.03, angle = -std::atan2(y(first * bytes) - y(last * bytes), x(last) - x(first)) * 57.29578;
    out += fmt::format(
        R"svg(<text transform="translate({:.1f} {:.1f}) rotate({:.1f})"><tspan dy="{}">{}</tspan></text>)svg",
        x(first) + at * (x(last) - x(first)), y(first * bytes) + at * (y(last * bytes) - y(first * bytes)), angle,
        above ? -6 : 15, name);
    return out;
  }
};

/// Points that would cover each other become one, with all their names.
std::vector<Point> merged(const std::vector<Point>& points, const Frame& axes) {
  std::vector<Point> out;
  for (const Point& p : points) {
    const auto near = std::find_if(out.begin(), out.end(), [&](const Point& o) {
      return o.gradient == p.gradient &&
             std::hypot(axes.x(o.intensity) - axes.x(p.intensity), axes.y(o.rate) - axes.y(p.rate)) < 12;
    });
    if (near == out.end()) {
      out.push_back(p);
      continue;
    }
    near->name += ", " + p.name;
    near->what += "; " + p.what;
  }
  return out;
}

}  // namespace

std::string roofline(const Explanation& e) {
  const std::vector<Point> points = points_of(e);
  const Rates& r = e.rates;
  if (points.empty() || r.products <= 0 || r.memory <= 0) return "";
  double x_low = 1e300, x_high = r.products / r.memory * 2, y_low = 1e300;
  for (const Point& p : points) {
    x_low = std::min(x_low, p.intensity);
    x_high = std::max(x_high, p.intensity);
    y_low = std::min(y_low, p.rate);
  }
  double y_high = r.products;
  for (const Point& p : points) y_high = std::max(y_high, p.rate);
  const Frame axes{std::floor(std::log10(x_low)), std::ceil(std::log10(x_high)), std::floor(std::log10(y_low)),
                   std::ceil(std::log10(y_high))};
  std::string out = R"svg(<svg class="roof" viewBox="0 0 900 440" role="img" aria-label="roofline">)svg";
  out += axes.grid();
  out += axes.slope(r.cache, r.products, "cache", fmt::format("a cache, {}/s", bytes_text(r.cache)), true);
  out += axes.slope(r.memory, r.products, "limit", fmt::format("memory, {}/s", bytes_text(r.memory)), false);
  const double top = axes.y(r.products);
  out += fmt::format(R"svg(<path class="limit" d="M{:.1f} {:.1f}L{} {:.1f}"/>)svg",
                     axes.x(r.products / std::max(r.cache, r.memory)), top, Frame::right, top);
  out += fmt::format(R"svg(<text x="{}" y="{:.1f}" text-anchor="end">products, {}/s</text>)svg", Frame::right, top - 6,
                     flops_text(r.products));
  const std::vector<Point> shown = merged(points, axes);
  std::vector<std::array<double, 3>> taken;  // by points and their names: left, right, height
  for (const Point& p : shown) taken.push_back({axes.x(p.intensity) - 6, axes.x(p.intensity) + 6, axes.y(p.rate) + 4});
  for (const Point& p : shown) {
    const double x = axes.x(p.intensity), y = axes.y(p.rate);
    out += fmt::format(R"svg(<g><title>{}</title><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>)svg", p.what,
                       p.gradient ? "gradient" : "forward", x, y, p.product ? 6 : 5);
    // above a forward group, below one of the gradient, and further that way where another name is
    const double wide = 8 * static_cast<double>(p.name.size()) + 8;
    double name_y = p.gradient ? y + 14 : y - 6;
    const auto covers = [&](const auto& n) {
      return std::abs(n[2] - name_y) < 13 && n[0] < x + 8 + wide && x + 8 < n[1];
    };
    while (std::ranges::any_of(taken, covers)) name_y += p.gradient ? 13 : -13;
    taken.push_back({x + 8, x + 8 + wide, name_y});
    out += fmt::format(R"svg(<text class="name" x="{:.1f}" y="{:.1f}">{}</text></g>)svg", x + 8, name_y, p.name);
  }
  out += fmt::format(
      R"svg(<circle class="forward" cx="{0}" cy="429" r="5"/><text x="{1}" y="433">groups of the forward loop</text>)svg",
      Frame::left + 6, Frame::left + 16);
  if (std::any_of(points.begin(), points.end(), [](const Point& p) { return p.gradient; }))
    out += fmt::format(
        R"svg(<circle class="gradient" cx="{0}" cy="429" r="5"/><text x="{1}" y="433">of the gradient</text>)svg",
        Frame::left + 206, Frame::left + 216);
  return out + "</svg>\n";
}

}  // namespace reel::explain
