// What follows "cuda" in the name of a device: ":1" picks a GPU, ",word" an option. "cuda:1,sync" is the second GPU,
// with each kernel waited for.
#pragma once
#include <string>

namespace reel::cuda {

/// How products of f32 and c64 are computed; weights and results stay f32.
enum class Precision { strict, tf32, bf16 };

struct DeviceOptions {
  int index = 0;
  bool sync = false;     // wait for each kernel, so that an error is told by the call that made it
  bool by_step = false;  // no kernels of whole time loops
  Precision precision = Precision::strict;

  /// The shortest name that means this: "cuda", "cuda:1", "cuda:1,sync,steps,tf32".
  std::string name() const;
};

/// Throws Error that lists what may follow "cuda".
DeviceOptions parse_device(const std::string& rest);

}  // namespace reel::cuda
