#include "tasks/app/run_digest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ops/ops.h"
#include "tasks/app/provenance.h"
#include "tasks/data/data_error.h"
#include "tasks/io/files.h"
#include "tasks/training/checksum.h"

namespace reel {

namespace {

/// Files may begin alike: of a data set, examples from all over it, the last one among them.
std::vector<std::uint64_t> all_over(const Parts& parts) {
  const std::int64_t there = parts.train + parts.valid + parts.test, count = std::min<std::int64_t>(there, 16);
  std::vector<std::uint64_t> some;
  for (std::int64_t i = 1; i <= count; ++i) some.push_back(static_cast<std::uint64_t>(there * i / count - 1));
  return some;
}

std::string counts_of(const Parts& parts) {
  return fmt::format("examples {} {} {}", parts.train, parts.valid, parts.test);
}

/// All tensors of an example; some may be undefined.
Tensors tensors_of(const Task& task, std::uint64_t seed, std::uint64_t stream) {
  const Batch b = task.batch(seed, {stream});
  Tensors out{b.x, b.y, b.weight, b.lengths};
  out.insert(out.end(), b.more.begin(), b.more.end());
  return out;
}

/// What is known of a task's data: how many examples there are, and of some of them sums, in which each element counts
/// by its place. `scales` are the sums of absolute values, which say how exact a sum is.
struct DataSums {
  std::string counts;
  std::vector<double> sums, scales;
};

DataSums data_sums(const Task& task, std::uint64_t seed) {
  DataSums out{counts_of(task.parts()), {}, {}};
  const auto add = [&](double sum, double scale) {
    const bool finite = std::isfinite(sum) && std::isfinite(scale);  // JSON has no other numbers
    out.sums.push_back(finite ? sum : 0), out.scales.push_back(finite ? scale : 0);
  };
  add(task.baseline(), task.baseline());
  for (const std::uint64_t stream : all_over(task.parts())) {
    for (const Tensor& x : tensors_of(task, seed, stream)) {
      if (!x.defined()) continue;
      double sum = 0, scale = 0, place = 0;
      for (const double value : cast(x, DType::f64).values<double>()) {
        sum += value * ++place;
        scale += std::abs(value * place);
      }
      add(sum, scale);
    }
  }
  return out;
}

/// True for sums that are alike up to the rounding of another processor, where features are computed.
bool alike(const std::vector<double>& before, const DataSums& now) {
  if (before.size() != now.sums.size()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!(std::abs(before[i] - now.sums[i]) <= 1e-6 * std::abs(now.scales[i]))) return false;
  }
  return true;
}

}  // namespace

Digest digest_of(const std::string& name, const std::string& options, const Task& task, const Shared& s,
                 const Model& model) {
  Examples examples(s.train.examples, s.train.seed, task.parts());
  std::vector<std::uint64_t> some{examples.train(0).front(), examples.valid().front().front()};
  const std::vector<std::uint64_t> more = all_over(task.parts());
  some.insert(some.end(), more.begin(), more.end());
  Tensors data, parameters;
  for (const std::uint64_t stream : some) {
    const Tensors example = tensors_of(task, s.train.seed, stream);
    data.insert(data.end(), example.begin(), example.end());
  }
  for (const Parameter& p : model.parameters()) parameters.push_back(p.value);
  return {{"version", version_text(name)},
          {"options", options},
          {"data",
           fmt::format("{}, baseline {}, some of them {}", counts_of(task.parts()), task.baseline(), checksum(data))},
          {"initial parameters", checksum(parameters)}};
}

void keep_data_sums(const Task& task, std::uint64_t seed, const RunFolder& folder, bool resumed) {
  const std::string file = folder.file("data.json");
  const DataSums now = data_sums(task, seed);
  std::error_code error;
  if (!resumed || !std::filesystem::exists(file, error)) {
    write_atomically(file, nlohmann::ordered_json{{"data", now.counts}, {"sums", now.sums}}.dump() + "\n");
    return;
  }
  std::vector<double> sums;
  std::string counts;
  try {
    const auto before = nlohmann::json::parse(read_file(file, 1 << 20));
    before.at("data").get_to(counts), before.at("sums").get_to(sums);
  } catch (const nlohmann::json::exception&) {
    throw FileError(file + ": is damaged. Hint: delete this file; the run can be resumed without it");
  }
  if (counts != now.counts || !alike(sums, now))
    throw FileError(folder.path() + ": the data have changed since the run began. Hint: start a new run.");
}

}  // namespace reel
