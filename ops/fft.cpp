// Fourier transforms along the last axis; other axes are moved there. The real transforms weigh the coefficients in
// between otherwise than those at the ends, which have no conjugate partner: with these weights as attributes, each is
// the derivative of the other.
#include <cmath>
#include <limits>

#include "ops/ops.h"

namespace reel {

namespace {

constexpr Traits transform(const char* name) { return {.name = name, .reads = Reads::nothing, .linear = true}; }

void check_length(std::int64_t n) {
  constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max();
  if (n < 1 || n > longest) broken("a transform has 1 to {} elements, got {}", longest, n);
}

/// Rows that a tensor has along its last axis.
std::int64_t rows_of(const Tensor& x) { return x.shape().product(0, x.rank() - 1); }

Shape with_last(Shape shape, std::int64_t n) {
  shape.set(shape.rank() - 1, n);
  return shape;
}

struct Fft {  // complex [..., n] -> [..., n]
  bool inverse;
  double scale;
  static constexpr Traits traits = transform("fft");
  Spec infer(Inputs in) const {
    if (!is_complex(in[0].dtype())) broken("{} elements are not supported", name_of(in[0].dtype()));
    check_length(in[0].dim(-1));
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fft({out.dtype(), inverse, rows_of(out), out.dim(-1), scale, in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, apply(Fft{!inverse, scale}, {&v.dy()}, Where::current())); }
  Tensor batch(Inputs in, Varying, std::int64_t) const { return apply(*this, {&in[0]}, Where::current()); }
  bool rows(Inputs in, Varying) const { return in[0].rank() > 1; }
};
REEL_OP(Fft)

/// As RealFftArgs: coefficients are taken times `ends` or `inner`.
struct Rfft {  // real [..., n] -> complex [..., n / 2 + 1]
  double ends, inner;
  static constexpr Traits traits = transform("rfft");
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype())) broken("{} elements are not supported", name_of(in[0].dtype()));
    check_length(in[0].dim(-1));
    return {complex_of(in[0].dtype()), with_last(in[0].shape(), in[0].dim(-1) / 2 + 1), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().real_fft(
        {in[0].dtype(), false, rows_of(in[0]), in[0].dim(-1), ends, inner, in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const;
  Tensor batch(Inputs in, Varying, std::int64_t) const { return apply(*this, {&in[0]}, Where::current()); }
  bool rows(Inputs in, Varying) const { return in[0].rank() > 1; }
};
REEL_OP(Rfft)

struct Irfft {  // complex [..., n / 2 + 1] -> real [..., n]
  std::int64_t n;
  double ends, inner;
  static constexpr Traits traits = transform("irfft");
  Spec infer(Inputs in) const {
    if (!is_complex(in[0].dtype())) broken("{} elements are not supported", name_of(in[0].dtype()));
    return {real_of(in[0].dtype()), with_last(in[0].shape(), n), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().real_fft({out.dtype(), true, rows_of(out), n, ends, inner, in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, apply(Rfft{ends, 2 * inner}, {&v.dy()}, Where::current())); }
  Tensor batch(Inputs in, Varying, std::int64_t) const { return apply(*this, {&in[0]}, Where::current()); }
  bool rows(Inputs in, Varying) const { return in[0].rank() > 1; }
};
REEL_OP(Irfft)

void Rfft::vjp(Vjp& v) const {
  const Shape& shape = v.spec(0).shape;
  v.set(0, apply(Irfft{shape[shape.rank() - 1], ends, inner / 2}, {&v.dy()}, Where::current()));
}

/// What a transform of n elements is multiplied by.
double factor(std::int64_t n, FftNorm norm, bool inverse) {
  const auto size = static_cast<double>(n);
  if (norm == FftNorm::ortho) return 1 / std::sqrt(size);
  return inverse == (norm == FftNorm::backward) ? 1 / size : 1;
}

/// `axis` and the last axis swapped.
Tensor swapped(const Tensor& x, int axis, const Where& where) {
  if (axis == x.rank() - 1) return x;
  Axes order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[static_cast<std::size_t>(axis)], order.back());
  return permute({x, where}, order);
}

/// Applies an op for one row to the chosen axis, cut or padded to n elements.
template <class O>
Tensor along(const Arg& x, int axis, std::int64_t n, DType dtype, const O& op) {
  Tensor rows = swapped(cast(x, dtype), axis, x.where);
  if (rows.dim(-1) > n) rows = slice({rows, x.where}, -1, 0, n);
  if (rows.dim(-1) < n) rows = pad({rows, x.where}, -1, 0, n - rows.dim(-1));
  return swapped(apply(op, {&rows}, x.where), axis, x.where);
}

/// The axis, counted from the front; x has elements to transform.
int checked(const Arg& x, const FftOptions& options) {
  if (!is_differentiable(x->dtype())) broken("{} elements are not supported. Hint: cast", name_of(x->dtype()));
  return checked_axis(options.axis, x->rank());
}

Tensor complex_fft(const char* name, const Arg& x, const FftOptions& options, bool inverse) {
  return named(name, x, [&] {
    const int axis = checked(x, options);
    const std::int64_t n = options.n.value_or(x->dim(axis));
    check_length(n);
    return along(x, axis, n, complex_of(x->dtype()), Fft{inverse, factor(n, options.norm, inverse)});
  });
}

}  // namespace

Tensor fft(Arg x, const FftOptions& options) { return complex_fft("fft", x, options, false); }
Tensor ifft(Arg y, const FftOptions& options) { return complex_fft("ifft", y, options, true); }

Tensor rfft(Arg x, const FftOptions& options) {
  return named("rfft", x, [&] {
    if (is_complex(x->dtype())) broken("{} elements are not supported. Hint: use fft", name_of(x->dtype()));
    const int axis = checked(x, options);
    const std::int64_t n = options.n.value_or(x->dim(axis));
    check_length(n);
    const double scale = factor(n, options.norm, false);
    return along(x, axis, n, x->dtype(), Rfft{scale, scale});
  });
}

Tensor irfft(Arg y, const FftOptions& options) {
  return named("irfft", y, [&] {
    const int axis = checked(y, options);
    const std::int64_t n = options.n.value_or(2 * (y->dim(axis) - 1));
    check_length(n);
    const double scale = factor(n, options.norm, true);
    return along(y, axis, n / 2 + 1, complex_of(y->dtype()), Irfft{n, scale, scale});
  });
}

Tensor fft2(Arg x, FftNorm norm) { return fft({fft(x, {.norm = norm}), x.where}, {.axis = -2, .norm = norm}); }
Tensor ifft2(Arg y, FftNorm norm) { return ifft({ifft(y, {.norm = norm}), y.where}, {.axis = -2, .norm = norm}); }

}  // namespace reel
