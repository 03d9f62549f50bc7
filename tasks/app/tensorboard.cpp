#include "tasks/app/tensorboard.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ops/ops.h"
#include "tasks/app/curves.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

std::string name_of(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::absolute(folder, error).lexically_normal();
  return path.filename().empty() ? path.parent_path().filename() : path.filename();
}

/// Of complex numbers the moduli.
Histogram histogram_of(const Tensor& x) {
  const NoGrad no_grad;
  return histogram(cast(is_complex(x.dtype()) ? abs(x) : x, DType::f64).values<double>());
}

}  // namespace

TensorBoard::TensorBoard(const std::string& dir, const RunFolder& folder)
    : folder_((fs::path(dir) / name_of(folder.path())).string()) {}

void TensorBoard::begun(const Moment& at) {
  step_ = at.record.steps;
  file_.emplace(folder_, step_ > 0 ? step_ + 1 : -1);
}

void TensorBoard::validated(const Moment& at, const RunFolder::Row& row, const Tensors& gradients) {
  step_ = row.step;
  std::vector<std::string> values;
  for (const std::string& metric : curve_metrics())
    if (const double value = metric_of(row, metric); std::isfinite(value))
      values.push_back(scalar_value(metric, value));
  for (const Parameter& p : at.model.parameters())
    values.push_back(histogram_value("parameters/" + p.name, histogram_of(p.value)));
  const std::vector<Parameter> trained = at.model.trained();
  for (std::size_t i = 0; i < gradients.size(); ++i)
    values.push_back(histogram_value("gradients/" + trained[i].name, histogram_of(gradients[i])));
  try {
    file_->add(row.step, values);
  } catch (...) {
    ++lost_;
    throw;
  }
}

void TensorBoard::ended(const Moment& at) {
  std::vector<std::string> values;
  for (const auto& [name, value] : at.record.test)
    if (std::isfinite(value)) values.push_back(scalar_value("test/" + name, value));
  if (!values.empty()) file_->add(step_, values);
  if (lost_ > 0) throw Error(folder_, fmt::format("lacks {} validations, which could not be written", lost_));
}

void TensorBoard::drawn(const RunFolder& folder) {
  std::vector<std::string> values;
  for (const fs::path& png : entries_of(folder.path())) {
    if (png.extension() != ".png") continue;
    if (std::string value = image_value("pictures/" + png.stem().string(), read_file(png)); !value.empty())
      values.push_back(std::move(value));
  }
  if (!values.empty()) file_->add(step_, values);
}

}  // namespace reel
