// What tests of several ranks look at: what a run has left, and its processes.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "tasks/training/safetensors.h"
#include "tests/support/sweeps.h"

namespace reel::test {

/// Metrics without seconds, and all tensors of checkpoint and best parameters.
inline std::string ended(const std::string& run) {
  std::string all = timeless(run + "/metrics.csv");
  for (const char* name : {"/checkpoint.safetensors", "/best.safetensors"})
    for (const auto& [tensor, x] : load_safetensors(run + name).tensors) {
      std::string bytes(x.bytes(), '\0');
      x.backend().read(bytes.data(), x.data(), bytes.size());
      all += tensor + bytes;
    }
  return all;
}

/// The step of a run's checkpoint.
inline std::int64_t step_of(const std::string& run) {
  return std::stoll(load_safetensors(run + "/checkpoint.safetensors").metadata.at("step"));
}

/// The processes of a run by their ranks.
inline std::map<int, pid_t> ranks_of(const std::string& folder) {
  std::map<int, pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = text_in_proc(entry.path() / "environ"), key = "OMPI_COMM_WORLD_RANK=";
    const std::size_t at = environment.find(key);
    if (at != std::string::npos && text_in_proc(entry.path() / "cmdline").find(folder) != std::string::npos)
      out[std::stoi(environment.substr(at + key.size()))] = std::stoi(name);
  }
  return out;
}

}  // namespace reel::test
