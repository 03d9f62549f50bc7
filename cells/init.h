// Where parameters come from when a model is made.
#pragma once
#include "ops/ops.h"

namespace reel {

/// dtype, device, and random numbers that differ for each parameter.
class Init {
 public:
  Init(std::uint64_t seed, DType dtype = DType::f32, Backend& backend = reel::backend())
      : dtype(dtype), backend(&backend), seed_(seed) {}
  /// Uniform in [-bound, bound).
  Tensor uniform(const Shape& shape, double bound) { return uniform(shape, -bound, bound); }
  Tensor uniform(const Shape& shape, double low, double high);
  Tensor normal(const Shape& shape, double deviation);
  Tensor constant(const Shape& shape, double value) const { return Tensor::full(shape, value, dtype, *backend); }
  /// Glorot and Bengio 2010 for W [out, in]: uniform in +-sqrt(6 / (in + out)), or normal of variance 2 / (in + out).
  Tensor glorot_uniform(const Shape& shape, double gain = 1);
  Tensor glorot_normal(const Shape& shape, double gain = 1);
  /// Random orthogonal [n, n] by the Haar measure: the Q of a normal matrix with R's diagonal positive.
  Tensor orthogonal(std::int64_t n);
  /// Skew matrices of 2 x 2 blocks [[0, s], [-s, 0]] with s = f(u), u uniform in [low, high); an odd last row is 0.
  Tensor skew_blocks(std::int64_t n, double low, double high, double (*f)(double));
  /// Complex, real and imaginary part by one of the above.
  Tensor complex_uniform(const Shape& shape, double bound);
  /// A random order of 0..n-1, i32.
  Tensor order(std::int64_t n);
  /// Seed and stream for random numbers of another kind.
  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() { return next_++; }

  DType dtype;
  Backend* backend;

 private:
  std::uint64_t seed_, next_ = std::uint64_t{3} << 60;  // streams far from those of data
};

}  // namespace reel
