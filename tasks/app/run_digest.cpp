#include "tasks/app/run_digest.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
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

/// A checksum of the task's data that another processor finds, too, where features are computed: of six digits of
/// sums, in which each element counts by its place.
std::string data_checksum(const Task& task, std::uint64_t seed) {
  const Parts parts = task.parts();
  std::string sums;
  for (const std::uint64_t stream : all_over(parts)) {
    const Batch b = task.batch(seed, {stream});
    Tensors tensors{b.x, b.y, b.weight, b.lengths};
    tensors.insert(tensors.end(), b.more.begin(), b.more.end());
    for (const Tensor& x : tensors) {
      if (!x.defined()) continue;
      double sum = 0, place = 0;
      for (const double value : cast(x, DType::f64).values<double>()) sum += value * ++place;
      sums += fmt::format("{:.6g} ", sum);
    }
  }
  const uLong crc = crc32_z(0, reinterpret_cast<const unsigned char*>(sums.data()), sums.size());
  return fmt::format("examples {} {} {}, baseline {:.6g}, some of them {:08x}", parts.train, parts.valid, parts.test,
                     task.baseline(), crc);
}

}  // namespace

Digest digest_of(const std::string& name, const std::string& options, const Task& task, const Shared& s,
                 const Model& model) {
  Examples examples(s.train.examples, s.train.seed, task.parts());
  std::vector<std::uint64_t> some{examples.train(0).front(), examples.valid().front().front()};
  const Parts parts = task.parts();
  for (const std::uint64_t stream : all_over(parts)) some.push_back(stream);
  Tensors data, parameters;
  for (const std::uint64_t stream : some) {
    const Batch b = task.batch(s.train.seed, {stream});
    data.insert(data.end(), {b.x, b.y, b.weight, b.lengths});
    data.insert(data.end(), b.more.begin(), b.more.end());
  }
  for (const Parameter& p : model.parameters()) parameters.push_back(p.value);
  return {{"version", version_text(name)},
          {"options", options},
          {"data", fmt::format("examples {} {} {}, baseline {}, some of them {}", parts.train, parts.valid, parts.test,
                               task.baseline(), checksum(data))},
          {"initial parameters", checksum(parameters)}};
}

void keep_data_checksum(const Task& task, std::uint64_t seed, const RunFolder& folder, bool resumed) {
  const std::string file = folder.file("data.json"), now = data_checksum(task, seed);
  std::error_code error;
  if (resumed && std::filesystem::exists(file, error)) {
    const auto before = nlohmann::json::parse(read_file(file, 1 << 20), nullptr, false);
    if (!before.is_object() || !before.contains("data") || !before["data"].is_string())
      throw FileError(file + ": is damaged. Hint: without this file the run can be resumed, too");
    if (before["data"] != now)
      throw FileError(folder.path() + ": the data have changed since the run began. Hint: start a new run.");
  } else {
    write_atomically(file, nlohmann::ordered_json{{"data", now}}.dump(2) + "\n");
  }
}

}  // namespace reel
