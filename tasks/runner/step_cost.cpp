#include "tasks/runner/step_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "backends/shared/temporary_folder.h"
#include "engine/core/error.h"
#include "tasks/app/run_folder.h"
#include "tasks/io/files.h"
#include "tasks/io/lock.h"
#include "tasks/io/spawn.h"
#include "tasks/runner/program.h"
#include "tasks/runner/record.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t measured_interval = 4;

}  // namespace

double StepCost::of(std::int64_t updates, std::int64_t interval) const {
  return static_cast<double>(updates) * update +
         std::ceil(static_cast<double>(updates) / static_cast<double>(std::max<std::int64_t>(1, interval))) *
             validation;
}

double share_left(const std::string& folder, std::int64_t updates) {
  std::error_code error;
  if (!fs::exists(folder + "/metrics.csv", error)) return 1;
  try {
    const auto rows = RunFolder::view(folder).rows();
    const double reached = rows.empty() ? 0 : static_cast<double>(rows.back().step);
    return std::max(0.0, 1 - reached / static_cast<double>(std::max<std::int64_t>(1, updates)));
  } catch (const Error&) {
    return 1;
  }
}

void add_cost(const std::string& file, const std::string& key, const nlohmann::ordered_json& cost) {
  const auto alone = lock_of(file);
  auto known = nlohmann::ordered_json::parse(text_if_there(file), nullptr, false);
  if (!known.is_object()) known = nlohmann::ordered_json::object();
  known[key] = cost;
  write_atomically(file, known.dump(1) + "\n");
}

StepCost measure_step(const std::string& task, const std::vector<std::string>& options, const std::string& folder,
                      const std::function<bool()>& stop) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  const TemporaryFolder own(folder);
  if (!own) throw Error(folder, fmt::format("cannot be made: {}", std::strerror(errno)));
  std::vector<std::string> words{program_of(task)};
  words.insert(words.end(), options.begin(), options.end());
  // A warm-up may be longer than these updates, and costs nothing.
  words.insert(words.end(),
               {fmt::format("--steps={}", measured_updates), fmt::format("--valid-every={}", measured_interval),
                "--out=" + own.path(), "--quiet", "--stop-below=0", "--warmup=0"});
  if (has_epochs(task)) words.insert(words.end(), {"--epochs=0", "--no-test"});
  const Spawned ran = run_child(words, "", stop);
  if (ran.code != 0) throw Error(last_line(ran.err).empty() ? ran.problem : last_line(ran.err));
  const auto record = read_summary(own.path());
  const auto rows = RunFolder::view(own.path()).rows();
  if (!record || rows.size() < 2) throw Error("left no result of the updates that were to be timed");
  return {record->update_seconds,
          std::max(0.0, rows.back().seconds - rows.front().seconds - measured_interval * record->update_seconds)};
}

}  // namespace reel
