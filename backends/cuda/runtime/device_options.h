// The options after "cuda" in a device name: ":1" picks a GPU, ",word" sets an option. "cuda:1,sync" is the second GPU,
// waiting for each kernel.
#pragma once
#include <string>

namespace reel::cuda {

/// How products of f32 and c64 are computed; weights and results stay f32.
enum class Precision { strict, tf32, bf16 };

struct DeviceOptions {
  int index = 0;
  bool sync = false;     // wait for each kernel, so that the failing call itself reports an error
  bool by_step = false;  // do not compile a time loop to one kernel
  bool at_once = false;  // compile it to one kernel wherever it fits, even if that is expected to be slower
  bool fma = false;      // its products by multiply-adds of f32, never by tensor cores
  Precision precision = Precision::strict;

  /// The shortest equivalent name: "cuda", "cuda:1", "cuda:1,sync,steps,tf32".
  std::string name() const;
};

/// Throws Error that lists the valid options.
DeviceOptions parse_device(const std::string& rest);

}  // namespace reel::cuda
