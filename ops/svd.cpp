// The singular value decomposition; as in eig.cpp, the op does not fix the phases of vectors, and the gauge on top
// does.
#include "ops/functors/linalg.h"
#include "ops/spectral_parts.h"

namespace reel {

namespace {

struct Svd {  // A [..., m, n] -> U [..., m, k], S [..., k], Vh [..., k, n], indices of the largest components of U
  static constexpr Traits traits{.name = "svd", .saves = Saves::output};
  int outputs() const { return 4; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_matrix(in[0]);
    const int r = in[0].rank();
    const std::int64_t k = std::min(in[0].dim(-1), in[0].dim(-2));
    Backend* backend = &in[0].backend();
    Shape u = in[0].shape(), vh = u;
    u.set(r - 1, k);
    vh.set(r - 2, k);
    out[0] = {in[0].dtype(), u, backend};
    out[1] = {real_of(in[0].dtype()), vh.erase(r - 1), backend};
    out[2] = {in[0].dtype(), vh, backend};
    out[3] = {DType::i32, vh.erase(r - 1), backend};
  }
  double flops(Inputs in) const { return svd_flops(in[0]); }
  void run(Inputs in, std::span<Tensor> out) const {
    out[0].backend().svd({.dtype = in[0].dtype(),
                          .batch = in[0].shape().product(0, in[0].rank() - 2),
                          .m = in[0].dim(-2),
                          .n = in[0].dim(-1),
                          .a = in[0].data(),
                          .u = out[0].data(),
                          .s = out[1].data(),
                          .vh = out[2].data(),
                          .largest = static_cast<std::int32_t*>(out[3].data())});
  }

  // With P = U^H A' V, X = P + P^H and Y = P - P^H, a change A' changes the vectors within their span by
  //   U^H U' = (X / (s_j - s_i) + Y / (s_j + s_i)) / 2
  //   V^H V' = (X / (s_j - s_i) - Y / (s_j + s_i)) / 2     (1 / 0 = 0 on the diagonal)
  // and out of their span by (1 - U U^H) A' V / s and (1 - V V^H) A'^H U / s. The vjp applies the adjoints.
  void vjp(Vjp& v) const {
    const Tensor &U = v.out(0), &S = v.out(1), &Vh = v.out(2), &dU = v.dy(0), &dS = v.dy(1), &dVh = v.dy(2);
    const std::int64_t m = U.dim(-2), k = U.dim(-1), n = Vh.dim(-1);
    const Tensor Uh = adjoint(U), V = adjoint(Vh);
    Tensor inner;
    if (dS.defined()) inner = cast(diag_embed(dS), U.dtype());
    if (!dU.defined() && !dVh.defined()) return v.set(0, matmul(U, matmul(inner, Vh)));

    const bool outside = m != n, diagonal = outside || is_complex(U.dtype());
    const Tensor gaps = reciprocal_gaps(S, {.subject = "svd"});
    const Tensor sums = reciprocal_gaps(S, {.subject = "svd", .sums = true, .diagonal = diagonal});
    const auto add = [](Tensor& total, const Tensor& x) { total = total.defined() ? total + x : x; };
    Tensor x, y;
    if (dU.defined()) x = y = matmul(Uh, dU);
    if (dVh.defined()) {
      const Tensor turn = matmul(Vh, adjoint(dVh));
      add(x, turn);
      add(y, -turn);
    }
    x = x * gaps;
    y = y * sums;
    add(inner, 0.5 * (x + adjoint(x) + y - adjoint(y)));
    Tensor dA = matmul(U, matmul(inner, Vh));

    const Tensor inverse = 2.0 * diag(sums);  // 1 / s
    if (dU.defined() && m > k) {
      const Tensor d = dU * unsqueeze(inverse, -2);
      dA = dA + matmul(d - matmul(U, matmul(Uh, d)), Vh);
    }
    if (dVh.defined() && n > k) {
      const Tensor d = unsqueeze(inverse, -1) * dVh;
      dA = dA + matmul(U, d - matmul(matmul(d, V), Vh));
    }
    v.set(0, dA);
  }
};
REEL_OP(Svd)

}  // namespace

SvdResult svd(Arg A) {
  const Tensors r = apply_many(op_of<Svd>(), Attrs(Svd{}), {&A.tensor("svd")}, A.where);
  if (!is_complex(A->dtype())) return {r[0], r[1], r[2]};  // for real A the gauge is a constant sign
  const Tensor turn = gauge(r[0], r[3]);
  return {r[0] * turn, r[1], adjoint(turn) * r[2]};
}

}  // namespace reel
