// Random tensors.
#include "ops/ops.h"

namespace reel {

namespace {
Tensor fill(Distribution distribution, const Shape& shape, double a, double b, std::uint64_t seed, std::uint64_t stream,
            DType dtype, Backend& backend) {
  if (!is_floating(dtype)) throw Error("random", fmt::format("f32 or f64 is wanted, got {}", name_of(dtype)));
  Tensor out = Tensor::empty({dtype, shape, &backend});
  backend.random({distribution, dtype, out.numel(), a, b, seed, stream, out.data()});
  return out;
}
}  // namespace

Tensor uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::uint64_t stream, DType dtype,
               Backend& backend) {
  if (!(low <= high)) throw Error("uniform", fmt::format("low must not be above high, got {} and {}", low, high));
  return fill(Distribution::uniform, shape, low, high, seed, stream, dtype, backend);
}

Tensor normal(const Shape& shape, double mean, double deviation, std::uint64_t seed, std::uint64_t stream, DType dtype,
              Backend& backend) {
  if (!(deviation >= 0)) throw Error("normal", fmt::format("the deviation is 0 or more, got {}", deviation));
  return fill(Distribution::normal, shape, mean, deviation, seed, stream, dtype, backend);
}

}  // namespace reel
