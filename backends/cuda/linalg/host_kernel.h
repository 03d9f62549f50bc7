// Kernels that only the CPU backend has, in a capture: a node of the graph copies the arguments to the host, one calls
// the CPU's kernel, and one copies the results back. Nothing waits.
#pragma once
#include <cstring>
#include <exception>

#include "backends/cuda/cuda.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/graph.h"
#include "backends/shared/cpu_fallback.h"

namespace reel::cuda {

/// Runs the CPU's kernel and returns its result; during a capture captures it and returns an empty result. An error of
/// a captured kernel is reported by the next read, and its results are NaN until then; so is a warning.
template <class Result, class Args>
Result Cuda::run_on_host(const char* name, Result (Backend::*kernel)(const Args&), const Args& args) {
  if (!capturing_) return cpu_fallback(*this, kernel, args);
  struct Copy {
    std::byte *host, *device;
    std::size_t bytes;
  };
  std::vector<Copy> results;
  Args on_host = args;
  on_host.arrays([&]<class E>(E*& pointer, DType dtype, std::int64_t elements) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
    if (!pointer || bytes == 0) return;
    std::byte* const host = capturing_->host_memory(bytes);
    if constexpr (std::is_const_v<E>)
      check(cudaMemcpyAsync(host, pointer, bytes, cudaMemcpyDeviceToHost, stream()), name);
    else
      results.push_back({host, reinterpret_cast<std::byte*>(pointer), bytes});
    pointer = reinterpret_cast<E*>(host);
  });
  capturing_->call_host([&cpu = backend("cpu"), faults = faults_.get(), name, kernel, on_host, results] {
    try {
      if constexpr (std::is_void_v<Result>) {
        (cpu.*kernel)(on_host);
      } else {
        faults->report_warning(name, warning_of(on_host, (cpu.*kernel)(on_host)));
      }
    } catch (const std::exception& e) {
      faults->report(name, e.what());
      for (const Copy& r : results) std::memset(r.host, 0xff, r.bytes);
    }
  });
  for (const Copy& r : results)
    check(cudaMemcpyAsync(r.device, r.host, r.bytes, cudaMemcpyHostToDevice, stream()), name);
  return Result();
}

}  // namespace reel::cuda
