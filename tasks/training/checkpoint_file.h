// The contents of a checkpoint file, independent of any model: numbers and tensors, all validated before any is used.
#pragma once
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tasks/training/safetensors.h"
#include "tasks/training/schedule.h"

namespace reel {

/// Running sums for the next row of metrics.csv.
struct Running {
  std::int64_t steps = 0;  // since the last row
  double loss = 0, grad_norm = 0;
};

struct Progressed {
  std::int64_t step = 0;  // updates done
  double seconds = 0;     // spent training and validating
  Running running;
  Tensors carry = {};  // states that the next batch starts from
  int shards = 0;      // Backend::set_shards; -1: of an older version, whose sums depended on the number of threads
};

/// The validation with the lowest loss so far.
struct Best {
  std::int64_t step = -1;  // -1: none yet
  double loss = std::numeric_limits<double>::infinity();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  /// Is a validation better: has it a lower loss, or a higher accuracy, or the same and a lower loss?
  bool beaten_by(const Best& other, bool by_accuracy) const {
    if (step < 0 || !by_accuracy || other.accuracy == accuracy) return other.loss < loss;
    return !(other.accuracy <= accuracy);
  }
};

/// Training reached values that are not finite: "parameter cell.W became NaN".
struct Diverged : Error {
  using Error::Error;
};

/// A file does not have the tensors of a model.
struct OtherModel : Error {
  using Error::Error;
};

using Named = std::vector<std::pair<std::string, Tensor>>;

/// "cell.W: element 7 is NaN" for the first tensor with an element that is NaN or infinite; empty if there is none.
std::string not_finite(const Named& tensors);

/// Everything in a checkpoint except the model's tensors.
struct Saved {
  Progressed at;
  std::int64_t updates = 0;
  Schedule schedule;
};

/// Its metadata.
std::map<std::string, std::string> metadata_of(const Saved& saved, std::uint64_t seed);
/// Reads it back; the schedule keeps the options of the given one. Throws Error with the path and what is missing or
/// invalid: a number out of range, the seed of another run, a tensor that is neither one of `places` nor a carried
/// state, a wrong dtype or shape, or an element that is not finite.
Saved read_saved(const std::string& path, const TensorFile& file, const Named& places, const Schedule& schedule,
                 std::uint64_t seed);

/// Throws Error unless the file has each of these tensors, with the same dtype and shape (else OtherModel) and only
/// finite values, and exactly `others` more.
void check_tensors(const std::string& path, const TensorFile& file, const Named& places, std::size_t others);
/// The validation that a file of best parameters belongs to. Throws Error with the path and what is invalid.
Best read_best(const std::string& path, const TensorFile& file);

}  // namespace reel
