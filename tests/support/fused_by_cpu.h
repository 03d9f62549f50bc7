// Fused runs by the CPU's kernel for tests of other backends, whose runs may have what the CPU's do
// not: local values without memory, and rolls of rows that are longer than a block.
#pragma once
#include <cstring>
#include <vector>

#include "engine/device/backend.h"

namespace reel::test {

inline void fused_by_cpu(const FusedArgs& a) {
  Backend& cpu = backend("cpu");
  const bool whole = a.columns <= FusedArgs::block;  // otherwise call by call, each on all elements
  std::vector<FusedCall> calls(a.calls.begin(), a.calls.end());
  std::vector<FusedOperand> operands(a.operands.begin(), a.operands.end());
  std::vector<std::vector<std::byte>> rooms;
  for (FusedOperand& o : operands) {
    if (!o.local) continue;
    const std::int64_t n = whole ? FusedArgs::block : a.rows * a.columns;
    o.data = rooms.emplace_back(static_cast<std::size_t>(n) * o.element_bytes).data();
    if (!whole) o.row = a.columns, o.column = 1, o.local = false;
  }
  const auto run = [&](FusedArgs group) {
    cpu.resolve(group);
    cpu.fused(group);
  };
  if (whole) return run({a.rows, a.columns, calls, operands});
  for (const FusedCall& c : calls) {
    if (c.kind != FusedCall::Kind::roll) {
      run({a.rows, a.columns, {c}, operands});
      continue;
    }
    const FusedOperand &in = operands[static_cast<std::size_t>(c.in[0])],
                       &out = operands[static_cast<std::size_t>(c.out)];
    for (std::int64_t i = 0; i < a.rows * a.columns; ++i) {
      const std::int64_t row = i / a.columns, to = row * a.columns + (i - row * a.columns + c.functor) % a.columns;
      std::memcpy(out.data + static_cast<std::size_t>(to) * out.element_bytes,
                  in.data + static_cast<std::size_t>(i) * in.element_bytes, in.element_bytes);
    }
  }
}

}  // namespace reel::test
