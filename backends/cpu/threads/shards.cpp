// Into how many shards a loop cuts its batch. This decides the order of additions over the batch, so it follows from
// sizes alone, whatever the number of threads.
#include "backends/cpu/cpu.h"

namespace reel::cpu {

std::int64_t Cpu::shards(const ShardSizes& sizes) const {
  const auto& [rows, weights, step] = sizes;
  if (shards_ > 0) return std::min<std::int64_t>(shards_, rows);
  const CostModel prices = costs();
  std::int64_t parts = 1;
  if (weights > prices.few_weights) {  // each shard reads them again: 16 rows of it or more
    while (rows >= 32 * parts) parts *= 2;
    return parts;
  }
  while (rows >= (parts == 1 ? 10 : 20 * parts * parts)) parts *= 2;  // 2 from 10 rows on, 4 from 80, 8 from 320
  if (step / parts <= prices.step_cache) return parts;
  const std::int64_t height = std::max<std::int64_t>(1, prices.step_cache / (step / rows)),
                     least = (rows + height - 1) / height;
  return std::min(rows, (least + parts - 1) / parts * parts);
}

}  // namespace reel::cpu
