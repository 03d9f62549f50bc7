// Loops at random for the tests of kernels that run all steps of one.
#pragma once
#include "engine/device/lowered_loop.h"
#include "tests/support/fused_runs.h"

namespace reel::test {

constexpr std::int64_t random_steps = 7;

/// A loop at random: a run with a state that goes through it, inputs that change from step to step and some that do
/// not, and results of all times. Numbers stay whole.
struct RandomLoop {
  /// An operand in step i: element t + shift of its buffer, t running backwards if the loop does; or element
  /// (i + shift) % 2.
  struct Place {
    std::int64_t stride = 0, buffers = 0, shift = 0;
  };
  std::unique_ptr<FusedRunMaker> run;
  std::vector<Place> places;
  bool reverse = false;

  RandomLoop(std::uint64_t seed, std::int64_t rows, std::int64_t columns, int calls)
      : run(random_run(seed, rows, columns, calls, random_steps + 1)), reverse(seed % 2 == 1) {
    const bool keep = seed % 3 != 0;
    const int state = 0;  // of f32
    const int last = run->calls.back().out, moved = columns > 1024 ? run->roll(state, columns / 3, true) : state;
    const int next =
        run->map(Clamp{-5, 5},
                 run->cast(run->zip(Add{}, run->cast(last, DType::f64, true), run->cast(moved, DType::f64, true), true),
                           DType::f32, true),
                 false);
    places.resize(run->operands.size());
    std::vector<char> made(run->operands.size(), 0);
    for (const FusedCall& c : run->calls) made[static_cast<std::size_t>(c.out)] = 1;
    for (std::size_t k = 0; k < places.size(); ++k) {
      const FusedOperand& o = run->operands[k];
      if (!o.local && (made[k] || run->pick(2)))
        places[k] = {rows * columns * static_cast<std::int64_t>(o.element_bytes), 0, 0};
    }
    FusedOperand &before = run->operands[0], &after = run->operands[static_cast<std::size_t>(next)];
    after.data = before.data;
    const std::int64_t stride = rows * columns * static_cast<std::int64_t>(sizeof(float));
    places[0] = {stride, keep ? 0 : 2, keep && reverse ? 1 : 0};
    places[static_cast<std::size_t>(next)] = {stride, keep ? 0 : 2, keep && reverse ? 0 : 1};
  }

  /// The loop, with a buffer for each operand that has memory; a state is two operands in one buffer.
  LoweredLoop lowered() const {
    LoopCall call{KernelCall::of<Kernel::fused>(run->args()), {}};
    for (std::size_t k = 0; k < run->operands.size(); ++k) {
      const auto& [stride, buffers, shift] = places[k];
      const bool back = buffers > 0 ? shift % 2 == 1 : reverse;
      const std::int64_t first = buffers > 0 ? shift % 2 : (reverse ? random_steps - 1 : 0) + shift;
      if (run->operands[k].local)
        call.operands.emplace_back();
      else
        call.operands.push_back(
            {buffer(run->operands[k].data), stride == 0 ? 0 : first * stride, back ? -stride : stride, buffers > 0});
    }
    return {random_steps, {}, {call}};
  }
  /// The buffers of all operands, at their first addresses.
  std::vector<std::byte*> buffers() const {
    std::vector<std::byte*> out;
    for (const FusedOperand& o : run->operands) {
      if (!o.local && std::find(out.begin(), out.end(), o.data) == out.end()) out.push_back(o.data);
    }
    return out;
  }
  int buffer(const std::byte* data) const {
    const auto all = buffers();
    return static_cast<int>(std::find(all.begin(), all.end(), data) - all.begin());
  }
  std::vector<FusedOperand> operands(std::int64_t i) const {
    std::vector<FusedOperand> out = run->operands;
    const LoweredLoop loop = lowered();
    for (std::size_t k = 0; k < out.size(); ++k) out[k].data += loop.calls[0].operands[k].at(i);
    return out;
  }
  void cpu_fallback() const {
    for (std::int64_t i = 0; i < random_steps; ++i) fused_by_cpu({run->rows, run->columns, run->calls, operands(i)});
  }
};

inline std::vector<std::unique_ptr<RandomLoop>> random_loops() {
  std::vector<std::unique_ptr<RandomLoop>> loops;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {3, 7}, {2, 12}, {4, 5}};
    const auto& [rows, columns] = sizes[seed % 4];
    loops.push_back(std::make_unique<RandomLoop>(seed, rows, columns, 2 + static_cast<int>(seed) / 2));
  }
  // Rows of more columns than a block has threads: two, three and four for a thread, some of them not for all threads.
  for (const std::int64_t columns : {1025, 2048, 2999, 4096}) {
    const std::uint64_t seed = 100 + loops.size();
    loops.push_back(std::make_unique<RandomLoop>(seed, 2, columns, 12));
  }
  return loops;
}

}  // namespace reel::test
