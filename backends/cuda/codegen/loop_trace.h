// A trace of a loop's first steps: their calls are recorded instead of run, and from the addresses in a few steps
// follows where each operand lies in every step.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "engine/device/kernels.h"

namespace reel::cuda {

/// The address of an operand in step i: a constant stride from step to step, or double-buffered.
struct LoopWalk {
  std::byte* first = nullptr;
  std::int64_t stride = 0;  // in bytes
  bool buffers = false;
  std::byte* at(std::int64_t i) const { return first + (buffers ? i % 2 : i) * stride; }
  bool operator==(const LoopWalk&) const = default;
};

/// Memory that a call reads or writes: element (r, c) lies r * row + c * column elements from the start.
struct Access {
  LoopWalk walk;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row = 0, column = 1;  // 0: broadcast along that axis
  DType dtype = DType::f32;
  bool local = false;  // inside a fusion group, without memory
};

/// A call of a step, on the rows of a batch.
struct LoopCall {
  enum class Kind { run, product, rotation, copy } kind = Kind::run;
  /// The operands. For a fusion group (run): all of the group, results included. For a product: a, b, out (a and out
  /// have the batch's rows, b is [columns, sums] or its transpose). For a rotation: x, out, and c and s unless it is
  /// only an exchange. For a copy: in, out.
  std::vector<Access> operands = {};
  std::vector<FusedCall> calls = {};               // run
  bool transposed = false;                         // product: b is [columns, sums]
  std::int64_t sums = 0;                           // product
  std::int64_t first = 0, last = 0, distance = 0;  // rotation
  std::int64_t rows() const { return operands[out()].rows; }
  std::int64_t columns() const { return operands[out()].columns; }
  /// The operand that is written; for a fusion group one of them.
  std::size_t out() const { return kind == Kind::run ? at(calls.back().out) : kind == Kind::product ? 2 : 1; }
  static std::size_t at(int operand) { return static_cast<std::size_t>(operand); }
};

class LoopTrace {
 public:
  static constexpr std::int64_t looked_at = 4;  // steps: double-buffering shows only when an address recurs

  void start_step() { steps_.emplace_back(); }
  // Each records a call; false if a loop kernel cannot contain such a call.
  bool add(const FusedArgs& a);
  bool add(const GemmArgs& a);
  bool add(const RotateArgs& a);
  bool add(const CopyArgs& a);

  /// The calls of a step, if all steps have the same calls and their addresses follow a LoopWalk.
  std::optional<std::vector<LoopCall>> calls() const;

 private:
  bool add(LoopCall call);
  std::vector<std::vector<LoopCall>> steps_;  // walks have only their first address
};

/// Thrown if a loop being traced does something that cannot be recorded.
struct NotTraceable {};

/// Is a loop being traced, so that the call is recorded instead of run? Throws NotTraceable if it cannot be recorded.
template <class Args>
bool traced(LoopTrace* trace, const Args& a) {
  if (trace && !trace->add(a)) throw NotTraceable();
  return trace != nullptr;
}

/// The calls of a loop's step. While steps are traced, `trace` is where the backend's kernels record their calls.
std::optional<std::vector<LoopCall>> trace_loop(LoopTrace*& trace, std::int64_t steps,
                                                const std::function<void(std::int64_t i)>& step);

}  // namespace reel::cuda
