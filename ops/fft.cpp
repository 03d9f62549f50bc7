// Fourier transforms along the last axis; other axes are moved there. The real transforms weight inner coefficients
// differently from those at the ends, which have no conjugate partner. With these weights as attributes, each is the
// vjp of the other.
#include <cmath>
#include <limits>

#include "ops/attributes.h"
#include "ops/ops.h"

namespace reel {

namespace {

constexpr Traits transform(const char* name) { return {.name = name, .saves = Saves::nothing, .linear = true}; }

void check_length(std::int64_t n) {
  constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max();
  if (n < 1 || n > longest) rule_error("a transform has 1 to {} elements, got {}", longest, n);
}

/// The number of rows along the last axis.
std::int64_t rows_of(const Tensor& x) { return x.shape().product(0, x.rank() - 1); }

Shape with_last(Shape shape, std::int64_t n) {
  shape.set(shape.rank() - 1, n);
  return shape;
}

/// Real operations of complex transforms: Golub and Van Loan, Matrix Computations, section 1.4. Real ones take half.
double complex_flops(std::int64_t rows, std::int64_t n) {
  const auto size = static_cast<double>(n);
  return 5 * static_cast<double>(rows) * size * std::log2(size);
}

struct Fft {  // complex [..., n] -> [..., n]
  bool inverse;
  double scale;
  bool operator==(const Fft&) const = default;
  static constexpr Traits traits = transform("fft");
  Spec infer(Inputs in) const {
    if (!is_complex(in[0].dtype())) rule_error("{} elements are not supported", name_of(in[0].dtype()));
    check_length(in[0].dim(-1));
    return in[0].spec();
  }
  double flops(Inputs in) const { return complex_flops(rows_of(in[0]), in[0].dim(-1)); }
  void run(Inputs in, Tensor& out) const {
    out.backend().fft({.dtype = out.dtype(),
                       .inverse = inverse,
                       .rows = rows_of(out),
                       .n = out.dim(-1),
                       .scale = scale,
                       .in = in[0].data(),
                       .out = out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, apply(Fft{!inverse, scale}, {&v.dy()}, Loc::current())); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Fft)
REEL_ATTRIBUTES(Fft, {"inverse", attribute(op.inverse)}, {"scale", attribute(op.scale)})

/// `ends` and `inner` multiply the coefficients, as in RealFftArgs.
struct Rfft {  // real [..., n] -> complex [..., n / 2 + 1]
  double ends, inner;
  bool operator==(const Rfft&) const = default;
  static constexpr Traits traits = transform("rfft");
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype())) rule_error("{} elements are not supported", name_of(in[0].dtype()));
    check_length(in[0].dim(-1));
    return {complex_of(in[0].dtype()), with_last(in[0].shape(), in[0].dim(-1) / 2 + 1), &in[0].backend()};
  }
  double flops(Inputs in) const { return complex_flops(rows_of(in[0]), in[0].dim(-1)) / 2; }
  void run(Inputs in, Tensor& out) const {
    out.backend().real_fft(
        {in[0].dtype(), false, rows_of(in[0]), in[0].dim(-1), ends, inner, in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const;
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Rfft)

struct Irfft {  // complex [..., n / 2 + 1] -> real [..., n]
  std::int64_t n;
  double ends, inner;
  bool operator==(const Irfft&) const = default;
  static constexpr Traits traits = transform("irfft");
  Spec infer(Inputs in) const {
    if (!is_complex(in[0].dtype())) rule_error("{} elements are not supported", name_of(in[0].dtype()));
    return {real_of(in[0].dtype()), with_last(in[0].shape(), n), &in[0].backend()};
  }
  double flops(Inputs in) const { return complex_flops(rows_of(in[0]), n) / 2; }
  void run(Inputs in, Tensor& out) const {
    out.backend().real_fft({.dtype = out.dtype(),
                            .inverse = true,
                            .rows = rows_of(out),
                            .n = n,
                            .ends = ends,
                            .inner = inner,
                            .in = in[0].data(),
                            .out = out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, apply(Rfft{ends, 2 * inner}, {&v.dy()}, Loc::current())); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Irfft)

void Rfft::vjp(Vjp& v) const {
  const Shape& shape = v.spec(0).shape;
  v.set(0, apply(Irfft{shape[shape.rank() - 1], ends, inner / 2}, {&v.dy()}, Loc::current()));
}

/// The normalisation factor of a transform of n elements.
double factor(std::int64_t n, FftNorm norm, bool inverse) {
  const auto size = static_cast<double>(n);
  if (norm == FftNorm::ortho) return 1 / std::sqrt(size);
  return inverse == (norm == FftNorm::backward) ? 1 / size : 1;
}

/// `axis` and the last axis swapped.
Tensor swapped(const Tensor& x, int axis, const Loc& where) {
  if (axis == x.rank() - 1) return x;
  Axes order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[static_cast<std::size_t>(axis)], order.back());
  return permute({x, where}, order);
}

/// Applies an op on rows to the chosen axis, cut or padded to n elements.
template <class O>
Tensor along(const Arg& x, int axis, std::int64_t n, DType dtype, const O& op) {
  Tensor rows = swapped(cast(x, dtype), axis, x.where);
  if (rows.dim(-1) > n) rows = slice({rows, x.where}, -1, 0, n);
  if (rows.dim(-1) < n) rows = pad({rows, x.where}, -1, 0, n - rows.dim(-1));
  return swapped(apply(op, {&rows}, x.where), axis, x.where);
}

/// Checks x's dtype and returns the axis, counted from the front.
int checked(const Arg& x, const FftOptions& options) {
  if (!is_differentiable(x->dtype())) rule_error("{} elements are not supported. Hint: cast", name_of(x->dtype()));
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

Tensor complex_fft2(const char* name, const Arg& x, FftNorm norm, bool inverse) {
  const Tensor rows = complex_fft(name, x, {.norm = norm}, inverse);
  return complex_fft(name, {rows, x.where}, {.axis = -2, .norm = norm}, inverse);
}

}  // namespace

Tensor fft(Arg x, const FftOptions& options) { return complex_fft("fft", x, options, false); }
Tensor ifft(Arg y, const FftOptions& options) { return complex_fft("ifft", y, options, true); }

Tensor rfft(Arg x, const FftOptions& options) {
  return named("rfft", x, [&] {
    if (is_complex(x->dtype())) rule_error("{} elements are not supported. Hint: use fft", name_of(x->dtype()));
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

Tensor fft2(Arg x, FftNorm norm) { return complex_fft2("fft2", x, norm, false); }
Tensor ifft2(Arg y, FftNorm norm) { return complex_fft2("ifft2", y, norm, true); }

}  // namespace reel
