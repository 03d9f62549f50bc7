// Kernels written down as a CUDA graph: capture of the stream, and one launch for all of them.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "backends/allocator.h"
#include "engine/backend.h"

namespace reel::cuda {

class Cuda;

class Graph final : public Recording {
 public:
  explicit Graph(Cuda& device);
  ~Graph() override;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void stop() override;
  void replay() override;
  std::size_t size() const override { return size_; }

  /// What is allocated while this is written.
  const std::shared_ptr<CachingAllocator>& pool() const { return pool_; }
  /// Memory of the device that holds these bytes whenever the graph runs.
  const void* constant(const void* host, std::size_t bytes);
  /// Keeps a block that its owner gave back while this is written: kernels of the graph may read it.
  void keep(Storage* storage) { kept_.push_back(storage); }

 private:
  /// Bytes that the host wrote; they go up when all is written down.
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
