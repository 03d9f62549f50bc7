// Launches in the text of .cu files, which the build turns from `kernel<<<blocks, threads, shared,
// stream>>>(arguments)` into `cuda_emulator::Launch(blocks, threads, shared, stream).of([](auto... a) { kernel(a...);
// })(arguments)`.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

#include "tests/emulator/device.h"
#include "tests/emulator/simt_emulator.h"

namespace cuda_emulator {

class Launch {
 public:
  Launch(dim3 blocks, dim3 threads, unsigned shared, cudaStream_t stream)
      : blocks_(blocks), threads_(threads), stream_(stream) {
    if (blocks.x == 0 || blocks.x > 0x7fffffffU || blocks.y * blocks.z != 1)
      misused("launch", "not a grid of blocks in a row, of at least one");
    if (threads.x * threads.y == 0 || threads.x * threads.y > most_threads || threads.z != 1)
      misused("launch", "blocks have 1 to 1024 threads");
    if (shared > static_cast<unsigned>(usual_shared_bytes)) misused("launch", "too much shared memory");
  }
  template <class F>
  auto of(F kernel) const {
    return [kernel, launch = *this](auto... arguments) {
      check_current(launch.stream_);
      submit(launch.stream_, [=] {
        const auto run = [=] { kernel(arguments...); };
        if (!simt_emulator::launch(run, launch.blocks_.x, {launch.threads_.x, launch.threads_.y}, false))
          misused("kernel", "its threads wait for ever");
      });
    };
  }

 private:
  dim3 blocks_, threads_;
  cudaStream_t stream_;
};

}  // namespace cuda_emulator

/// Of integers, and here never of two threads at once.
template <class T>
T atomicMin(T* place, T value) {
  const T before = *place;
  if (value < before) *place = value;
  return before;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
using std::max, std::min;
