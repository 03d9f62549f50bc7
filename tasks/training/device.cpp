#include "tasks/training/device.h"

namespace reel {

void fill_from(const Tensor& source, Tensor target) {
  if (&source.backend() == &target.backend()) return target.assign(source);
  std::vector<std::byte> bytes(source.bytes());
  source.backend().read(bytes.data(), source.data(), bytes.size());
  target.backend().write(target.data(), bytes.data(), bytes.size());
  target.mark_changed();
}

Tensor on(const Tensor& x, Backend& device) {
  if (!x.defined() || &x.backend() == &device) return x;
  Tensor out = Tensor::empty({x.dtype(), x.shape(), &device});
  fill_from(x, out);
  return out;
}

Batch on(const Batch& batch, Backend& device) {
  Batch out{on(batch.x, device), on(batch.y, device), on(batch.weight, device)};
  for (const Tensor& x : batch.more) out.more.push_back(on(x, device));
  out.lengths = on(batch.lengths, device);
  return out;
}

}  // namespace reel
