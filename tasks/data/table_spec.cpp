#include "tasks/data/table_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tasks/data/data_error.h"

namespace reel {

namespace {
std::vector<std::string> names_of(const std::vector<ScaledColumn>& columns) {
  std::vector<std::string> names;
  for (const ScaledColumn& column : columns) names.push_back(column.name);
  return names;
}
}  // namespace

std::vector<std::string> TableSpec::input_names() const { return names_of(inputs); }
std::vector<std::string> TableSpec::target_names() const { return names_of(targets); }

std::vector<double> TableSpec::answers(std::span<const double> outputs) const {
  std::vector<double> out(outputs.begin(), outputs.end());
  if (!classifies()) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * targets[i].deviation + targets[i].mean;
    return out;
  }
  const double most = *std::max_element(out.begin(), out.end());
  double sum = 0;
  for (double& p : out) sum += p = std::exp(p - most);
  for (double& p : out) p /= sum;
  return out;
}

const std::string& TableSpec::likeliest(std::span<const double> answers) const {
  return classes[static_cast<std::size_t>(std::max_element(answers.begin(), answers.end()) - answers.begin())];
}

namespace {
/// The size up to which a column's values, of the sign of this one, are standardised to numbers of f32.
double largest(const ScaledColumn& column, double value) {
  return std::abs(std::copysign(std::numeric_limits<float>::max() * column.deviation, value) + column.mean);
}
}  // namespace

Features::Features(const TableSpec& spec) : spec_(&spec) { reset(); }

void Features::reset() { previous_.assign(spec_->inputs.size(), missing_value); }

void Features::operator()(std::span<const double> raw, std::span<float> features, const Where& where) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const ScaledColumn& column = spec_->inputs[i];
    double value = raw[i];
    if (std::isnan(value)) {
      const auto fail = [&](const std::string& what) {
        throw FileError(fmt::format("{}: column \"{}\": {}", where(), column.name, what));
      };
      if (spec_->missing == "error") fail("the value is missing. Hint: train with --missing previous, or zero");
      value = spec_->missing == "zero" ? 0 : previous_[i];
      if (std::isnan(value))
        fail("the value is missing, and its sequence has none before. Hint: train with --missing zero");
    }
    previous_[i] = value;
    features[i] = static_cast<float>((value - column.mean) / column.deviation);
    if (!std::isfinite(features[i]))
      throw FileError(
          fmt::format("{}: column \"{}\": {} is too large: a number of size {:.4g} or less is expected, as "
                      "f32 has them. Hint: scale the column",
                      where(), column.name, value, largest(column, value)));
  }
}

std::vector<float> features(const TableSpec& spec, const Table& table, std::span<const std::int64_t> order,
                            std::span<const Rows> sequences) {
  const std::size_t width = spec.inputs.size();
  std::vector<const double*> columns;
  for (const std::vector<double>* column : table.numbers(spec.input_names())) columns.push_back(column->data());
  std::vector<float> out(order.size() * width);
  std::vector<double> raw(width);
  Features next(spec);
  for (const Rows& sequence : sequences) {
    next.reset();
    for (std::int64_t r = sequence.first; r < sequence.first + sequence.count; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const std::int64_t row = order[at];
      for (std::size_t i = 0; i < width; ++i) raw[i] = columns[i][row];
      next(raw, std::span(out).subspan(at * width, width), [&] { return table.where(row); });
    }
  }
  return out;
}

}  // namespace reel
