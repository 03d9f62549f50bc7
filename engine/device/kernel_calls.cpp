#include "engine/device/kernel_calls.h"

#include "engine/device/backend.h"

namespace reel {

const char* KernelCall::name() const {
#define REEL_KERNEL_NAME(name, Args) #name,
  static constexpr const char* names[] = {REEL_KERNELS(REEL_KERNEL_NAME) "host"};
#undef REEL_KERNEL_NAME
  return names[args_.index()];
}

void KernelCall::run(Backend& backend) const {
  switch (kernel()) {
#define REEL_RUN_KERNEL(name, Args) \
  case Kernel::name:                \
    return backend.name(*as<Kernel::name>());
    REEL_KERNELS(REEL_RUN_KERNEL)
#undef REEL_RUN_KERNEL
    case Kernel::host:
      return as<Kernel::host>()->run(as<Kernel::host>()->operands);
  }
}

}  // namespace reel
