#include "tasks/training/checksum.h"

#include <zlib.h>

namespace reel {

std::string checksum(const Tensors& tensors) {
  uLong crc = 0;
  for (const Tensor& x : tensors) {
    if (!x.defined()) continue;
    std::vector<unsigned char> bytes(x.bytes());
    x.backend().read(bytes.data(), x.data(), bytes.size());
    crc = crc32_z(crc, bytes.data(), bytes.size());
  }
  return fmt::format("{:08x}", crc);
}

}  // namespace reel
