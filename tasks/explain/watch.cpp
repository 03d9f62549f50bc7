#include "tasks/explain/watch.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "ops/ops.h"

namespace reel::explain {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A watch of this thread for a while; null: none.
class Watching {
 public:
  explicit Watching(PlanWatch* watch) : outer_(std::exchange(plan_watch(), watch)) {}
  ~Watching() { plan_watch() = outer_; }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  PlanWatch* outer_;
};

/// Runs a program node by node, three times, and returns the least time of each node.
std::vector<double> node_times(const Traced& traced, const Tensors& inputs, Tensors* results) {
  const Program& p = traced.program;
  std::vector<double> least(p.nodes.size(), 1e300);
  for (int round = 0; round < 3; ++round) {
    Tensors values(p.values.size());
    std::copy(inputs.begin(), inputs.end(), values.begin());
    std::copy(traced.consts.begin(), traced.consts.end(), values.begin() + p.inputs);
    for (std::size_t n = 0; n < p.nodes.size(); ++n) {
      const auto start = Clock::now();
      apply_node(p.nodes[n], values);
      least[n] = std::min(least[n], since(start));
    }
    if (!results) continue;
    results->clear();
    for (const int s : p.outputs) results->push_back(values[static_cast<std::size_t>(s)]);
  }
  return least;
}

/// A tensor of the spec with some values, to measure on.
Tensor sample(const Spec& spec) {
  if (!is_differentiable(spec.dtype)) return Tensor::zeros(spec.shape, spec.dtype, *spec.backend);
  return cast(uniform(spec.shape, -1, 1, 1, 0, real_of(spec.dtype), *spec.backend), spec.dtype);
}

/// What prologue and epilogue take, on what the loop is about to be run on; what the body puts out is made up.
void measure_outside(WatchedLoop& watched, const Tensors& xs, const Tensors& consts) {
  const Loop& loop = watched.plan->loop;
  if (loop.prologue.program.nodes.empty() && loop.epilogue.program.nodes.empty()) return;
  const Watching nothing(nullptr);
  const NoGrad no_grad;
  Tensors in = xs, results;
  in.insert(in.end(), consts.begin(), consts.end());
  watched.times.prologue = node_times(loop.prologue, in, &results);
  const Program& after = loop.epilogue.program;
  in.clear();
  const auto carries = static_cast<std::size_t>(loop.signature.carries),
             passed = carries + static_cast<std::size_t>(loop.passed());
  for (std::size_t i = 0; i < static_cast<std::size_t>(after.inputs); ++i) {
    const bool from_prologue = i >= carries && i < passed;
    in.push_back(from_prologue ? results[static_cast<std::size_t>(loop.xs() + loop.body.consts) + i - carries]
                               : sample(after.values[i]));
  }
  watched.times.epilogue = node_times(loop.epilogue, in, nullptr);
}

std::vector<Argument> arguments(const Tensors& list) {
  std::vector<Argument> out;
  for (const Tensor& t : list) out.push_back({t.id(), t.concrete() ? t.data() : nullptr, t.spec()});
  return out;
}

/// By y of the Scan: is it a view of a carry's saved values?
std::vector<char> views(const Loop& loop) {
  const auto& outputs = loop.body.outputs;
  const auto first = outputs.begin(), end = first + loop.signature.carries;
  std::vector<char> out;
  for (auto y = end; y != outputs.end(); ++y)
    out.push_back(loop.signature.save_carries && std::find(first, end, *y) != end);
  return out;
}

/// The median of call c over the runs: others use the machine, too.
double median_of(const std::vector<std::vector<double>>& runs, std::size_t c) {
  std::vector<double> times;
  for (const std::vector<double>& run : runs) times.push_back(run[c]);
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

/// Finds what the loop was lowered to when it ran.
void find_runs(WatchedLoop& watched, const std::map<const LoweredLoop*, LoopDevice::Run>& runs, int measured) {
  const Plan& plan = *watched.plan;
  const auto lowering = plan.lowering();
  std::vector<Prepacked> prepacked;  // those of the run, where there was one
  for (const Program::Node& node : plan.loop.body.nodes) prepacked.push_back({node.attrs, {}});
  std::set<int> counts;
  for (const auto& [loop, run] : runs) counts.insert(run.shards);
  for (const int count : counts) {
    std::vector<std::int64_t> shards;
    std::vector<std::shared_ptr<const ShardLoop>> loops;
    const std::int64_t rows = lowering->rows.rows;
    for (int p = 0; p < count && (rows > 0 ? count <= rows : p == 0); ++p)
      shards.push_back(rows > 0 ? rows * (p + 1) / count - rows * p / count : 0);
    for (const std::int64_t n : shards) loops.push_back(lowering->loop(n, views(plan.loop), prepacked));
    const auto ran = [&](const auto& l) {
      const auto found = runs.find(&l->loop);
      return found != runs.end() && (rows == 0 || found->second.shards == count);
    };
    if (loops.empty() || !std::all_of(loops.begin(), loops.end(), ran)) continue;
    watched.shards = shards;
    watched.lowered = loops.front();
    watched.buffers = runs.at(&loops.front()->loop).buffers;
    if (measured == 0) return;
    watched.times.groups.assign(lowering->groups.size(), 0);
    const std::set<std::shared_ptr<const ShardLoop>> distinct(loops.begin(), loops.end());
    for (const auto& shard : distinct) {
      const auto& seconds = runs.at(&shard->loop).seconds;
      for (std::size_t c = 0; c < shard->loop.calls.size(); ++c) {
        const auto group =
            static_cast<std::size_t>(std::upper_bound(shard->ends.begin(), shard->ends.end(), c) - shard->ends.begin());
        const double one = median_of(seconds, c) * static_cast<double>(seconds.size()) / measured;
        (group < lowering->groups.size() ? watched.times.groups[group] : watched.times.copies) += one;
      }
    }
    return;
  }
}

}  // namespace

void LoopDevice::parallel(int parts, const std::function<void(int)>& f) {
  const int outer = shards_.exchange(parts);
  try {
    device_.parallel(parts, f);
  } catch (...) {
    shards_ = outer;
    throw;
  }
  shards_ = outer;
}

void LoopDevice::run(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  {
    const std::lock_guard lock(mutex_);
    Run& run = runs[&loop];
    run.shards = shards_;
    if (run.buffers.empty()) run.buffers.assign(buffers.begin(), buffers.end());
  }
  if (!measures) return device_.run(loop, buffers);
  std::vector<double> seconds = timed(loop, buffers);
  const std::lock_guard lock(mutex_);
  runs[&loop].seconds.push_back(std::move(seconds));
}

std::vector<double> LoopDevice::timed(const LoweredLoop& loop, std::span<std::byte* const> buffers) {
  std::vector<double> seconds(loop.calls.size());
  std::vector<KernelCall> calls;
  for (const LoopCall& call : loop.calls) calls.push_back(call.kernel);
  run_calls(device_, loop.setup, 1, buffers);
  for (std::int64_t i = 0; i < loop.steps; ++i) {
    if (device_.before_step) device_.before_step();
    for (std::size_t c = 0; c < calls.size(); ++c) {
      auto operand = loop.calls[c].operands.begin();
      calls[c].arrays([&](auto*& pointer) {
        std::byte* const address =
            operand->buffer < 0 ? nullptr : buffers[static_cast<std::size_t>(operand->buffer)] + operand->at(i);
        std::memcpy(&pointer, &address, sizeof address);  // whatever it points to
        ++operand;
      });
      const auto start = Clock::now();
      calls[c].run(device_);
      seconds[c] += since(start);
    }
  }
  return seconds;
}

std::vector<WatchedLoop> watch_loops(LoopDevice& device, int measured, const std::function<void()>& step) {
  std::vector<WatchedLoop> loops;
  std::vector<PassStage> stages;
  PlanWatch watch;
  watch.stage = [&](const std::string& pass, const std::string& rule, const Loop& loop) {
    if (rule.empty()) stages.clear();
    stages.push_back({pass, rule, loop});
  };
  watch.run = [&](const PlanPtr& plan, const Tensors& carries, const Tensors& xs, const Tensors& consts) {
    if (stages.empty()) return;  // the plan has been seen
    WatchedLoop& loop = loops.emplace_back();
    loop.stages = std::exchange(stages, {});
    loop.plan = plan;
    loop.carries = arguments(carries);
    loop.xs = arguments(xs);
    loop.consts = arguments(consts);
    const bool traced = !carries.empty() && !carries[0].concrete();
    if (measured > 0 && !traced) measure_outside(loop, xs, consts);
  };
  {
    const Watching now(&watch);
    step();
  }
  device.measures = measured > 0;
  for (int i = 0; i < measured; ++i) step();
  device.measures = false;
  for (WatchedLoop& loop : loops) find_runs(loop, device.runs, measured);
  return loops;
}

}  // namespace reel::explain
