// Where the runs of a sweep run: on this machine, as jobs of Slurm, or through GNU parallel.
#pragma once
#include <string>
#include <vector>

#include "tasks/sweep/monitor.h"
#include "tasks/sweep/work.h"

namespace reel {

struct EngineOptions {
  std::string kind = "local";  // or "slurm", "parallel"
  std::int64_t jobs = 0;       // runs at a time; 0: as many as there are cores or, with Slurm, as it allows
  // Slurm's, as sbatch takes them; empty: its defaults
  std::string partition, time, gpus, account, sbatch;
  std::string sshlogin;  // GNU parallel's hosts
};

/// The options as JSON, and back; throws Error if the text is damaged.
std::string to_json(const EngineOptions& options);
EngineOptions engine_from_json(const std::string& text);

/// The command of a worker for a run, without its number, as a shell reads it.
std::string worker_command(const Sweep& sweep);

/// Runs workers in this process until all runs have ended or a stop is requested.
void run_local(const Sweep& sweep, Work& work, std::size_t jobs, Monitor& monitor);

/// Runs workers by GNU parallel, on this machine or on hosts that share the folder. Throws Error with its words if it
/// is missing or fails.
void run_parallel(const Sweep& sweep, Work& work, const std::vector<std::size_t>& order, const EngineOptions& options,
                  Monitor& monitor);

/// The script of a job array of at most a thousand runs: task K of the array is run `first` + K.
std::string slurm_script(const Sweep& sweep, const EngineOptions& options, const std::vector<std::size_t>& runs,
                         std::size_t first);
struct Submitted {
  std::vector<std::string> jobs;     // their numbers
  std::size_t runs = 0, queued = 0;  // submitted now, and queued before
};
/// Writes scripts to FOLDER/slurm and submits them, for the runs that are not queued yet; with halving an array for
/// each rung, which waits for the one before. Throws Error with Slurm's words if it refuses.
Submitted submit_slurm(const Sweep& sweep, const std::vector<std::size_t>& order, const EngineOptions& options);

}  // namespace reel
