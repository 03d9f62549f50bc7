// eig, eigvals, eigh. The vjps of the ops take the change of a vector to have no component along the vector itself. The
// functions on top fix the gauge; its gradient adds the missing component, for any loss.
#include <cmath>

#include "ops/functors/linalg.h"
#include "ops/spectral_parts.h"

namespace reel {

namespace {

struct Eig {  // A [..., n, n] -> values, vectors, indices of their largest components, whether they are a basis
  static constexpr Traits traits{.name = "eig", .saves = Saves::output};
  int outputs() const { return 4; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_square(in[0]);
    const Shape rows = in[0].shape().erase(in[0].rank() - 1);
    Backend* backend = &in[0].backend();
    out[0] = {complex_of(in[0].dtype()), rows, backend};
    out[1] = {complex_of(in[0].dtype()), in[0].shape(), backend};
    out[2] = {DType::i32, rows, backend};
    out[3] = {DType::boolean, rows.erase(rows.rank() - 1), backend};
  }
  double flops(Inputs in) const { return flops_of(in[0], 25 * std::pow(extent(in[0], -1), 3)); }  // GVL, section 7.5
  void run(Inputs in, std::span<Tensor> out) const {
    const std::int64_t batch = out[3].numel();
    const std::int64_t dependent = out[0].backend().eig({.dtype = in[0].dtype(),
                                                         .batch = batch,
                                                         .n = in[0].dim(-1),
                                                         .a = in[0].data(),
                                                         .values = out[0].data(),
                                                         .vectors = out[1].data(),
                                                         .largest = static_cast<std::int32_t*>(out[2].data()),
                                                         .independent = static_cast<bool*>(out[3].data())});
    if (dependent > 0)
      warn("eig",
           fmt::format("{} of {} matrices are defective: their eigenvectors are no basis, gradients are taken as 0",
                       dependent, batch));
  }

  // A V = V diag(w): dA = V^-H (diag(dw) + (V^H dV) / conj(w_j - w_i)) V^H
  void vjp(Vjp& v) const {
    const Tensor Vh = adjoint(v.out(1));
    Tensor inner;
    if (v.dy(1).defined()) inner = matmul(Vh, v.dy(1)) * conj(reciprocal_gaps(v.out(0), {.subject = "eig"}));
    if (v.dy(0).defined()) inner = inner.defined() ? inner + diag_embed(v.dy(0)) : diag_embed(v.dy(0));
    const Tensor basis = unsqueeze(unsqueeze(v.out(3), -1), -1);
    v.set(0, solve(where(basis, Vh, eye(Vh.dim(-1), Vh.dtype(), Vh.backend())), where(basis, matmul(inner, Vh), 0.0)));
  }
};
REEL_OP(Eig)

struct Eigh {  // A [..., n, n], Hermitian -> values, vectors, indices of their largest components
  static constexpr Traits traits{.name = "eigh", .saves = Saves::output};
  int outputs() const { return 3; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_square(in[0]);
    const Shape rows = in[0].shape().erase(in[0].rank() - 1);
    out[0] = {real_of(in[0].dtype()), rows, &in[0].backend()};
    out[1] = in[0].spec();
    out[2] = {DType::i32, rows, &in[0].backend()};
  }
  double flops(Inputs in) const { return flops_of(in[0], 9 * std::pow(extent(in[0], -1), 3)); }  // GVL, section 8.3
  void run(Inputs in, std::span<Tensor> out) const {
    out[0].backend().eigh({.dtype = in[0].dtype(),
                           .batch = in[0].shape().product(0, in[0].rank() - 2),
                           .n = in[0].dim(-1),
                           .a = in[0].data(),
                           .values = out[0].data(),
                           .vectors = out[1].data(),
                           .largest = static_cast<std::int32_t*>(out[2].data())});
  }

  // The same with V^-1 = V^H.
  void vjp(Vjp& v) const {
    const Tensor &V = v.out(1), Vh = adjoint(V);
    Tensor inner;
    if (v.dy(1).defined()) inner = matmul(Vh, v.dy(1)) * reciprocal_gaps(v.out(0), {.subject = "eigh"});
    if (v.dy(0).defined()) {
      const Tensor d = cast(diag_embed(v.dy(0)), V.dtype());
      inner = inner.defined() ? inner + d : d;
    }
    v.set(0, matmul(V, matmul(inner, Vh)));
  }
};
REEL_OP(Eigh)

Tensors run_eig(const char* name, const Arg& A) {
  return apply_many(op_of<Eig>(), Attrs(Eig{}), {&A.tensor(name)}, A.where);
}

}  // namespace

EigResult eig(Arg A) {
  const Tensors r = run_eig("eig", A);
  const Tensor &w = r[0], &V = r[1];
  const Tensor length = sqrt(sum(real(V * conj(V)), {-2}, true));
  return {w, V * (gauge(V, r[2]) / length)};
}

Tensor eigvals(Arg A) { return run_eig("eigvals", A)[0]; }

EigResult eigh(Arg A) {
  named("eigh", A, [&] { check_square(A); });
  const Tensor half = 0.5 * A, H = half + adjoint(half);
  const Tensors r = apply_many(op_of<Eigh>(), Attrs(Eigh{}), {&H}, A.where);
  const Tensor &w = r[0], &V = r[1];
  return {w, is_complex(V.dtype()) ? V * gauge(V, r[2]) : V};  // for real V the gauge is a constant sign
}

}  // namespace reel
