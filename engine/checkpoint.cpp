// Checkpoints: a scan over blocks of time whose step is a scan over the steps of a block. The outer loop keeps the
// state at the start of each block; its gradient runs a block's steps again, which keeps their states while they are
// needed.
#include <algorithm>

#include "engine/primitives.h"
#include "engine/scan.h"

namespace reel {

ScanResult scan_with_checkpoints(const Step& step, const Tensors& state, const Tensors& xs, const ScanOptions& options,
                                 std::int64_t length, const Where& where) {
  const std::int64_t every = options.checkpoint_every, blocks = length / every, rest = length % every;
  ScanOptions within = options, across = options;
  within.checkpoint_every = across.checkpoint_every = 0;
  within.length = every;
  across.length = blocks;
  across.passes.hoist_inputs = across.passes.sink = across.passes.save = false;  // what makes slabs of all times

  // Steps that are not a whole block come last.
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
