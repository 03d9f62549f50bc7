// Row chains: consecutive calls of a loop's step that treat each row of the batch by itself. As one compiled function
// they run row after row, so that a row stays in the nearest cache from the first call to the last; what no other call
// reads never leaves it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/codegen/chain_args.h"
#include "engine/device/lowered_loop.h"

namespace reel::cpu {

/// A state that a loop saves at every step, of which the chain keeps the last one in the cache. What it saves goes past
/// the caches.
struct KeptState {
  std::size_t from = 0, to = 0;  // the operands: before the step, and after it
  std::int64_t bytes = 0;        // of a row
};

struct RowChain {
  std::size_t first = 0, end = 0;  // its calls in the loop's
  std::int64_t rows = 0;
  std::vector<Operand> operands;  // of the function
  std::vector<KeptState> states;
  std::string text;       // of the function, behind its name
  std::int64_t work = 0;  // numbers, times calls
};

/// The chains of two or more calls, in order.
std::vector<RowChain> row_chains(const LoweredLoop& loop);

/// The chain as one call: its function in place of its calls. It throws for a bad index, as they do.
LoopCall compiled_call(const LoweredLoop& loop, const RowChain& chain, RowChainFunction function);

/// Does the function compute what the chain's calls do, on numbers at random?
bool same_bits(Backend& backend, const LoweredLoop& loop, const RowChain& chain, RowChainFunction function);

}  // namespace reel::cpu
