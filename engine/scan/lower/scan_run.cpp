// Runs a scan: lowers the loop, then runs its shards in parallel.
#include <algorithm>

#include "engine/scan/lower/lowered_loop.h"

namespace reel {

void Scan::infer(Inputs in, std::span<Spec> out) const {
  REEL_ASSERT(static_cast<int>(in.size()) == body->inputs + body->consts);
  const auto n = static_cast<std::size_t>(carries), m = static_cast<std::size_t>(ys());
  for (std::size_t i = 0; i < n + m; ++i) {
    const Spec& spec = body->values[body->outputs[i]];
    out[i] = i < n ? spec : stacked(spec, length);
    if (save_carries && i < n) out[n + m + i] = stacked(spec, length + 1);
  }
}

void Scan::allocate(Inputs in, std::span<Tensor> out) const {
  std::vector<Spec> specs(out.size());
  infer(in, specs);
  const int m = carries + ys();
  const std::int64_t after = reverse ? 0 : 1;  // the index in a carry's values of the one after the step of time 0
  for (int i = 0; i < carries; ++i) {
    out[i] = Tensor::empty(specs[i]);
    if (save_carries) out[m + i] = Tensor::empty(specs[m + i]);
  }
  for (int j = carries; j < m; ++j) {
    const auto next = body->outputs.begin(), end = next + carries;
    const auto carry = save_carries ? std::find(next, end, body->outputs[j]) : end;
    out[j] = carry == end ? Tensor::empty(specs[j])
                          : out[m + static_cast<int>(carry - next)].view(
                                specs[j].shape, after * specs[static_cast<int>(carry - next)].shape.numel());
  }
}

void Scan::run(Inputs in, std::span<Tensor> out) const {
  if (!out.empty() && !out[0].defined()) allocate(in, out);
  LoweredLoop plan(*this, in, out);
  const std::int64_t rows = plan.rows.rows;
  if (rows == 0) return run_shard(plan, {});
  in[0].backend().parallel(plan.parts, [&](int p) {
    const std::int64_t first = rows * p / plan.parts, last = rows * (p + 1) / plan.parts;
    run_shard(plan, {first, last - first, p});
  });
  plan.finish();
}

}  // namespace reel
