// The part of a loop kernel's source that transforms rows.
#pragma once
#include "backends/cuda/codegen/loop_reductions.h"

namespace reel::cuda {

class TransformText : protected ReductionText {
 protected:
  using ReductionText::ReductionText;

  /// Adds a Fourier transform to the kernel. `after_barrier`: there is one before the stage.
  void transform(int c, bool after_barrier);

  bool transforms_ = false;
};

}  // namespace reel::cuda
