// Segmented scan, or gradient checkpointing in time: a scan over blocks of steps, whose step is a scan over one block.
// The outer loop saves the state at the start of each block. Its gradient runs the steps of a block again and saves
// their states only for that block.

#include "engine/autodiff/primitives.h"
#include "engine/scan/scan.h"

namespace reel {

ScanResult segmented_scan(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options,
                          std::int64_t length, const Loc& where) {
  const std::int64_t every = options.checkpoint_every, blocks = length / every, rest = length % every;
  ScanOptions within = options, across = options;
  within.checkpoint_every = across.checkpoint_every = 0;
  within.length = every;
  across.length = blocks;
  // These passes make values stacked over all times.
  across.passes.hoist_inputs = across.passes.sink_reductions = across.passes.rematerialize = false;

  // The remaining steps, fewer than a block, run last.
  const std::int64_t first_whole = options.reverse ? rest : 0, first_rest = options.reverse ? 0 : length - rest;
  Tensors whole, left;
  for (const Tensor& x : xs) {
    const Tensor part = primitive::slice_leading(x, first_whole, first_whole + blocks * every);
    whole.push_back(primitive::reshape(part, x.shape().erase(0).insert(0, every).insert(0, blocks)));
    left.push_back(primitive::slice_leading(x, first_rest, first_rest + rest));
  }
  const auto block = [&](const Tensors& s, const Tensors& x) {
    ScanResult r = scan(step, s, x, within, where);
    return Next{std::move(r.last), std::move(r.ys)};
  };
  ScanResult result = scan(block, state, whole, across, where);
  for (Tensor& y : result.ys) {
    Shape shape = y.shape().erase(0);
    shape.set(0, blocks * every);
    y = primitive::reshape(y, shape);
  }
  if (rest == 0) return result;
  within.length = rest;
  ScanResult end = scan(step, result.last, left, within, where);
  for (std::size_t k = 0; k < result.ys.size(); ++k) {
    Tensors parts{result.ys[k], end.ys[k]};
    if (options.reverse) std::swap(parts[0], parts[1]);
    end.ys[k] = primitive::concat_leading(parts);
  }
  return end;
}

}  // namespace reel
