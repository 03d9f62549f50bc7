// Short-time Fourier transforms, composed of other ops.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/constant.h"
#include "ops/ops.h"

namespace reel {

namespace {

/// The options with defaults filled in; throws RuleError when they are invalid.
struct Frames {
  std::int64_t hop, reach;  // reach: the padding at both ends

  explicit Frames(const StftOptions& o)
      : hop(o.hop.value_or(std::max<std::int64_t>(o.size / 4, 1))), reach(o.centre ? o.size / 2 : 0) {
    if (o.size < 1) rule_error("the size is 1 or more, got {}", o.size);
    if (hop < 1) rule_error("the hop is 1 or more, got {}", hop);
    if (const Tensor& w = o.window; w.defined() && (!(w.shape() == Shape{o.size}) || !is_floating(w.dtype())))
      rule_error("the window must be {} real numbers, not {}", o.size, w.spec().str());
  }
};

/// The window, [size], in the samples' dtype.
Tensor window_of(const StftOptions& o, DType dtype, Backend& backend) {
  return o.window.defined() ? cast(o.window, dtype) : hann_window(o.size, true, dtype, backend);
}

/// x padded by reflection at both ends; the end elements themselves are not repeated.
Tensor reflected(const Tensor& x, std::int64_t reach, const Loc& where) {
  if (reach == 0) return x;
  const std::int64_t n = x.dim(-1);
  if (n <= reach)
    rule_error("a mirror image of {} elements needs more than {}. Hint: a smaller size, or no centre", reach, n);
  const Tensor front = slice({x, where}, -1, 1, reach + 1), back = slice({x, where}, -1, n - 1 - reach, n - 1);
  return concat({flip({front, where}), x, flip({back, where})}, -1, where);
}

}  // namespace

Tensor hann_window(std::int64_t n, bool periodic, DType dtype, Backend& backend, Loc where) {
  if (n < 0) fail("hann_window", where, "there are 0 elements or more, got {}", n);
  if (!is_floating(dtype)) fail("hann_window", where, "f32 or f64 expected, got {}", name_of(dtype));
  const auto period = static_cast<double>(periodic ? n : n - 1);
  return filled("hann_window", n, dtype, backend, where, [=](std::int64_t j) {
    const double root = n == 1 ? 1 : std::sin(std::numbers::pi * static_cast<double>(j) / period);
    return root * root;
  });
}

Tensor stft(Arg x, const StftOptions& options) {
  return named("stft", x, [&] {
    if (!is_floating(x->dtype())) rule_error("{} elements are not supported", name_of(x->dtype()));
    if (x->rank() == 0) rule_error("one axis or more is needed");
    const Frames f(options);
    const Tensor samples = reflected(x, f.reach, x.where);
    if (samples.dim(-1) < options.size)
      rule_error("a frame of {} does not fit into {} elements", options.size, samples.dim(-1));
    const Tensor pieces = frame({samples, x.where}, options.size, f.hop) * window_of(options, x->dtype(), x->backend());
    const FftOptions transform{.norm = options.norm};
    return options.onesided ? rfft({pieces, x.where}, transform) : fft({pieces, x.where}, transform);
  });
}

Tensor istft(Arg y, const StftOptions& options, std::optional<std::int64_t> length) {
  return named("istft", y, [&] {
    if (!is_complex(y->dtype())) rule_error("{} elements are not supported", name_of(y->dtype()));
    const Frames f(options);
    const std::int64_t bins = options.onesided ? options.size / 2 + 1 : options.size;
    if (y->rank() < 2 || y->dim(-1) != bins || y->dim(-2) < 1)
      rule_error("a frame or more of {} coefficients are needed", bins);
    if (f.hop > options.size) rule_error("a hop of {} leaves gaps between frames of {}", f.hop, options.size);
    const std::int64_t frames = y->dim(-2), all = (frames - 1) * f.hop + options.size;
    const std::int64_t n = length.value_or(all - 2 * f.reach);
    if (n < 0) rule_error("the length is 0 or more, got {}", n);
    const FftOptions transform{.n = options.size, .norm = options.norm};
    const Tensor pieces = options.onesided ? irfft(y, transform) : real({ifft(y, transform), y.where});
    const Tensor window = window_of(options, real_of(y->dtype()), y->backend());
    const Tensor total = overlap_add({pieces * window, y.where}, f.hop);
    const Tensor squares = overlap_add({expand(square(window), {frames, options.size}), y.where}, f.hop);
    const Tensor covered = squares > 1e-11 * max(squares);  // dividing by less would amplify rounding errors
    const Tensor gain = where(covered, 1 / where(covered, squares, 1.0), 0.0);
    const std::int64_t reached = std::min(n, all - f.reach);
    const Tensor samples = slice({total * gain, y.where}, -1, f.reach, f.reach + reached);
    return reached == n ? samples : pad({samples, y.where}, -1, 0, n - reached);
  });
}

}  // namespace reel
