// A captured graph: kernels captured from the stream as a CUDA graph, and replayed by one launch.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "backends/shared/allocator.h"
#include "engine/device/backend.h"

namespace reel::cuda {

class Cuda;

class Graph final : public CapturedGraph {
 public:
  explicit Graph(Cuda& device);
  ~Graph() override;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void stop() override;
  void replay() override;
  std::size_t size() const override { return size_; }

  /// The pool for what is allocated during the capture.
  const std::shared_ptr<CachingAllocator>& pool() const { return pool_; }
  /// Device memory that holds these bytes whenever the graph runs.
  const void* constant(const void* host, std::size_t bytes);
  /// Keeps a block that its owner released during the capture: kernels of the graph may read it.
  void keep(Storage* storage) { kept_.push_back(storage); }

 private:
  /// Bytes from the host, uploaded when the capture ends.
  struct Constant {
    StoragePtr room;
    std::vector<std::byte> bytes;
  };
  void end();

  Cuda& device_;
  std::shared_ptr<CachingAllocator> pool_;
  std::vector<Constant> constants_;
  std::vector<Storage*> kept_;
  cudaGraphExec_t graph_ = nullptr;
  std::size_t size_ = 0;
  bool writing_ = false;
};

}  // namespace reel::cuda
