#include "tasks/app/tensorboard.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ops/ops.h"
#include "tasks/app/curves.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"
#include "tasks/io/lock.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr const char* owner_file = "run-folder.txt";  // whose events are in a folder: the absolute path of the run

/// The absolute path of a run's folder, without a / at the end.
std::string place_of(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(folder, error), error).lexically_normal();
  return path.filename().empty() ? path.parent_path() : path;
}

/// Whose a folder of events is; empty: it does not say so. What cannot be read is not ours.
std::string owner_of(const std::string& folder) try {
  const std::string file = folder + "/" + owner_file;
  std::error_code error;
  if (!fs::exists(file, error)) return "";
  std::string text = read_file(file, 1 << 16);
  if (text.ends_with('\n')) text.pop_back();
  return text;
} catch (const Error&) {
  return "?";
}

/// The folder of events that a run has or, if it has none, gets: the first one of its name that no other run has. What
/// an older version wrote does not say whose it is, and is taken for this run's. A resumed run may have been moved: it
/// also takes what belongs to a folder that is gone.
std::string events_of(const std::string& dir, const std::string& run, bool resumed) {
  const std::string name = fs::path(run).filename();
  std::string found;
  for (int i = 1;; ++i) {
    const std::string folder = (fs::path(dir) / (i == 1 ? name : fmt::format("{}-{}", name, i))).string();
    const std::string owner = owner_of(folder);
    if (owner == run) return folder;
    std::error_code error;
    if (found.empty() && (owner.empty() || (resumed && owner.starts_with('/') && !fs::exists(owner, error))))
      found = folder;
    if (!fs::exists(folder, error)) return found;
  }
}

/// Keeps other runs of this name from choosing their folders meanwhile, if that can be.
std::unique_ptr<Lock> alone_with(const std::string& dir, const std::string& run) try {
  return lock_of(fs::path(dir) / fmt::format(".{}", fs::path(run).filename().string()));
} catch (const Error&) {
  return nullptr;
}

/// Of complex numbers the moduli.
Histogram histogram_of(const Tensor& x) {
  const NoGrad no_grad;
  return histogram(cast(is_complex(x.dtype()) ? abs(x) : x, DType::f64).values<double>());
}

/// The bytes of the pictures in a run's folder, by their names.
std::map<std::string, std::string> pictures_in(const RunFolder& folder) {
  std::map<std::string, std::string> out;
  for (const fs::path& file : entries_of(folder.path()))
    if (file.extension() == ".png") out[file.stem().string()] = read_file(file);
  return out;
}

/// Whether an earlier session has brought the run to its end, with a test; a damaged run.json does not say so.
bool has_finished(const RunFolder& folder) {
  const std::string file = folder.file("run.json");
  std::error_code error;
  if (!fs::exists(file, error)) return false;
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  return json.is_object() && json.value("finished", nlohmann::json()) == true;
}

}  // namespace

TensorBoard::TensorBoard(const std::string& dir, const RunFolder& folder) : dir_(dir), run_(place_of(folder.path())) {}

void TensorBoard::begun(const Moment& at) {
  step_ = at.record.steps;
  std::error_code error;
  fs::create_directories(dir_, error);
  const auto alone = alone_with(dir_, run_);
  folder_ = events_of(dir_, run_, step_ > 0);
  file_.emplace(folder_, step_ > 0 ? step_ + 1 : 0);  // a new run replaces an older one in its place
  fs::create_directories(folder_, error);             // if not, each validation says so
  if (!error) write_atomically(folder_ + "/" + owner_file, run_ + "\n");
  if (step_ > 0 && last_event_file(folder_)) {
    if (has_finished(at.folder)) tested_step_ = step_;
    for (const auto& [name, png] : pictures_in(at.folder)) drawn_[name] = crc32c(png);
  }
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
  if (!values.empty() && step_ != tested_step_) file_->add(step_, values);
  if (lost_ > 0) throw Error(folder_, fmt::format("lacks {} validations, which could not be written", lost_));
}

void TensorBoard::drawn(const RunFolder& folder) {
  std::vector<std::string> values;
  for (const auto& [name, png] : pictures_in(folder)) {
    if (const auto before = drawn_.find(name); before != drawn_.end() && before->second == crc32c(png)) continue;
    if (std::string value = image_value("pictures/" + name, png); !value.empty()) values.push_back(std::move(value));
  }
  if (!values.empty()) file_->add(step_, values);
}

}  // namespace reel
