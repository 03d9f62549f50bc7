// Determinants. d log det A = tr(A^-1 dA).
#include "ops/functors/linalg.h"
#include "ops/matrix.h"

namespace reel {

namespace {

/// A batch of scalars as 1x1 matrices, to broadcast against matrices.
Tensor as_matrices(const Tensor& x) {
  const Shape shape = with_matrix(x.shape(), 1, 1);
  return reshape(x, {shape.begin(), shape.end()});
}

/// Gaussian elimination of each matrix: GVL, section 3.2.
double determinant_flops(const Tensor& A) {
  const double n = extent(A, -1);
  return flops_of(A, 2 * n * n * n / 3);
}

struct Det {
  static constexpr Traits traits{.name = "det"};
  Spec infer(Inputs in) const {
    check_square(in[0]);
    return {in[0].dtype(), places(in[0]), &in[0].backend()};
  }
  double flops(Inputs in) const { return determinant_flops(in[0]); }
  void run(Inputs in, Tensor& out) const {
    const Tensor& A = in[0];
    A.backend().determinant({.dtype = A.dtype(),
                             .n = A.dim(-1),
                             .batch = matrices(A),
                             .a = A.data(),
                             .det = out.data(),
                             .sign = nullptr,
                             .log_abs = nullptr});
  }
  void vjp(Vjp& v) const { v.set(0, as_matrices(v.dy() * conj(v.out())) * adjoint(inverse(v.in(0)))); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return det(in[0]); }
};
REEL_OP(Det)

struct SlogDet {
  static constexpr Traits traits{.name = "slogdet"};
  int outputs() const { return 2; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_square(in[0]);
    out[0] = {in[0].dtype(), places(in[0]), &in[0].backend()};
    out[1] = {real_of(in[0].dtype()), places(in[0]), &in[0].backend()};
  }
  double flops(Inputs in) const { return determinant_flops(in[0]); }
  void run(Inputs in, std::span<Tensor> out) const {
    const Tensor& A = in[0];
    A.backend().determinant({.dtype = A.dtype(),
                             .n = A.dim(-1),
                             .batch = matrices(A),
                             .a = A.data(),
                             .det = nullptr,
                             .sign = out[0].data(),
                             .log_abs = out[1].data()});
  }
  // With t = tr(A^-1 dA): d log_abs = Re t, d sign = i Im t sign, which is 0 for real A.
  void vjp(Vjp& v) const {
    Tensor factor = or_zeros(v.dy(1), v.out(1));
    if (is_complex(v.out(0).dtype()) && v.dy(0).defined()) {
      const Tensor turn = v.dy(0) * conj(v.out(0));
      factor = factor + 0.5 * (turn - conj(turn));
    }
    v.set(0, as_matrices(factor) * adjoint(inverse(v.in(0))));
  }
};
REEL_OP(SlogDet)

}  // namespace

Tensor det(Arg A) { return apply(Det{}, A); }

SignAndLog slogdet(Arg A) {
  Tensors out = apply_many(op_of<SlogDet>(), Attrs(SlogDet{}), {&A.tensor("slogdet")}, A.where);
  return {out[0], out[1]};
}

}  // namespace reel
