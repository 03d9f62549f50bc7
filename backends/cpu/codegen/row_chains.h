// Row chains: consecutive calls of a loop's step that treat each row of the batch by itself. As one compiled function
// they run row after row, so that a row stays in the nearest cache from the first call to the last; what no other call
// reads never leaves it.
#pragma once
#include <string>
#include <vector>

#include "backends/cpu/codegen/chain_args.h"
#include "engine/device/lowered_loop.h"

namespace reel::cpu {

/// A state that a loop saves at every step, of which the chain keeps the last one in the cache. What it saves goes past
/// the caches.
struct KeptState {
  std::size_t from = 0;    // the operand before the step
  std::int64_t bytes = 0;  // of a row
};

/// Indices that the function uses unchecked, and what looks them up.
struct ChainIndices {
  std::size_t operand = 0;
  std::int64_t below = 0;
  const char* op = nullptr;
  Loc where = {};
};

struct RowChain {
  std::size_t first = 0, end = 0;  // its calls in the loop's
  std::int64_t rows = 0;
  std::vector<Operand> operands;  // of the function
  std::vector<KeptState> states;
  std::vector<ChainIndices> indices;
  std::vector<FusedArgs> groups;  // in the order of the function's
  std::string text;               // of the function, behind its name
  std::int64_t work = 0;          // numbers, times calls
};

/// The chains of two or more calls, in order.
std::vector<RowChain> row_chains(const LoweredLoop& loop);

/// The chain as one call: its function in place of its calls. It throws for a bad index, as they do.
LoopCall compiled_call(const RowChain& chain, RowChainFunction function);

/// Does the function compute what the chain's calls do, on numbers at random?
bool same_bits(Backend& backend, const LoweredLoop& loop, const RowChain& chain, RowChainFunction function);

}  // namespace reel::cpu
