// A captured graph: kernels captured from the stream as a CUDA graph, and replayed by one launch.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
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
  /// Page-locked host memory that lives as long as the graph.
  std::byte* host_memory(std::size_t bytes);
  /// Adds a node that calls f on the host, in its place among the kernels. f must not throw or call CUDA.
  void call_host(std::function<void()> f);
  /// Call after each launch during the capture. Throws NotCapturable at too many: a node takes some KB of the host's
  /// memory, and all nodes are made before the first run.
  void count_kernel();
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
  std::vector<std::byte*> host_memory_;
  std::vector<std::unique_ptr<std::function<void()>>> host_calls_;  // at fixed addresses, which the nodes hold
  cudaGraphExec_t graph_ = nullptr;
  std::size_t size_ = 0, kernels_ = 0;
  bool writing_ = false;
};

}  // namespace reel::cuda
