#include "backends/cuda/runtime/faults.h"

#include <cstring>

#include "backends/cuda/cuda.h"
#include "backends/shared/lookup.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {
constexpr const char* came_before = "; the call came before this read. Hint: with --device cuda,sync it is named";
}

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

FaultSlot* Faults::slot(const Lookup& lookup) {
  news_ = true;
  for (std::size_t i = 0; i < lookups_.size(); ++i) {
    if (lookups_[i].limit == lookup.limit && std::strcmp(lookups_[i].kernel, lookup.kernel) == 0) return device_ + i;
  }
  if (lookups_.size() == slots) return device_ + (slots - 1);  // out of slots: further kinds share the last one
  lookups_.push_back(lookups_.size() + 1 == slots ? Lookup{"lookup", -1} : lookup);
  return device_ + (lookups_.size() - 1);
}

std::string fault_text(const Lookup& lookup, FaultSlot slot) {
  const auto place = slot >> 32;
  const auto index = static_cast<std::int32_t>(static_cast<std::uint32_t>(slot));
  if (lookup.limit == Lookup::of_matrices) return "a matrix is singular, or not finite";
  if (lookup.limit < 0) return fmt::format("index {} at place {} is out of range", index, place);
  return index_text(index, static_cast<std::int64_t>(place), lookup.limit);
}

void Faults::report(const char* kernel, const std::string& text) {
  const std::lock_guard lock(reporting_);
  if (!reported_) reported_ = {kernel, text};
}

void Faults::report_warning(const char* kernel, const std::string& text) {
  const std::lock_guard lock(reporting_);
  if (!text.empty() && !warning_) warning_ = {kernel, text};
}

void Faults::fetch(cudaStream_t stream) {
  fetched_ = news_;
  if (!news_) return;
  check(cudaMemcpyAsync(host_, device_, lookups_.size() * sizeof(FaultSlot), cudaMemcpyDeviceToHost, stream),
        "lookups");
}

void Faults::check_fetched(cudaStream_t stream, bool at_call) {
  if (!fetched_) return;
  fetched_ = news_ = false;
  {
    const std::lock_guard lock(reporting_);
    if (const auto warning = std::exchange(warning_, std::nullopt)) warn(warning->first, warning->second);
    if (const auto reported = std::exchange(reported_, std::nullopt))
      throw Error(reported->first, reported->second + came_before);
  }
  for (std::size_t i = 0; i < lookups_.size(); ++i) {
    if (host_[i] == ~FaultSlot{0}) continue;
    const std::string text = fault_text(lookups_[i], host_[i]);
    check(cudaMemsetAsync(device_, 0xff, slots * sizeof(FaultSlot), stream), "cudaMemset");
    if (at_call) throw RuleError(text);
    throw Error(lookups_[i].kernel, text + came_before);
  }
}

void Faults::check_all(cudaStream_t stream, bool at_call) {
  fetch(stream);
  if (fetched_) check(cudaStreamSynchronize(stream), "lookups");
  check_fetched(stream, at_call);
}

}  // namespace reel::cuda
