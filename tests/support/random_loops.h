// Loops at random for the tests of kernels that run all steps of one.
#pragma once
#include "engine/device/lowered_loop.h"
#include "tests/support/fused_runs.h"

namespace reel::test {

constexpr std::int64_t random_steps = 7;

/// A loop at random: runs with a state each that goes through it, inputs that change from step to step and some that do
/// not, and results of all times. Numbers stay whole.
class RandomLoop {
 public:
  /// A run for each number of columns.
  RandomLoop(std::uint64_t seed, std::int64_t rows, const std::vector<std::int64_t>& columns, int calls) {
    for (const std::int64_t n : columns) parts_.emplace_back(seed, rows, n, calls);
  }

  /// The loop, with a buffer for each operand that has memory; a state is two operands in one buffer.
  LoweredLoop lowered() const {
    LoweredLoop out{random_steps, {}, {}};
    for (const Part& part : parts_) {
      LoopCall& call = out.calls.emplace_back(KernelCall::of<Kernel::fused>(part.run->args()), std::vector<Operand>());
      for (std::size_t k = 0; k < part.places.size(); ++k) call.operands.push_back(operand(part, k));
    }
    return out;
  }
  /// The buffers of all operands, at their first addresses, and their sizes.
  std::vector<std::byte*> buffers() const {
    std::vector<std::byte*> out;
    for_each_buffer([&](std::byte* data, std::size_t) { out.push_back(data); });
    return out;
  }
  std::vector<std::size_t> bytes() const {
    std::vector<std::size_t> out;
    for_each_buffer([&](const std::byte*, std::size_t n) { out.push_back(n); });
    return out;
  }
  void cpu_fallback() const {
    for (std::int64_t i = 0; i < random_steps; ++i) {
      for (const Part& part : parts_) {
        FusedArgs args = part.run->args();
        for (std::size_t k = 0; k < args.operands.size(); ++k) args.operands[k].data += operand(part, k).at(i);
        fused_by_cpu(args);
      }
    }
  }
  /// The results that are in memory; all memory as it is, and as it was.
  std::vector<std::vector<std::complex<double>>> results() const {
    std::vector<std::vector<std::complex<double>>> out;
    for (const Part& part : parts_) {
      for (auto& values : part.run->results()) out.push_back(std::move(values));
    }
    return out;
  }
  std::vector<std::deque<std::vector<std::byte>>> memory() const {
    std::vector<std::deque<std::vector<std::byte>>> out;
    for (const Part& part : parts_) out.push_back(part.run->memory());
    return out;
  }
  void restore(const std::vector<std::deque<std::vector<std::byte>>>& was) {
    for (std::size_t i = 0; i < was.size(); ++i) parts_[i].run->restore(was[i]);
  }
  /// Does the device make kernels of all calls?
  bool taken_by(Backend& device) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      return std::all_of(part.run->calls.begin(), part.run->calls.end(),
                         [&](const FusedCall& c) { return device.fuses(c); });
    });
  }
  std::int64_t widest() const {
    std::int64_t out = 0;
    for (const Part& part : parts_) out = std::max(out, part.run->columns);
    return out;
  }

 private:
  /// An operand in step i: element t + shift of its buffer, t running backwards if the loop does; or element
  /// (i + shift) % 2.
  struct Place {
    std::int64_t stride = 0, buffers = 0, shift = 0;
  };
  struct Part {
    std::unique_ptr<FusedRunMaker> run;
    std::vector<Place> places;
    bool reverse = false;

    Part(std::uint64_t seed, std::int64_t rows, std::int64_t columns, int calls)
        : run(random_run(seed, rows, columns, calls, random_steps + 1)), reverse(seed % 2 == 1) {
      const bool keep = seed % 3 != 0;
      const int state = 0;  // of f32
      const int last = run->calls.back().out, moved = columns > 1024 ? run->roll(state, columns / 3, true) : state;
      const int next = run->map(
          Clamp{-5, 5},
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
  };

  Operand operand(const Part& part, std::size_t k) const {
    const FusedOperand& o = part.run->operands[k];
    if (o.local) return {};
    const auto& [stride, buffers, shift] = part.places[k];
    const bool back = buffers > 0 ? shift % 2 == 1 : part.reverse;
    const std::int64_t first = buffers > 0 ? shift % 2 : (part.reverse ? random_steps - 1 : 0) + shift;
    return {buffer(o.data), stride == 0 ? 0 : first * stride, back ? -stride : stride, buffers > 0};
  }
  int buffer(const std::byte* data) const {
    const auto all = buffers();
    return static_cast<int>(std::find(all.begin(), all.end(), data) - all.begin());
  }
  void for_each_buffer(auto&& f) const {
    std::vector<const std::byte*> known;
    for (const Part& part : parts_) {
      for (const FusedOperand& o : part.run->operands) {
        if (o.local || std::find(known.begin(), known.end(), o.data) != known.end()) continue;
        known.push_back(o.data);
        f(o.data, static_cast<std::size_t>(part.run->rows * part.run->columns * part.run->times) * o.element_bytes);
      }
    }
  }

  std::vector<Part> parts_;
};

inline std::vector<std::unique_ptr<RandomLoop>> random_loops() {
  std::vector<std::unique_ptr<RandomLoop>> loops;
  const auto add = [&](std::uint64_t seed, std::int64_t rows, const std::vector<std::int64_t>& columns, int calls) {
    loops.push_back(std::make_unique<RandomLoop>(seed, rows, columns, calls));
  };
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {3, 7}, {2, 12}, {4, 5}};
    const auto& [rows, columns] = sizes[seed % 4];
    add(seed, rows, {columns}, 2 + static_cast<int>(seed) / 2);
  }
  // Rows of more columns than a block has threads: two, three and four for a thread, some of them not for all threads.
  for (const std::int64_t columns : {1025, 2048, 2999, 4096}) add(100 + loops.size(), 2, {columns}, 12);
  // Runs of other widths beside each other. Where nothing is rolled, the widest tells how columns are shared out.
  const std::vector<std::int64_t> widths[] = {{384, 1}, {1, 300}, {130, 384, 2}, {256, 255}, {7, 3}};
  for (std::uint64_t seed = 200; seed < 220; ++seed) add(seed, 5, widths[seed % 5], 2 + static_cast<int>(seed) % 2);
  return loops;
}

}  // namespace reel::test
