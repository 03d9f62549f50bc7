// Runs something and keeps every loop over time that it plans: the loop before and after each pass, what it was run
// on, what it was lowered to, and how long each call took.
#pragma once
#include <atomic>
#include <functional>

#include "engine/scan/lower/lowering.h"
#include "tasks/app/kernel_trace.h"

namespace reel::explain {

struct PassStage {
  std::string pass, rule;  // of the first stage: "scan" or "gradient of a scan", and no rule
  Loop loop;
};

/// A tensor that a loop was run on. The address is that of its elements, null while a program is traced.
struct Argument {
  std::uint64_t id = 0;
  const void* address = nullptr;
  Spec spec;
};

/// Seconds: of each node of prologue and epilogue, the least of three calls; of each group of the body (see
/// Lowering::groups) and of the copies behind the last one the median of the runs, all steps and shards together.
/// Empty: not measured.
struct LoopTimes {
  std::vector<double> prologue, groups, epilogue;
  double copies = 0;
};

struct WatchedLoop {
  std::vector<PassStage> stages;
  PlanPtr plan;
  std::vector<Argument> carries, xs, consts;
  /// By shard: its rows of the batch. One shard of 0 rows: the batch is not sharded. None: the loop did not run.
  std::vector<std::int64_t> shards;
  std::shared_ptr<const ShardLoop> lowered;  // that of the first shard
  std::vector<const std::byte*> buffers;     // where its buffers were
  LoopTimes times;
};

/// A device that runs loops on another one and remembers them. While it measures, it makes their calls one by one.
class LoopDevice final : public KernelTrace {
 public:
  explicit LoopDevice(Backend& device) : KernelTrace(device) {}
  /// What it computes on.
  Backend& real() { return device_; }
  void parallel(int parts, const std::function<void(int)>& f) override;
  void run(const LoweredLoop& loop, std::span<std::byte* const> buffers) override;

  struct Run {
    int shards = 1;  // of the loop that it belongs to
    std::vector<const std::byte*> buffers;
    std::vector<std::vector<double>> seconds;  // of each measured run, by call
  };
  std::map<const LoweredLoop*, Run> runs;
  bool measures = false;

 private:
  std::vector<double> timed(const LoweredLoop& loop, std::span<std::byte* const> buffers);
  std::atomic<int> shards_{1};
};

/// Calls `step`, which computes on the device; then, to measure, so many times more. Loops come in the order in which
/// they were planned.
std::vector<WatchedLoop> watch_loops(LoopDevice& device, int measured, const std::function<void()>& step);

}  // namespace reel::explain
