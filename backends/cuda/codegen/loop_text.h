// Expressions in the source of a loop's kernel: memory, values in registers and shared memory, and a thread's elements.
#pragma once
#include "backends/cuda/codegen/loop_source.h"

namespace reel::cuda {

class LoopText {
 protected:
  LoopText(const LoopValues& loop, const LoopLayout& layout);

  const StepCall& call(int c) const { return loop_.calls[static_cast<std::size_t>(c)]; }
  const LoopValue& value(int v) const { return loop_.values[static_cast<std::size_t>(v)]; }
  const ValueStorage& storage(int v) const { return layout_.storage[static_cast<std::size_t>(v)]; }

  /// The expression for memory in step `i`.
  std::string memory(const LoopMemory& place, DType d, bool reads, const std::string& i);
  std::string memory(const Operand& walk, DType d, bool reads, const std::string& i) {
    return memory(LoopMemory{walk}, d, reads, i);
  }
  /// The scratch memory of a value that other blocks still read while its next version is computed.
  std::optional<LoopMemory> scratch(int v) const;
  /// Does nobody read it after the loop?
  bool is_temporary(int v) const { return loop_.scratch >= 0 && value(v).walk.buffer == loop_.scratch; }
  /// Code that stores a result in memory: in each step, or only the last steps' results; temporary ones for other
  /// blocks alone.
  std::string store(int v, const Access& to, const std::string& x, const char* indent);

  /// Code repeated for each of a thread's columns, of `columns` in all.
  std::string each_lane(std::int64_t columns, const std::string& text, const char* indent = "    ") const;
  /// The same for all threads: one without such a column takes the last.
  std::string every_lane(std::int64_t columns, const std::string& text) const;
  /// How far from the first element the one with this number lies, in the order of the axes; empty: all lie there.
  static std::string place(const std::vector<Axis>& axes, const std::string& number);
  /// A value in shared memory at (mine, column); `now`: this step's version, not the last step's.
  std::string in_shared(int v, bool now, const std::string& mine, const std::string& column) const;
  /// A source in shared memory, so far from its first column; empty: there.
  std::string in_shared(const Source& s, const std::string& mine, const std::string& place) const;
  std::string in_tile(int v, const std::string& plane, const std::string& mine, const std::string& near) const;
  /// The type of a group's weights in the kernel.
  static std::string weights_type(const ProductGroup& g, const char* type);
  /// Which of the block's columns of a group the warp's column `c` is.
  static std::string column_of_block(const ProductGroup& g);
  /// The full sum of a product, adding its partial sums.
  std::string tile_sum(int v) const;

  const LoopValues& loop_;
  const LoopLayout& layout_;
  std::vector<LoopMemory> memory_;
};

}  // namespace reel::cuda
