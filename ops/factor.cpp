// Factorisations into triangular matrices: LU, Cholesky, QR.
#include <cmath>

#include "ops/functors/linalg.h"
#include "ops/matrix.h"

namespace reel {

namespace {

/// Columns first..last-1.
Tensor columns(const Tensor& x, std::int64_t first, std::int64_t last) {
  return first == 0 && last == x.dim(-1) ? x : slice(x, -1, first, last);
}
Tensor rows(const Tensor& x, std::int64_t first, std::int64_t last) {
  return first == 0 && last == x.dim(-2) ? x : slice(x, -2, first, last);
}
/// a^H b and a b^H
Tensor adjoint_times(const Tensor& a, const Tensor& b) { return matmul(conj(a), b, {.transpose_a = true}); }
Tensor times_adjoint(const Tensor& a, const Tensor& b) { return matmul(a, conj(b), {.transpose_b = true}); }
/// x U^-H for an upper triangle U
Tensor over_upper(const Tensor& x, const Tensor& U, double tolerance = 0) {
  return adjoint(triangular_solve(U, adjoint(x), {.upper = true, .tolerance = tolerance}));
}

struct LuOp {  // A [..., m, n] -> P [..., m, m], L [..., m, r], U [..., r, n]
  static constexpr Traits traits{.name = "lu", .saves = Saves::output};
  int outputs() const { return 3; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_matrix(in[0]);
    const std::int64_t m = in[0].dim(-2), n = in[0].dim(-1), r = std::min(m, n);
    out[0] = matrix_spec(in[0], m, m);
    out[1] = matrix_spec(in[0], m, r);
    out[2] = matrix_spec(in[0], r, n);
  }
  double flops(Inputs in) const {  // GVL, section 3.2; for a wide matrix the same sum over pivots
    const double m = extent(in[0], -2), n = extent(in[0], -1), r = std::min(m, n);
    return flops_of(in[0], r * r * (std::max(m, n) - r / 3));
  }
  void run(Inputs in, std::span<Tensor> out) const {
    const Tensor& A = in[0];
    A.backend().lu(
        {A.dtype(), A.dim(-2), A.dim(-1), matrices(A), A.data(), out[0].data(), out[1].data(), out[2].data()});
  }
  // For the leading square blocks, L1^-1 d(P^T A)1 U1^-1 = L1^-1 dL1 + dU1 U1^-1, a strict lower plus an upper
  // triangle. The rows of L below are A2 U1^-1, the columns of U to the right are L1^-1 A2. P is constant.
  void vjp(Vjp& v) const {
    const Tensor &P = v.out(0), &L = v.out(1), &U = v.out(2);
    const Tensor dL = or_zeros(v.dy(1), L), dU = or_zeros(v.dy(2), U);
    const std::int64_t m = L.dim(-2), n = U.dim(-1), r = L.dim(-1);
    const Tensor L1 = rows(L, 0, r), U1 = columns(U, 0, r);
    const TriangularFlags unit{.unit_diagonal = true, .adjoint = true};
    Tensor lower = adjoint_times(L1, rows(dL, 0, r)), upper = times_adjoint(columns(dU, 0, r), U1);
    Tensor dPA;
    if (n > r) {
      const Tensor dU2 = columns(dU, r, n);
      lower = lower - times_adjoint(dU2, columns(U, r, n));
      dPA = triangular_solve(L1, concat({over_upper(tril(lower, -1) + triu(upper), U1), dU2}, -1), unit);
    } else {
      const Tensor dL2 = rows(dL, r, m);
      if (m > r) upper = upper - adjoint_times(rows(L, r, m), dL2);
      const Tensor top = triangular_solve(L1, tril(lower, -1) + triu(upper), unit);
      dPA = over_upper(m > r ? concat({top, dL2}, -2) : top, U1);
    }
    v.set(0, matmul(P, dPA));
  }
};
REEL_OP(LuOp)

struct Cholesky {
  static constexpr Traits traits{.name = "cholesky", .saves = Saves::output};
  Spec infer(Inputs in) const {
    check_square(in[0]);
    return in[0].spec();
  }
  double flops(Inputs in) const { return flops_of(in[0], std::pow(extent(in[0], -1), 3) / 3); }  // GVL, section 4.2
  void run(Inputs in, Tensor& out) const {
    const NoGrad no_grad;
    const Tensor half = 0.5 * in[0], A = half + adjoint(half);
    out.backend().cholesky(
        {.dtype = out.dtype(), .n = out.dim(-1), .batch = matrices(out), .a = A.data(), .l = out.data()});
  }
  // L^-1 dA L^-H is Hermitian: the sum of the lower triangle L^-1 dL and its adjoint. So L^-1 dL is its lower triangle
  // with half the diagonal.
  void vjp(Vjp& v) const {
    const Tensor& L = v.out();
    const Tensor G = adjoint_times(L, v.dy()), half = 0.5 * (tril(G) + tril(G, -1));
    const TriangularFlags flags{.adjoint = true};
    const Tensor left = triangular_solve(L, 0.5 * (half + adjoint(half)), flags);
    v.set(0, triangular_solve(L, adjoint(left), flags));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return cholesky(in[0]); }
};
REEL_OP(Cholesky)

struct QrOp {  // A [..., m, n] -> Q [..., m, r], R [..., r, n]
  static constexpr Traits traits{.name = "qr", .saves = Saves::output};
  int outputs() const { return 2; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_matrix(in[0]);
    const std::int64_t m = in[0].dim(-2), n = in[0].dim(-1), r = std::min(m, n);
    out[0] = matrix_spec(in[0], m, r);
    out[1] = matrix_spec(in[0], r, n);
  }
  double flops(Inputs in) const {  // GVL, section 5.2: Householder's R, then Q from the reflections
    const double m = extent(in[0], -2), n = extent(in[0], -1), r = std::min(m, n);
    return flops_of(in[0], 2 * r * r * (std::max(m, n) - r / 3) + 2 * r * r * (m - r / 3));
  }
  void run(Inputs in, std::span<Tensor> out) const {
    const Tensor& A = in[0];
    A.backend().qr({.dtype = A.dtype(),
                    .m = A.dim(-2),
                    .n = A.dim(-1),
                    .batch = matrices(A),
                    .a = A.data(),
                    .q = out[0].data(),
                    .r = out[1].data()});
  }
  // For the leading r columns, Q^H dA R^-1 = Q^H dQ + dR R^-1, a skew part plus an upper triangle with real diagonal.
  // The columns after them are Q R2.
  void vjp(Vjp& v) const {
    const Tensor &Q = v.out(0), &R = v.out(1);
    const Tensor dR = or_zeros(v.dy(1), R);
    Tensor dQ = or_zeros(v.dy(0), Q);
    const std::int64_t n = R.dim(-1), r = R.dim(-2);
    const Tensor R1 = columns(R, 0, r), dR1 = columns(dR, 0, r), dR2 = columns(dR, r, n);
    if (n > r) dQ = dQ + matmul(Q, times_adjoint(columns(R, r, n), dR2));
    const Tensor M = times_adjoint(dR1, R1) - adjoint_times(Q, dQ), half = 0.5 * (triu(M) + triu(M, 1));
    const Tensor dA = over_upper(dQ + matmul(Q, half + adjoint(half)), R1, roundoff(R1));
    v.set(0, n > r ? concat({dA, matmul(Q, dR2)}, -1) : dA);
  }
};
REEL_OP(QrOp)

}  // namespace

Lu lu(Arg A) {
  Tensors out = apply_many(op_of<LuOp>(), Attrs(LuOp{}), {&A.tensor("lu")}, A.where);
  return {out[0], out[1], out[2]};
}

Tensor cholesky(Arg A) { return apply(Cholesky{}, A); }

Qr qr(Arg A) {
  Tensors out = apply_many(op_of<QrOp>(), Attrs(QrOp{}), {&A.tensor("qr")}, A.where);
  return {out[0], out[1]};
}

}  // namespace reel
