// What has no form of its own on the GPU yet: the arguments go down to the host, the CPU backend's kernel runs on them,
// and the results come up. It waits for the GPU.
#pragma once
#include <deque>
#include <vector>

#include "engine/backend.h"

namespace reel::cuda {

class ByCpu {
 public:
  explicit ByCpu(Backend& device) : device_(device) {}

  /// A host copy of `bytes` bytes of an argument, null for null; it lives as long as this object.
  template <class T>
  const T* in(const T* argument, std::size_t bytes) {
    if (!argument) return nullptr;
    std::byte* const copy = room(bytes);
    device_.read(copy, argument, bytes);
    return reinterpret_cast<const T*>(copy);
  }
  /// Room for a result, null for null; finish() takes it up.
  template <class T>
  T* out(T* result, std::size_t bytes) {
    if (!result) return nullptr;
    std::byte* const copy = room(bytes);
    results_.push_back({result, copy, bytes});
    return reinterpret_cast<T*>(copy);
  }
  Backend& cpu() const { return backend("cpu"); }
  void finish() {
    for (const Result& r : results_) device_.write(r.device, r.host, r.bytes);
  }

 private:
  struct Result {
    void* device;
    const std::byte* host;
    std::size_t bytes;
  };
  std::byte* room(std::size_t bytes) { return rooms_.emplace_back(bytes).data(); }

  Backend& device_;
  std::deque<std::vector<std::byte>> rooms_;
  std::vector<Result> results_;
};

}  // namespace reel::cuda
