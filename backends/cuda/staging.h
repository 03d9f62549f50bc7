// Pinned host memory through which tensors are read and written: the GPU fetches from it by itself, so that a write
// returns while the GPU is still at earlier work.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

namespace reel::cuda {

class Staging {
 public:
  Staging();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Copies to the device in the order of the stream; `host` may be changed when it returns.
  void write(void* device, const void* host, std::size_t bytes, cudaStream_t stream);
  /// Waits for all work of the stream, and for the elements.
  void read(void* host, const void* device, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t chunks = 8, chunk_bytes = std::size_t{1} << 20;
  struct Chunk {
    std::byte* data = nullptr;
    cudaEvent_t free = nullptr;  // happens when the GPU has read it
  };
  std::array<Chunk, chunks> chunks_;
  std::size_t next_ = 0;
};

}  // namespace reel::cuda
