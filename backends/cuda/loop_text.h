// Names in the text of a loop's kernel: of memory, of values in registers and shared memory, of a thread's elements.
#pragma once
#include "backends/cuda/loop_source.h"

namespace reel::cuda {

class LoopText {
 protected:
  LoopText(const LoopValues& loop, const LoopLayout& layout);

  const LoopCall& call(int c) const { return loop_.calls[static_cast<std::size_t>(c)]; }
  const LoopValue& value(int v) const { return loop_.values[static_cast<std::size_t>(v)]; }
  const Room& room(int v) const { return layout_.rooms[static_cast<std::size_t>(v)]; }
  const char* type(DType d);

  /// Memory in step `i`, as text.
  std::string memory(const LoopMemory& place, DType d, bool reads, const std::string& i);
  std::string memory(const LoopWalk& walk, DType d, bool reads, const std::string& i) {
    return memory(LoopMemory{walk}, d, reads, i);
  }
  /// Where a value lies whose next one is made while other blocks still read it.
  std::optional<LoopMemory> scratch(int v) const;
  /// Memory gets what a step makes: at each step, or the last ones of it.
  std::string store(int v, const Access& to, const std::string& x, const char* indent);

  /// Text for each column of `columns` that a thread has.
  std::string each_lane(std::int64_t columns, const std::string& text, const char* indent = "    ") const;
  /// Shared memory of a value at (mine, column); `now`: that of this step.
  std::string in_shared(int v, bool now, const std::string& mine, const std::string& column) const;
  std::string in_tile(int v, const std::string& plane, const std::string& mine, const std::string& near) const;
  /// The whole of a product's sum, which may be in parts.
  std::string tile_sum(int v) const;

  const LoopValues& loop_;
  const LoopLayout& layout_;
  std::vector<LoopMemory> memory_;
  bool complex_ = false;
};

}  // namespace reel::cuda
