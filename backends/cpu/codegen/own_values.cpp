#include "backends/cpu/codegen/own_values.h"

#include <algorithm>
#include <cstdlib>

namespace reel::cpu {

namespace {

constexpr std::int64_t most_bytes = 256 << 10;  // of all row values, on the stack
constexpr std::int64_t large_state = 16 << 20;  // bytes of all its values

/// Is there such an operand in a call that is not the chain's?
bool elsewhere(const CallsOfLoop& chain, auto&& is) {
  const auto has = [&](const LoopCall& call) { return std::ranges::any_of(call.operands, is); };
  const std::vector<LoopCall>& all = chain.loop.calls;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(chain.first), end = begin + std::ssize(chain.calls);
  return std::ranges::any_of(chain.loop.setup, has) || std::any_of(all.begin(), begin, has) ||
         std::any_of(end, all.end(), has);
}

/// Are all accesses of the chain's calls such?
bool everywhere(const CallsOfLoop& chain, auto&& is) {
  return std::ranges::all_of(chain.calls, [&](const RowCall& call) { return std::ranges::all_of(call.accesses, is); });
}

}  // namespace

std::vector<RowAccess> row_values(const CallsOfLoop& chain) {
  const std::int64_t rows = chain.calls[0].rows;
  const int scratch = chain.loop.scratch;
  std::vector<RowAccess> out, before;
  std::int64_t bytes = 0;
  for (const RowCall& call : chain.calls) {
    for (const RowAccess& value : call.accesses) {
      const auto apart = [&](const RowAccess& a) {
        return a.at.buffer != value.at.buffer || a.end(rows) <= value.at.offset || value.end(rows) <= a.at.offset;
      };
      const auto alike_or_apart = [&](const RowAccess& a) { return a.same_memory(value) || apart(a); };
      const auto inside = [&](const Operand& at) {
        return at.buffer == scratch && at.offset >= value.at.offset && at.offset < value.end(rows);
      };
      const bool first_use = std::ranges::all_of(before, apart);
      before.push_back(value);
      const bool whole_rows = value.row == value.bytes;  // of parts, other calls may read the whole from its start
      if (!value.written || !whole_rows || value.at.buffer != scratch || !first_use) continue;
      if (!everywhere(chain, alike_or_apart) || elsewhere(chain, inside) || bytes + value.bytes > most_bytes) continue;
      bytes += value.bytes;
      out.push_back(value);
    }
  }
  return out;
}

std::vector<std::pair<RowAccess, RowAccess>> own_states(const CallsOfLoop& chain) {
  std::vector<std::pair<RowAccess, RowAccess>> out;
  for (std::size_t c = 0; c < chain.calls.size(); ++c) {
    if (!chain.loop.calls[chain.first + c].kernel.as<Kernel::fused>()) continue;
    for (const RowAccess& to : chain.calls[c].accesses) {
      const bool whole_lines = to.row == to.bytes && to.bytes % 64 == 0;
      const bool large = !to.at.double_buffered && std::abs(to.at.stride) * chain.loop.steps >= large_state;
      if (!to.written || !whole_lines || !large || (to.dtype != DType::f32 && to.dtype != DType::f64)) continue;
      RowAccess from = to;
      from.at.offset -= to.at.stride;
      const auto is_from = [&](const RowAccess& a) { return a.same_memory(from) && !a.written; };
      const bool ours = everywhere(
          chain, [&](const RowAccess& a) { return a.at.buffer != to.at.buffer || is_from(a) || a.same_memory(to); });
      const bool read = !everywhere(chain, [&](const RowAccess& a) { return !is_from(a); });
      if (ours && read && !elsewhere(chain, [&](const Operand& at) { return at.buffer == to.at.buffer; }))
        out.emplace_back(from, to);
    }
  }
  return out;
}

}  // namespace reel::cpu
