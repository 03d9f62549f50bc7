// Compares a chain's function with its calls, on numbers at random: another compiler may round otherwise.
#include <algorithm>
#include <cstring>
#include <map>

#include "backends/cpu/codegen/equal_bits.h"
#include "backends/cpu/codegen/row_calls.h"
#include "backends/cpu/codegen/row_chains.h"
#include "ops/functors/philox.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t enough = 256;  // rows

/// Memory for what a chain's calls access in a step, with numbers at random.
class Memory {
 public:
  Memory(const LoweredLoop& loop, const RowChain& chain) {
    for (std::size_t c = chain.first; c < chain.end; ++c) {
      const LoopCall& call = loop.calls[c];
      rows_.push_back(*row_call(call, loop.scratch));
      for (const RowAccess& a : rows_.back().accesses) add(a.at, end(a));
      if (const FusedArgs* group = call.kernel.as<Kernel::fused>()) {
        for (std::size_t o = 0; o < group->operands.size(); ++o)  // blocks of the interpreter
          if (group->operands[o].local) add(call.operands[o], call.operands[o].at(0) + FusedArgs::block * 16);
      }
    }
    for (auto& [buffer, range] : ranges_) range.bytes.resize(static_cast<std::size_t>(range.end - range.first));
  }

  void fill(Stream& random) {
    for (const RowCall& call : rows_) {
      for (const RowAccess& a : call.accesses) {
        const std::size_t bytes = static_cast<std::size_t>(end(a) - a.at.at(0));
        if (a.dtype == DType::i32)
          each<std::int32_t>(a, bytes, [&](std::int64_t) { return static_cast<std::int32_t>(random.below(a.below)); });
        else if (a.dtype == DType::boolean)
          each<bool>(a, bytes, [&](std::int64_t) { return random.below(2) == 1; });
        else
          dispatch_floating(real_of(a.dtype), [&]<class T>(std::type_identity<T>) {
            each<T>(a, bytes, [&](std::int64_t i) { return number_at_random<T>(random, i); });
          });
      }
    }
  }
  std::byte* at(const Operand& o) {
    const auto range = ranges_.find(o.buffer);
    return range == ranges_.end() ? nullptr : range->second.bytes.data() + (o.at(0) - range->second.first);
  }
  void run(Backend& backend, const LoopCall& call) {
    KernelCall kernel = call.kernel;
    auto operand = call.operands.begin();
    kernel.arrays([&](auto*& pointer) {
      std::byte* const address = at(*operand++);
      std::memcpy(&pointer, &address, sizeof address);
    });
    kernel.run(backend);
  }
  /// Are the results alike which the function has, too?
  bool same_results(Memory& other, const RowChain& chain) {
    for (const RowCall& call : rows_) {
      for (const RowAccess& a : call.accesses) {
        if (!a.written || std::ranges::find(chain.operands, a.at) == chain.operands.end()) continue;
        if (!equal_values(a.dtype, at(a.at), other.at(a.at), end(a) - a.at.at(0))) return false;
      }
    }
    return true;
  }

 private:
  struct Range {
    std::int64_t first, end;
    std::vector<std::byte> bytes = {};
  };
  void add(const Operand& at, std::int64_t end) {
    Range& range = ranges_.try_emplace(at.buffer, Range{at.at(0), 0}).first->second;
    range.first = std::min(range.first, at.at(0));
    range.end = std::max(range.end, end);
  }
  std::int64_t end(const RowAccess& a) const { return a.at.at(0) + a.end(rows_[0].rows) - a.at.offset; }
  template <class T, class Next>
  void each(const RowAccess& a, std::size_t bytes, Next&& next) {
    T* const first = reinterpret_cast<T*>(at(a.at));
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) first[i] = next(static_cast<std::int64_t>(i));
  }

  std::vector<RowCall> rows_;
  std::map<int, Range> ranges_;  // by buffer
};

}  // namespace

bool same_bits(Backend& backend, const LoweredLoop& loop, const RowChain& chain, RowChainFunction function) {
  const LoopCall compiled = compiled_call(chain, function);
  Stream random(1, 1);
  Memory memory(loop, chain);
  const std::int64_t rounds = std::clamp<std::int64_t>(enough / chain.rows, 1, 64);
  for (std::int64_t round = 0; round < rounds; ++round) {
    memory.fill(random);
    Memory other = memory;
    for (std::size_t c = chain.first; c < chain.end; ++c) memory.run(backend, loop.calls[c]);
    other.run(backend, compiled);
    if (!memory.same_results(other, chain)) return false;
  }
  return true;
}

}  // namespace reel::cpu
