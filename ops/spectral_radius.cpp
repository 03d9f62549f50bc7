// The spectral radius, with the derivatives of its eigenvalue and both eigenvectors. Only this eigenvalue must be
// simple: the vjp solves with the matrix bordered by these vectors, where eig would need all eigenvectors.
#include <cmath>

#include "ops/functors/linalg.h"
#include "ops/spectral_parts.h"

namespace reel {

namespace {

Tensor column(const Tensor& x) { return unsqueeze(x, -1); }

struct SpectralRadius {  // A [..., n, n] -> rho [...], lambda [...], right u [..., n], left v [..., n]: v^H u = 1
  std::shared_ptr<LeadingColumns> leading;
  bool operator==(const SpectralRadius&) const = default;
  static constexpr Traits traits{.name = "spectral_radius"};
  int outputs() const { return 4; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_square(in[0]);
    const Shape rows = in[0].shape().erase(in[0].rank() - 1), places = rows.erase(rows.rank() - 1);
    out[0] = {real_of(in[0].dtype()), places, &in[0].backend()};
    out[1] = {complex_of(in[0].dtype()), places, &in[0].backend()};
    out[2] = out[3] = {complex_of(in[0].dtype()), rows, &in[0].backend()};
  }
  double flops(Inputs in) const {  // GVL, section 7.5: the eigenvalues alone
    return flops_of(in[0], 10 * std::pow(extent(in[0], -1), 3));
  }
  void run(Inputs in, std::span<Tensor> out) const {
    const SpectralRadiusArgs call{.dtype = in[0].dtype(),
                                  .batch = out[0].numel(),
                                  .n = in[0].dim(-1),
                                  .a = in[0].data(),
                                  .radius = out[0].data(),
                                  .value = out[1].data(),
                                  .right = out[2].data(),
                                  .left = out[3].data(),
                                  .leading = leading.get()};
    const std::string warning = warning_of(call, out[0].backend().spectral_radius(call));
    if (!warning.empty()) warn("spectral_radius", warning);
  }

  // A change A' changes lambda by lambda' = v^H A' u. With M = [[A - lambda, u], [v^H, 0]] the changes u' and v' solve
  //   M (u', -lambda') = (-A' u, 0)   and   M^H (v', -conj(lambda')) = (-A'^H v, 0).
  // The vjp applies the adjoints. Where the eigenvalue is not simple, u and v are 0, and so is the gradient.
  void vjp(Vjp& v) const {
    const Tensor &rho = v.out(0), &lambda = v.out(1);
    const Tensor right = column(v.out(2)), left = column(v.out(3));
    Tensor dlambda = v.dy(1);
    if (v.dy(0).defined()) {
      const Tensor direction = lambda / where(rho > 0.0, rho, 1.0);  // rho = |lambda|
      dlambda = dlambda.defined() ? dlambda + v.dy(0) * direction : v.dy(0) * direction;
    }
    Tensor dA;
    const auto add = [&](const Tensor& x) { dA = dA.defined() ? dA + x : x; };
    if (dlambda.defined()) add(matmul(column(column(dlambda)) * left, adjoint(right)));
    if (v.dy(2).defined() || v.dy(3).defined()) {
      const Tensor M = bordered(v.in(0), lambda, right, left);
      if (v.dy(2).defined()) add(-matmul(first_rows(solve(adjoint(M), with_zero(v.dy(2)))), adjoint(right)));
      if (v.dy(3).defined()) add(-matmul(left, adjoint(first_rows(solve(M, with_zero(v.dy(3)))))));
    }
    v.set(0, dA);
  }

  static Tensor bordered(const Tensor& A, const Tensor& lambda, const Tensor& right, const Tensor& left) {
    const std::int64_t n = A.dim(-1);
    const Tensor shifted = A - column(column(lambda)) * eye(n, lambda.dtype(), A.backend());
    const Tensor corner = full(column(column(lambda)).shape(), 0, lambda.dtype(), A.backend());
    const Tensor M = concat({concat({shifted, right}, -1), concat({adjoint(left), corner}, -1)}, -2);
    const Tensor simple = real(matmul(adjoint(left), right)) > 0.5;
    return where(simple, M, eye(n + 1, lambda.dtype(), A.backend()));
  }
  static Tensor with_zero(const Tensor& x) { return column(pad(x, -1, 0, 1)); }
  static Tensor first_rows(const Tensor& x) { return slice(x, -2, 0, x.dim(-2) - 1); }
};
REEL_OP(SpectralRadius)

}  // namespace

Tensor spectral_radius(Arg A) { return warm_spectral_radius(A, nullptr); }

Tensor warm_spectral_radius(Arg A, const std::shared_ptr<LeadingColumns>& leading) {
  return apply_many(op_of<SpectralRadius>(), Attrs(SpectralRadius{leading}), {&A.tensor("spectral_radius")},
                    A.where)[0];
}

std::shared_ptr<LeadingColumns> leading_columns(std::int64_t n) {
  constexpr std::int64_t least = 256;  // rows from which it pays
  return n >= least ? std::make_shared<LeadingColumns>() : nullptr;
}

}  // namespace reel
