// The weights of a loop over time, which its products read at each step: packed once, for all steps.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/lowered_loop.h"

namespace reel::cpu {

/// Of the loop that the calling thread runs: the right sides of products that no step changes, but for small ones.
class LoopWeights {
 public:
  static constexpr std::int64_t smallest = 8 << 10;  // bytes; a smaller one stays in the L1 cache as it is

  struct Weight {
    const void* data;
    DType dtype;
    std::int64_t k, n;
    bool transposed;
    std::int64_t rows;                   // of the left sides, over all steps
    std::shared_ptr<const void> packed;  // null until it is used

    /// The packed weight; makes it at the first use. Whatever it is depends on the dtype and extents alone.
    template <class Packed, class Make>
    const Packed& as(Make&& make) {
      if (!packed) packed = std::make_shared<const Packed>(make());
      return *static_cast<const Packed*>(packed.get());
    }
  };

  LoopWeights(const Backend& cpu, const LoweredLoop& loop, std::span<std::byte* const> buffers);
  LoopWeights(const LoopWeights&) = delete;
  ~LoopWeights();
  /// Those of this thread's innermost loop; null outside of loops.
  static LoopWeights* current();
  /// The right side of this product; null: it is none of these.
  Weight* find(const GemmArgs& product);

 private:
  std::vector<Weight> weights_;
  LoopWeights* outer_ = nullptr;
};

}  // namespace reel::cpu
