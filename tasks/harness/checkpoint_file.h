// What stands in the file of a checkpoint, apart from any model: numbers and tensors, of which none is taken before all
// can be true.
#pragma once
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tasks/harness/safetensors.h"
#include "tasks/harness/schedule.h"

namespace reel {

/// The sums behind the next row of metrics.csv.
struct Running {
  std::int64_t steps = 0;  // since the last row
  double loss = 0, grad_norm = 0;
};

struct Progressed {
  std::int64_t step = 0;  // updates done
  double seconds = 0;     // spent training and validating
  Running running;
  Tensors carry = {};  // states that the next batch starts from
  int threads = 0;     // of the CPU, on which last places depend; 0: not known
};

/// The validation with the lowest loss so far.
struct Best {
  std::int64_t step = -1;  // -1: none yet
  double loss = std::numeric_limits<double>::infinity();
};

/// Training has led to values that are not finite: "parameter cell.W became NaN".
struct Diverged : Error {
  using Error::Error;
};

using Named = std::vector<std::pair<std::string, Tensor>>;

/// "cell.W: element 7 is NaN" of the first tensor with an element that is NaN or infinite; empty when there is none.
std::string not_finite(const Named& tensors);

/// The part of a checkpoint that is no tensor of the model.
struct Saved {
  Progressed at;
  std::int64_t updates = 0;
  Schedule schedule;
};

/// The metadata for it.
std::map<std::string, std::string> metadata_of(const Saved& saved, std::uint64_t seed);
/// Reads it back, the schedule with the options of the given one. Throws Error with the path and what is missing or
/// cannot be: a number out of its range, the seed of another run, a tensor that is not one of `places` or is no carried
/// state, has another dtype or shape, or an element that is not finite.
Saved read_saved(const std::string& path, const TensorFile& file, const Named& places, const Schedule& schedule,
                 std::uint64_t seed);

/// How many threads of the CPU the run used; 0: the file, of an older version, does not say. Throws Error with the path
/// when it cannot be.
int read_threads(const std::string& path, const TensorFile& file);

/// Throws Error unless the file has each of these tensors, of the same dtype and shape and finite, and `others`
/// besides.
void check_tensors(const std::string& path, const TensorFile& file, const Named& places, std::size_t others);
/// What a file of the best parameters says of them. Throws Error with the path and what cannot be.
Best read_best(const std::string& path, const TensorFile& file);

}  // namespace reel
