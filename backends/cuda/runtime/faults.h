// Out-of-range indices. A kernel that finds one skips it and records it in a slot of device memory. The slots are
// checked at the next read-back, which waits for the GPU anyway, so gathers need no synchronization. Checks of matrices
// work the same way during a capture, when waiting is impossible.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reel::cuda {

/// What a kernel records: position << 32 | value of the first bad index. All ones: no fault.
using FaultSlot = unsigned long long;

/// A kind of lookup, for the error message.
struct Lookup {
  const char* kernel;
  std::int64_t limit;  // indices must be below; -1: unknown; of_matrices: a check of matrices, not a lookup
  static constexpr std::int64_t of_matrices = -2;
};

/// "index 7 at place 3 is not in 0..4", from a slot's contents; for matrices only that one of them is bad.
std::string fault_text(const Lookup& lookup, FaultSlot slot);

class Faults {
 public:
  explicit Faults(cudaStream_t stream);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// The slot for a kernel about to be launched: one for all lookups of its kind, and never moved, since captured
  /// graphs hold its address.
  FaultSlot* slot(const Lookup& lookup);
  /// All slots in use, in device memory.
  std::span<const FaultSlot> all() const { return {device_, lookups_.size()}; }
  /// To be called when kernels that have slots are launched again.
  void launched() { news_ = true; }
  /// Records the first error of a kernel that the CPU runs for a captured graph; from any thread.
  void report(const char* kernel, const std::string& text);
  /// The same for a warning, unless it is empty.
  void report_warning(const char* kernel, const std::string& text);
  /// Copies the slots to the host, behind the work now in the stream; valid once the stream is synchronized.
  void fetch(cudaStream_t stream);
  /// Warns of what was reported. Throws RuleError if a kernel before the last fetch met a bad index. `at_call`: the
  /// fault can only come from the op now running; otherwise the message says that the call came earlier.
  void check_fetched(cudaStream_t stream, bool at_call);
  /// Fetches, synchronizes and checks.
  void check_all(cudaStream_t stream, bool at_call);

 private:
  static constexpr std::size_t slots = 1024;
  FaultSlot *device_ = nullptr, *host_ = nullptr;
  std::vector<Lookup> lookups_;  // by slot
  bool news_ = false, fetched_ = false;
  std::mutex reporting_;
  std::optional<std::pair<const char*, std::string>> reported_, warning_;  // kernel, text
};

}  // namespace reel::cuda
