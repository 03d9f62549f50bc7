// Several runs in one figure: a curve each, the baseline, and bars of reported and measured values.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/app/run_folder.h"

namespace reel {

struct Curve {
  std::string name;                               // in the legend; curves of the same name share a colour and an entry
  std::vector<std::pair<double, double>> points;  // x, y; a y that is not finite is left out
};

/// The range of values at x.
struct Band {
  double x, low, high;
};

struct CurvesPicture {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  std::optional<double> baseline = std::nullopt;
  std::optional<bool> logarithmic = std::nullopt;  // y axis; unset: if the values span a factor of 20
  std::vector<std::vector<Band>> bands = {};       // behind the curve of the same number; may be fewer or empty
};

/// Draws `svg` and a png next to it; returns one line saying why there is no picture, or nothing.
std::optional<std::string> draw_curves(const std::string& svg, const CurvesPicture& picture);

/// The values of one pair of bars; NaN if missing.
struct Bar {
  std::string name;
  double reported, measured, spread;
};

/// Draws the two bars of each entry side by side; returns the same as draw_curves.
std::optional<std::string> draw_bars(const std::string& svg, const std::string& title, const std::string& y_label,
                                     const std::vector<Bar>& bars);

/// The columns of metrics.csv that can be drawn: train_loss, valid_loss, accuracy, grad_norm.
const std::vector<std::string>& curve_metrics();
/// The value of one of these columns in a row.
double metric_of(const RunFolder::Row& row, const std::string& metric);

}  // namespace reel
