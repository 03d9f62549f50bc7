// Random tensors.
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/ops.h"

namespace reel {

namespace {

Tensor filled(Distribution distribution, const Spec& spec, double a, double b, std::uint64_t seed, std::uint64_t stream,
              const double* offset = nullptr) {
  Tensor out = Tensor::empty(spec);
  out.backend().random({.distribution = distribution,
                        .dtype = spec.dtype,
                        .n = out.numel(),
                        .a = a,
                        .b = b,
                        .seed = seed,
                        .stream = stream,
                        .out = out.data(),
                        .offset = offset});
  return out;
}

void check_floating(const char* name, DType dtype, const Loc& where) {
  if (!is_floating(dtype)) fail(name, where, "f32 or f64 expected, got {}", name_of(dtype));
}

/// The largest number of a dtype: numbers are made in it.
double largest(DType dtype) {
  return dispatch_floating(
      dtype, []<class T>(std::type_identity<T>) { return static_cast<double>(std::numeric_limits<T>::max()); });
}

void check_probability(const char* name, double p, const Loc& where) {
  if (!(p >= 0 && p <= 1)) fail(name, where, "a probability is in 0..1, got {}", p);
}

/// 0..n-1, shuffled (Fisher and Yates); below(i) returns a random integer in 0..i-1.
template <class Below>
Tensor shuffled(const char* name, std::int64_t n, Backend& backend, const Loc& where, Below&& below) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (n < 0 || n > most) fail(name, where, "0 to {} numbers can be put in order, got {}", most, n);
  // Drawn on the host, the order would be the same whenever a captured step is replayed: refused as other drawing is.
  filled(Distribution::uniform, {DType::f32, {0}, &backend}, 0, 1, 0, 0);
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[static_cast<std::size_t>(below(i))]);
  return Tensor::from<std::int32_t>(order, {n}, backend);
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::uint64_t stream, DType dtype,
               Backend& backend, Loc where) {
  if (!(low <= high)) fail("uniform", where, "low must not be above high, got {} and {}", low, high);
  check_floating("uniform", dtype, where);
  if (!(std::max({std::abs(low), std::abs(high), high - low}) <= largest(dtype)))
    fail("uniform", where, "the bounds must be finite in {}, and high - low, too, got {} and {}", name_of(dtype), low,
         high);
  return filled(Distribution::uniform, {dtype, shape, &backend}, low, high, seed, stream);
}

Tensor normal(const Shape& shape, double mean, double deviation, std::uint64_t seed, std::uint64_t stream, DType dtype,
              Backend& backend, Loc where) {
  if (!(deviation >= 0)) fail("normal", where, "the deviation is 0 or more, got {}", deviation);
  check_floating("normal", dtype, where);
  if (!(std::abs(mean) + deviation <= largest(dtype)))
    fail("normal", where, "mean and deviation must be finite in {}, got {} and {}", name_of(dtype), mean, deviation);
  return filled(Distribution::normal, {dtype, shape, &backend}, mean, deviation, seed, stream);
}

Tensor bernoulli(const Shape& shape, double p, std::uint64_t seed, std::uint64_t stream, Backend& backend, Loc where) {
  check_probability("bernoulli", p, where);
  return filled(Distribution::bernoulli, {DType::boolean, shape, &backend}, p, 0, seed, stream);
}

Tensor integers(const Shape& shape, std::int64_t low, std::int64_t high, std::uint64_t seed, std::uint64_t stream,
                Backend& backend, Loc where) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (low < Limits::min() || high - 1 > Limits::max())
    fail("integers", where, "i32 holds {}..{}, got {}..{}", Limits::min(), Limits::max(), low, high - 1);
  if (low >= high) fail("integers", where, "low must be below high, got {} and {}", low, high);
  return filled(Distribution::integers, {DType::i32, shape, &backend}, static_cast<double>(low),
                static_cast<double>(high), seed, stream);
}

Tensor permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream, Backend& backend, Loc where) {
  Stream numbers(seed, stream);
  return shuffled("permutation", n, backend, where,
                  [&](std::size_t i) { return numbers.below(static_cast<std::int64_t>(i)); });
}

Tensor numpy_permutation(std::int64_t n, std::mt19937& generator, Backend& backend, Loc where) {
  return shuffled("numpy_permutation", n, backend, where, [&](std::size_t i) {
    const auto last = static_cast<std::uint32_t>(i - 1);
    const std::uint32_t mask = std::bit_ceil(last + 1) - 1;  // NumPy masks, and rejects values that are too large
    while (true) {
      const auto x = static_cast<std::uint32_t>(generator()) & mask;
      if (x <= last) return x;
    }
  });
}

Tensor dropout(Arg x, double p, std::uint64_t seed, std::uint64_t stream, const Tensor& offset) {
  need_tensors("dropout", {&x});
  if (!(p >= 0 && p < 1)) fail("dropout", x.where, "the probability is 0 or more and below 1, got {}", p);
  if (!is_differentiable(x->dtype()))
    fail("dropout", x.where, "{} elements are not supported. Hint: cast to f32; got {}", name_of(x->dtype()),
         x->spec().str());
  if (const Spec wanted{DType::f64, {}, &x->backend()}; offset.defined() && !(offset.spec() == wanted))
    fail("dropout", x.where, "the offset of the stream is {} on the device of x, got {} on {}", wanted.str(),
         offset.spec().str(), offset.backend().name());
  if (offset.defined() && !offset.concrete())
    fail(
        "dropout", x.where,
        "the offset has no value, as it is computed in a step that is traced. Hint: masks drawn before the loop, as an "
        "input of its steps");
  const Tensor kept = filled(Distribution::bernoulli, {DType::boolean, x->shape(), &x->backend()}, 1 - p, 0, seed,
                             stream, offset.defined() ? static_cast<const double*>(offset.data()) : nullptr);
  return where({kept, x.where}, x * (1 / (1 - p)), 0.0);
}

}  // namespace reel
