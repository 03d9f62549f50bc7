#include "tasks/app/statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace reel {

namespace {
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
}

double mean(const std::vector<double>& values) {
  double total = 0;
  for (const double x : values) total += x;
  return values.empty() ? nan : total / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return nan;
  const double middle = mean(values);
  double squares = 0;
  for (const double x : values) squares += (x - middle) * (x - middle);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::string significant(double value, int digits) {
  constexpr double most = 1e7;
  const double size = std::abs(value);
  return size >= std::pow(10, digits) && size < most ? fmt::format("{:.0f}", value)
                                                     : fmt::format("{:.{}g}", value, digits);
}

std::string with_deviation(double mean, double deviation) {
  return significant(mean, 4) + (std::isfinite(deviation) ? " ± " + significant(deviation, 2) : "");
}

std::string never_text(const std::vector<double>& values) {
  const auto never = std::count_if(values.begin(), values.end(), [](double x) { return std::isinf(x); });
  if (never == 0) return "";
  return never == std::ssize(values) ? "never" : fmt::format("{} of {} never", never, values.size());
}

}  // namespace reel
