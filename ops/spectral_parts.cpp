#include "ops/spectral_parts.h"

#include <cfloat>

namespace reel {

Tensor gauge(const Tensor& V, const Tensor& largest) {
  const Tensor p = pick(transpose(V), largest);
  return unsqueeze(conj(p) / abs(p), -2);
}

namespace {

struct ReciprocalGaps {  // w [..., n] -> [..., n, n]
  GapOptions options;
  bool operator==(const ReciprocalGaps&) const = default;
  static constexpr Traits traits{.name = "reciprocal_gaps", .saves = Saves::output};
  double sign() const { return options.sums ? -1 : 1; }

  Spec infer(Inputs in) const {
    if (!is_differentiable(in[0].dtype())) rule_error("{} elements are not supported", name_of(in[0].dtype()));
    if (in[0].rank() < 1) rule_error("one axis or more is needed");
    return {in[0].dtype(), in[0].shape().insert(in[0].rank(), in[0].dim(-1)), &in[0].backend()};
  }

  void run(Inputs in, Tensor& out) const {
    if (out.numel() == 0) return;
    const NoGrad no_grad;
    const Tensor& w = in[0];
    const std::int64_t n = w.dim(-1);
    const double epsilon = real_of(w.dtype()) == DType::f32 ? FLT_EPSILON : DBL_EPSILON;
    const Tensor gap = unsqueeze(w, -2) - sign() * unsqueeze(w, -1);
    const Tensor largest = unsqueeze(max(abs(w), {-1}, true), -1);
    const Tensor close = abs(gap) <= 10.0 * static_cast<double>(n) * epsilon * largest;
    out.assign(where(close, constant(0, w), 1.0 / where(close, constant(1, w), gap)));

    Tensor matters = cast(close, DType::f64);
    if (!options.diagonal) matters = matters * (1.0 - eye(n, DType::f64, w.backend()));
    const double values = sum(max(matters, {-1})).item();
    if (values == 0) return;
    warn(
        options.subject,
        fmt::format("{:.0f} of {} {}", values, w.numel(),
                    options.sums ? "singular values vanish: derivatives take their reciprocals as 0"
                                 : "values agree with another one to rounding: their vectors have no derivative, it is "
                                   "taken as 0"));
  }

  // dG_ij = -G_ij^2 (dw_j -+ dw_i)
  void vjp(Vjp& v) const {
    const Tensor t = v.dy() * conj(square(v.out()));
    v.set(0, sign() * sum(t, {-1}) - sum(t, {-2}));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return reciprocal_gaps(in[0], options); }
};
REEL_OP(ReciprocalGaps)

}  // namespace

Tensor reciprocal_gaps(Arg w, const GapOptions& options) { return apply(ReciprocalGaps{options}, w); }

}  // namespace reel
