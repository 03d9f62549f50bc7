#include "backends/cuda/runtime/staging.h"

#include <algorithm>
#include <cstring>

#include "backends/cuda/cuda.h"

namespace reel::cuda {

Staging::Staging() {
  for (Chunk& c : chunks_) {
    check(cudaMallocHost(reinterpret_cast<void**>(&c.data), chunk_bytes), "cudaMallocHost");
    check(cudaEventCreateWithFlags(&c.free, cudaEventDisableTiming), "cudaEventCreate");
  }
}

Staging::~Staging() {  // the driver may be gone at program exit: errors are ignored
  for (const Chunk& c : chunks_) {
    cudaFreeHost(c.data);
    cudaEventDestroy(c.free);
  }
}

void Staging::write(void* device, const void* host, std::size_t bytes, cudaStream_t stream) {
  for (std::size_t at = 0; at < bytes; at += chunk_bytes) {
    const std::size_t some = std::min(chunk_bytes, bytes - at);
    const Chunk& c = chunks_[next_++ % chunks];
    check(cudaEventSynchronize(c.free), "write: wait for a free buffer");
    std::memcpy(c.data, static_cast<const std::byte*>(host) + at, some);
    check(cudaMemcpyAsync(static_cast<std::byte*>(device) + at, c.data, some, cudaMemcpyHostToDevice, stream), "write");
    check(cudaEventRecord(c.free, stream), "cudaEventRecord");
  }
}

void Staging::read(void* host, const void* device, std::size_t bytes, cudaStream_t stream) {
  // In long reads the GPU fills some chunks while the host empties earlier ones. Chunks used by earlier writes are free
  // by then, since the stream runs in order.
  std::size_t asked = 0, taken = 0;
  std::array<std::size_t, chunks> at{}, size{};
  std::size_t first = 0, waiting = 0;
  while (taken < bytes) {
    while (asked < bytes && waiting < chunks) {
      const std::size_t k = (first + waiting) % chunks;
      at[k] = asked;
      size[k] = std::min(chunk_bytes, bytes - asked);
      check(cudaMemcpyAsync(chunks_[k].data, static_cast<const std::byte*>(device) + asked, size[k],
                            cudaMemcpyDeviceToHost, stream),
            "read");
      check(cudaEventRecord(chunks_[k].free, stream), "cudaEventRecord");
      asked += size[k];
      ++waiting;
    }
    check(cudaEventSynchronize(chunks_[first].free), "read: wait for the GPU");
    std::memcpy(static_cast<std::byte*>(host) + at[first], chunks_[first].data, size[first]);
    taken += size[first];
    first = (first + 1) % chunks;
    --waiting;
  }
}

}  // namespace reel::cuda
