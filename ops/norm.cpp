// Norms, variance and standard deviation.
#include <algorithm>
#include <cmath>

#include "ops/attributes.h"
#include "ops/rows.h"

namespace reel {

namespace {

/// |x|^2, which unlike |x| is smooth at 0.
Tensor squared_size(const Tensor& x) { return is_complex(x.dtype()) ? real(x * conj(x)) : square(x); }

struct Norm {  // rows [..., n], real or complex -> real [...]
  double p;
  bool operator==(const Norm&) const = default;
  static constexpr Traits traits{.name = "norm"};
  Spec infer(Inputs in) const {
    const Tensor& x = in[0];
    if (!is_differentiable(x.dtype())) refuse(x.dtype());
    return {real_of(x.dtype()), x.shape().erase(x.rank() - 1), &x.backend()};
  }
  void run(Inputs in, Tensor& out) const { run_rows(RowFunction::norm, p, in[0], out); }
  // x |x|^(p-2) / y^(p-1), computed from x / y, which is at most 1; 0 where y is 0.
  void vjp(Vjp& v) const {
    const Tensor y = unsqueeze(v.out(), -1), zero = equal(y, 0);
    const Tensor r = v.in(0) / where(zero, 1, y);
    v.set(0, where(zero, constant(0, y), unsqueeze(v.dy(), -1)) * slope(r));
  }
  /// r |r|^(p-2), written so that derivatives at r = 0 are finite.
  Tensor slope(const Tensor& r) const {
    if (p == 2) return r;
    if (std::fmod(p, 2) == 0) return r * power(squared_size(r), p / 2 - 1);
    if (std::fmod(p, 2) == 1) return sign(r) * power(squared_size(r), (p - 1) / 2);
    const Tensor size = abs(r), zero = equal(size, 0);
    return sign(r) * power(where(zero, 1, size), p - 1);
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return apply(*this, {&in[0]}, Loc::current()); }
  bool shards_rows(Inputs in, Mapped) const { return in[0].rank() > 1; }
};
REEL_OP(Norm)
REEL_ATTRIBUTES(Norm, {"p", attribute(op.p)})

/// x minus its mean, and the divisor of the sum of its squares.
struct Deviations {
  Tensor from_mean;
  double divisor;
};
Deviations deviations(const char* name, const Arg& x, const Axes& axes, double correction) {
  return named(name, x, [&] {
    if (!is_differentiable(x->dtype())) refuse(x->dtype(), ". Hint: cast to f32");
    const ReducedAxes r = reduced_axes(x->shape(), axes);
    const double divisor = static_cast<double>(r.count) - correction;
    if (!(divisor > 0) && r.kept.numel() != 0)
      rule_error("{} elements, minus the correction {}, leave nothing to divide by", r.count, correction);
    return Deviations{operator-(x, mean(x, axes, true)), divisor};
  });
}

}  // namespace

Tensor norm(Arg x, double p, const Axes& axes, bool keep_dims) {
  return named("norm", x, [&] {
    if (!(p >= 1)) rule_error("p is 1 or more, or infinity, got {}", p);
    if (!is_differentiable(x->dtype())) refuse(x->dtype());
    const ReducedAxes r = reduced_axes(x->shape(), axes);
    if (p == 1 || r.count == 0) return sum({abs(x), x.where}, axes, keep_dims);
    if (std::isinf(p)) return max({abs(x), x.where}, axes, keep_dims);
    const Tensor rows = as_rows(x, r);
    return with_dims(apply(Norm{p}, {&rows}, x.where), r, keep_dims, x.where);
  });
}

Tensor var(Arg x, const Axes& axes, bool keep_dims, double correction) {
  const Deviations d = deviations("var", x, axes, correction);
  return sum({squared_size(d.from_mean), x.where}, axes, keep_dims) * (1 / d.divisor);
}

Tensor std_dev(Arg x, const Axes& axes, bool keep_dims, double correction) {
  const Deviations d = deviations("std_dev", x, axes, correction);
  return norm({d.from_mean, x.where}, 2, axes, keep_dims) * (1 / std::sqrt(d.divisor));
}

}  // namespace reel
