// A time loop as a value: the calls of a step, and where their arrays are stored at each time. The engine lowers a scan
// to it (scan/lower/), and a backend runs it: step by step, or as a single kernel.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/kernel_calls.h"

namespace reel {

/// Where an array of a call is stored: in step i at byte offset + i * stride of its buffer or, if it is
/// double-buffered, at offset + i % 2 * stride.
struct Operand {
  int buffer = -1;  // -1: it has no memory
  std::int64_t offset = 0, stride = 0;
  bool double_buffered = false;
  std::int64_t at(std::int64_t i) const { return offset + (double_buffered ? i % 2 : i) * stride; }
  bool operator==(const Operand&) const = default;
};

struct LoopCall {
  KernelCall kernel;
  std::vector<Operand> operands;  // of each array of the call, in order; its own pointers mean nothing
  const char* op = "scan";        // what makes the call, for errors, and the line that called it
  Loc where = {};
};

/// A rule broken by a call of a loop. `step` counts from the loop's start; of a loop in a loop the outer one's.
struct LoopError : RuleError {
  LoopError(const RuleError& broken, const char* of, const Loc& line, std::int64_t i)
      : RuleError(broken), op(of), where(line), step(i) {}
  const char* op;
  Loc where;
  std::int64_t step;
};

struct LoweredLoop {
  std::int64_t steps = 0;
  std::vector<LoopCall> setup;              // before the first step
  std::vector<LoopCall> calls;              // of each step, in order
  int scratch = -1;                         // the buffer of what no later step reads, nor the loop's user
  mutable std::shared_ptr<void> kept = {};  // what a backend made of it, for later runs
};

/// Makes the calls of steps 0 .. steps - 1 one after the other. `buffers` are the buffers' addresses.
void run_calls(Backend& backend, const std::vector<LoopCall>& calls, std::int64_t steps,
               std::span<std::byte* const> buffers);

}  // namespace reel
