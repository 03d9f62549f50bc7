// Indices out of range. A kernel that meets one leaves the place alone and notes it in a slot of device memory; the
// slots are looked at with the next read-back, which waits for the GPU anyhow, so that lookups cost no waiting. So it
// is with checks of matrices while kernels are written down, when nothing can be waited for.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reel::cuda {

/// What a kernel notes: place << 32 | index of the first bad place. All ones: nothing.
using FaultSlot = unsigned long long;

/// A kind of lookup: what is told of a bad index besides.
struct Lookup {
  const char* kernel;
  std::int64_t limit;  // indices must be below; -1: not known; of_matrices: no lookup, but a check of matrices
  static constexpr std::int64_t of_matrices = -2;
};

/// "index 7 at place 3 is not in 0..4", of what a slot holds; of matrices it holds no more than that one is bad.
std::string fault_text(const Lookup& lookup, FaultSlot slot);

class Faults {
 public:
  explicit Faults(cudaStream_t stream);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// The slot for a kernel about to be launched: one for all lookups of its kind, and the same to the end, as graphs
  /// remember it.
  FaultSlot* slot(const Lookup& lookup);
  /// All slots that kernels have so far, in memory of the device.
  std::span<const FaultSlot> all() const { return {device_, lookups_.size()}; }
  /// Kernels that have slots are launched again.
  void launched() { news_ = true; }
  /// Asks for the slots behind what is in the stream now; they are here when it has been waited for.
  void fetch(cudaStream_t stream);
  /// Throws RuleError if a kernel before the last fetch met a bad index. `at_call`: the only one there can be is that
  /// of the op now running; otherwise the text says that the call came earlier.
  void check_fetched(cudaStream_t stream, bool at_call);
  /// Both, with the waiting.
  void check_all(cudaStream_t stream, bool at_call);

 private:
  static constexpr std::size_t slots = 1024;
  FaultSlot *device_ = nullptr, *host_ = nullptr;
  std::vector<Lookup> lookups_;  // by slot
  bool news_ = false, fetched_ = false;
};

}  // namespace reel::cuda
