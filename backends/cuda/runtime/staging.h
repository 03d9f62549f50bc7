// Pinned host memory for reads and writes of tensors: the GPU copies from it asynchronously, so a write returns while
// the GPU is still busy with earlier work, unless all chunks are in use by earlier writes.
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

  /// Copies to the device in stream order; `host` may be changed after it returns.
  void write(void* device, const void* host, std::size_t bytes, cudaStream_t stream);
  /// Synchronizes with all work of the stream and copies the elements to the host.
  void read(void* host, const void* device, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t chunks = 8, chunk_bytes = std::size_t{1} << 20;
  struct Chunk {
    std::byte* data = nullptr;
    cudaEvent_t free = nullptr;  // signaled when the GPU has read the chunk
  };
  std::array<Chunk, chunks> chunks_;
  std::size_t next_ = 0;
};

}  // namespace reel::cuda
