// Initial values of parameters.
#pragma once
#include "ops/ops.h"

namespace reel {

/// Makes initial values of one dtype on one device, each from its own random stream.
class Init {
 public:
  Init(std::uint64_t seed, DType type = DType::f32, Backend& device = reel::backend())
      : dtype(type), backend(&device), seed_(seed) {}
  /// Uniform in [-bound, bound).
  Tensor uniform(const Shape& shape, double bound) { return uniform(shape, -bound, bound); }
  Tensor uniform(const Shape& shape, double low, double high);
  Tensor normal(const Shape& shape, double deviation);
  Tensor constant(const Shape& shape, double value) const { return Tensor::full(shape, value, dtype, *backend); }
  /// Glorot and Bengio 2010 for W [out, in]: uniform in +-sqrt(6 / (in + out)), or normal of variance 2 / (in + out).
  Tensor glorot_uniform(const Shape& shape, double gain = 1);
  Tensor glorot_normal(const Shape& shape, double gain = 1);
  /// Random orthogonal [n, n], Haar distributed: the Q of a normal matrix, with R's diagonal positive.
  Tensor orthogonal(std::int64_t n);
  /// A skew-symmetric matrix of 2 x 2 blocks [[0, s], [-s, 0]] with s = f(u), u uniform in [low, high). For odd n the
  /// last row is 0.
  Tensor skew_blocks(std::int64_t n, double low, double high, double (*f)(double));
  /// Complex values whose real and imaginary parts are uniform in [-bound, bound).
  Tensor complex_uniform(const Shape& shape, double bound);
  /// A random permutation of 0..n-1, i32.
  Tensor order(std::int64_t n);
  /// The seed and a fresh stream, for any other random numbers.
  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() { return next_++; }

  DType dtype;
  Backend* backend;

 private:
  std::uint64_t seed_, next_ = std::uint64_t{3} << 60;  // far from those of examples
};

}  // namespace reel
