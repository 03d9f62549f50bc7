// How kernels take part when a loop is looked at: they note their call instead of making it.
#pragma once
#include "backends/cuda/cuda.h"

namespace reel::cuda {

template <class Args>
bool Cuda::noted(const Args& a) {
  if (notes_ && !notes_->note(a)) throw NotNoted();
  return notes_ != nullptr;
}

}  // namespace reel::cuda
