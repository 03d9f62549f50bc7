// Detects copies that are transposes: the innermost axes of in and out differ.
#pragma once
#include <optional>

#include "backends/cuda/kernels/plan.h"

namespace reel::cuda {

/// out[r * out_row + c] = in[c * in_column + r] for r < rows and c < columns, at each of the `places` outer indices.
struct Transpose {
  std::int64_t rows, columns, in_column, out_row, places;
  OffsetCalculator<2> walk;
};

/// The transpose that a loop over in and out performs, if it is one and its axes are long enough to pay for tiling.
inline std::optional<Transpose> as_transpose(const StridedLoop<2>& loop) {
  constexpr std::int64_t worth_it = 8;
  if (loop.rank < 2) return std::nullopt;
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  const auto [in_step, out_step] = loop.strides[last];
  if (out_step != 1 || in_step == 1 || in_step == 0 || loop.dims[last] < worth_it) return std::nullopt;
  for (int axis = loop.rank - 2; axis >= 0; --axis) {
    const auto k = static_cast<std::size_t>(axis);
    if (loop.strides[k][0] != 1 || loop.dims[k] < worth_it) continue;
    StridedLoop<2> others;
    for (int i = 0; i < loop.rank - 1; ++i) {
      const auto j = static_cast<std::size_t>(i);
      if (i != axis) others.push(loop.dims[j], loop.strides[j]);
    }
    return Transpose{loop.dims[k],       loop.dims[last], in_step,
                     loop.strides[k][1], others.numel(),  OffsetCalculator<2>(others)};
  }
  return std::nullopt;
}

}  // namespace reel::cuda
