// Creates tensors; not recorded.
#include <cmath>

#include "ops/ops.h"

namespace reel {

namespace {

/// f(i) for i < n, computed in f64 on the host, then cast to the dtype on the device.
template <class F>
Tensor filled(const char* name, std::int64_t n, DType dtype, Backend& backend, const Loc& where, F&& f) {
  if (n < 0) fail(name, where, "the number of elements is 0 or more, got {}", n);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(f(i));
  const NoGrad no_grad;
  return cast(Tensor::from(std::span<const double>(values), {n}, backend), dtype);
}

}  // namespace

Tensor arange(std::int64_t n, DType dtype, Backend& backend, Loc where) {
  return filled("arange", n, dtype, backend, where, [](std::int64_t i) { return static_cast<double>(i); });
}

Tensor linspace(double first, double last, std::int64_t n, DType dtype, Backend& backend, Loc where) {
  return filled("linspace", n, dtype, backend, where, [=](std::int64_t i) {
    const double t = n == 1 ? 0 : static_cast<double>(i) / static_cast<double>(n - 1);
    return std::lerp(first, last, t);
  });
}

Tensor full_like(Arg x, std::complex<double> value) {
  return Tensor::full(x->shape(), value, x->dtype(), x->backend());
}
Tensor zeros_like(Arg x) { return full_like(x, 0); }
Tensor ones_like(Arg x) { return full_like(x, 1); }

}  // namespace reel
