// Several runs in one figure: a curve each, the baseline, and bars of reported and measured values.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/app/picture_style.h"
#include "tasks/app/run_folder.h"

namespace reel {

struct Curve {
  /// In the legend. Curves of one name, as of one setting with several seeds, become their mean with a band from the
  /// lowest to the highest, at each x that all of them have; curves without a common x share a colour and an entry.
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; a y that is not finite is left out
  std::vector<double> at = {};  // of each point, where it is averaged, if that is not x: curves then have a mean x
  bool counts = true;           // false, as of a run that diverged: left out if another one of its name counts
};

/// Which curves are left out: those that do not count where another one of their name does and has a point.
std::vector<bool> left_out(const std::vector<Curve>& curves);

struct CurvesPicture {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  std::optional<double> baseline = std::nullopt;
  std::optional<bool> logarithmic = std::nullopt;  // y axis; unset: if the values span a factor of 20
  bool shares = false;                             // y is between 0 and 1: a linear axis of that range, in per cent
};

/// Draws `svg`, with a png and a pdf next to it; returns one line saying why there is no picture, or nothing.
std::optional<std::string> draw_curves(const std::string& svg, const CurvesPicture& picture,
                                       const PictureStyle& style = {});

/// The values of one pair of bars; NaN if missing.
struct Bar {
  std::string name;
  double reported, measured, spread;
};

/// Draws the two bars of each entry side by side; returns the same as draw_curves. The axis is logarithmic if
/// `may_be_logarithmic`, as for losses, and the values span a factor of 20.
std::optional<std::string> draw_bars(const std::string& svg, const std::string& title, const std::string& y_label,
                                     const std::vector<Bar>& bars, bool may_be_logarithmic = true);

/// The columns of metrics.csv that can be drawn: train_loss, valid_loss, accuracy, grad_norm.
const std::vector<std::string>& curve_metrics();
/// The value of one of these columns in a row.
double metric_of(const RunFolder::Row& row, const std::string& metric);
/// One of these columns, or another metric of run.json, in words: "validation loss".
std::string metric_words(const std::string& metric);
/// The number of examples, the label of most axes.
constexpr const char* examples_words = "training examples";

}  // namespace reel
