// Running a scan: a plan, then each thread its rows.
#include <algorithm>

#include "engine/loop_plan.h"

namespace reel {

void Scan::infer(Inputs in, std::span<Spec> out) const {
  REEL_ASSERT(static_cast<int>(in.size()) == body->inputs + body->captures);
  const auto n = static_cast<std::size_t>(carries), m = static_cast<std::size_t>(ys());
  for (std::size_t i = 0; i < n + m; ++i) {
    out[i] = body->slots[ix(body->outputs[i])];
    if (i >= n) out[i].shape = out[i].shape.insert(0, length);
    if (keep && i < n) {
      out[n + m + i] = out[i];
      out[n + m + i].shape = out[i].shape.insert(0, length + 1);
    }
  }
}

void Scan::allocate(Inputs in, std::span<Tensor> out) const {
  std::vector<Spec> specs(out.size());
  infer(in, specs);
  const int m = carries + ys();
  const std::int64_t after = reverse ? 0 : 1;  // where in a carry's values the one after time 0 lies
  for (int i = 0; i < carries; ++i) {
    out[ix(i)] = Tensor::empty(specs[ix(i)]);
    if (keep) out[ix(m + i)] = Tensor::empty(specs[ix(m + i)]);
  }
  for (int j = carries; j < m; ++j) {
    const auto next = body->outputs.begin(), end = next + carries;
    const auto carry = keep ? std::find(next, end, body->outputs[ix(j)]) : end;
    out[ix(j)] = carry == end
                     ? Tensor::empty(specs[ix(j)])
                     : out[ix(m + static_cast<int>(carry - next))].view(
                           specs[ix(j)].shape, after * specs[ix(static_cast<int>(carry - next))].shape.numel());
  }
}

void Scan::run(Inputs in, std::span<Tensor> out) const {
  if (!out.empty() && !out[0].defined()) allocate(in, out);
  LoopPlan plan(*this, in, out);
  const std::int64_t rows = plan.rows.rows;
  if (rows == 0) return run_rows(plan, {});
  in[0].backend().parallel(plan.parts, [&](int p) {
    const std::int64_t first = rows * p / plan.parts, last = rows * (p + 1) / plan.parts;
    run_rows(plan, {first, last - first, p});
  });
  plan.finish();
}

}  // namespace reel
