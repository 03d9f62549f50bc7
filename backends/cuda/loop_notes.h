// What a backend learns of a loop by looking at its first steps: their calls are noted instead of being made, and from
// the addresses in a few of them follows where everything lies in any step.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "engine/kernels.h"

namespace reel::cuda {

/// Where memory is in step i: equally far apart from step to step, or in one of two places in turn.
struct LoopWalk {
  std::byte* first = nullptr;
  std::int64_t stride = 0;  // in bytes
  bool turns = false;
  std::byte* at(std::int64_t i) const { return first + (turns ? i % 2 : i) * stride; }
  bool operator==(const LoopWalk&) const = default;
};

/// Memory that a call reads or writes: element (row, column) lies at row * row + column * column elements.
struct Access {
  LoopWalk walk;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row = 0, column = 1;  // 0: the same for all
  DType dtype = DType::f32;
  bool local = false;  // within a run, without memory
};

/// A call of a step, on rows of a batch.
struct LoopCall {
  enum class Kind { run, product, rotation, copy } kind = Kind::run;
  /// By operand of a run, those it makes included; of a product a, b, out (a and out are rows, b is [columns, sums] or
  /// its transpose); of a rotation x, out, and c and s unless it only exchanges; of a copy in, out.
  std::vector<Access> operands = {};
  std::vector<FusedCall> calls = {};               // run
  bool transposed = false;                         // product: b is [columns, sums]
  std::int64_t sums = 0;                           // product
  std::int64_t first = 0, last = 0, distance = 0;  // rotation
  std::int64_t rows() const { return operands[out()].rows; }
  std::int64_t columns() const { return operands[out()].columns; }
  /// The operand that is written; of a run one of them.
  std::size_t out() const { return kind == Kind::run ? at(calls.back().out) : kind == Kind::product ? 2 : 1; }
  static std::size_t at(int operand) { return static_cast<std::size_t>(operand); }
};

class LoopNotes {
 public:
  static constexpr std::int64_t looked_at = 4;  // steps: two places in turn show only by coming back

  void start_step() { steps_.emplace_back(); }
  // Each notes a call; false: no kernel of a whole loop has such a call.
  bool note(const FusedArgs& a);
  bool note(const GemmArgs& a);
  bool note(const RotateArgs& a);
  bool note(const CopyArgs& a);

  /// The calls of a step, when all are alike and their memory walks.
  std::optional<std::vector<LoopCall>> calls() const;

 private:
  bool add(LoopCall call);
  std::vector<std::vector<LoopCall>> steps_;  // walks have their first place only
};

/// Thrown where a loop that is looked at asks for what cannot be noted.
struct NotNoted {};

/// Is a kernel's call to be noted instead of made? Throws NotNoted if it cannot be.
template <class Args>
bool noted(LoopNotes* notes, const Args& a) {
  if (notes && !notes->note(a)) throw NotNoted();
  return notes != nullptr;
}

/// The calls of a step of a loop. While steps are looked at, `notes` is where the backend's kernels are to note them.
std::optional<std::vector<LoopCall>> look_at(LoopNotes*& notes, std::int64_t steps,
                                             const std::function<void(std::int64_t i)>& step);

}  // namespace reel::cuda
