#include "cells/init.h"

#include <cmath>

namespace reel {

namespace {
double fans(const Shape& shape) { return static_cast<double>(shape[0] + shape[1]); }
}  // namespace

Tensor Init::uniform(const Shape& shape, double low, double high) {
  return reel::uniform(shape, low, high, seed_, next_++, dtype, *backend);
}
Tensor Init::normal(const Shape& shape, double deviation) {
  return reel::normal(shape, 0, deviation, seed_, next_++, dtype, *backend);
}
Tensor Init::glorot_uniform(const Shape& shape, double gain) {
  return uniform(shape, gain * std::sqrt(6 / fans(shape)));
}
Tensor Init::glorot_normal(const Shape& shape, double gain) { return normal(shape, gain * std::sqrt(2 / fans(shape))); }

Tensor Init::orthogonal(std::int64_t n) { return qr(normal({n, n}, 1)).Q; }

Tensor Init::skew_blocks(std::int64_t n, double low, double high, double (*f)(double)) {
  std::vector<double> A(static_cast<std::size_t>(n * n));
  Stream random(seed_, next_++);
  for (std::int64_t j = 0; j + 1 < n; j += 2) {
    const double s = f(std::fma(high - low, random.uniform(), low));  // rounded once, on every processor
    A[static_cast<std::size_t>(j * n + j + 1)] = s;
    A[static_cast<std::size_t>((j + 1) * n + j)] = -s;
  }
  return cast(Tensor::from(std::span<const double>(A), {n, n}, *backend), dtype);
}

Tensor Init::complex_uniform(const Shape& shape, double bound) {
  const Tensor re = uniform(shape, bound), im = uniform(shape, bound);
  return complex(re, im);
}

Tensor Init::order(std::int64_t n) { return permutation(n, seed_, next_++, *backend); }

}  // namespace reel
