#include "backends/cuda/faults.h"

#include "backends/cuda/cuda.h"
#include "engine/error.h"

namespace reel::cuda {

Faults::Faults(cudaStream_t stream) {
  constexpr std::size_t bytes = slots * sizeof(FaultSlot);
  check(cudaMalloc(reinterpret_cast<void**>(&device_), bytes), "cudaMalloc");
  check(cudaMallocHost(reinterpret_cast<void**>(&host_), bytes), "cudaMallocHost");
  check(cudaMemsetAsync(device_, 0xff, bytes, stream), "cudaMemset");
}

Faults::~Faults() {
  cudaFree(device_);
  cudaFreeHost(host_);
}

FaultSlot* Faults::slot(const Lookup& lookup, cudaStream_t stream) {
  if (pending_.size() == slots) check_all(stream, false);
  pending_.push_back(lookup);
  return device_ + (pending_.size() - 1);
}

std::string fault_text(const Lookup& lookup, FaultSlot slot) {
  const auto place = slot >> 32;
  const auto index = static_cast<std::int32_t>(static_cast<std::uint32_t>(slot));
  if (lookup.limit == 0) return fmt::format("index {} at place {}, but there is nothing to look up", index, place);
  return fmt::format("index {} at place {} is not in 0..{}", index, place, lookup.limit - 1);
}

void Faults::check_all(cudaStream_t stream, bool at_call) {
  if (pending_.empty()) return;
  const std::size_t bytes = pending_.size() * sizeof(FaultSlot);
  check(cudaMemcpyAsync(host_, device_, bytes, cudaMemcpyDeviceToHost, stream), "lookups");
  check(cudaStreamSynchronize(stream), "lookups");
  const std::vector<Lookup> done = std::move(pending_);
  pending_.clear();
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (host_[i] == ~FaultSlot{0}) continue;
    const std::string text = fault_text(done[i], host_[i]);
    check(cudaMemsetAsync(device_, 0xff, bytes, stream), "cudaMemset");
    if (at_call) throw RuleError(text);
    throw Error(done[i].kernel, text + "; the call came before this read. Hint: with --device cuda,sync it is named");
  }
}

}  // namespace reel::cuda
