// Orthogonal and unitary matrices: from skew matrices, from reflections, and the nearest one to a given matrix.
#include <cmath>

#include "ops/functors/linalg.h"
#include "ops/matrix.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// The largest absolute value of each column, of real and imaginary parts: [..., 1, m].
Tensor column_sizes(const Tensor& U) {
  return max(is_complex(U.dtype()) ? maximum(abs(real(U)), abs(imag(U))) : abs(U), {-2}, true);
}

/// U with the sizes of columns brought into a range where their squares neither overflow nor underflow. The reflections
/// remain, and within the range all bits. A column of zeros remains.
Tensor of_ordinary_sizes(const Arg& U) {
  if (U->numel() == 0) return U.tensor();
  const bool single = real_of(U->dtype()) == DType::f32;
  const double large = single ? 0x1p50 : 0x1p360, least = single ? 0x1p-149 : 0x1p-1074;
  const Tensor sizes = column_sizes(U.tensor());
  return U.tensor() * stop_gradient(clamp(sizes, 1 / large, large) / clamp(sizes, least, INFINITY));
}

/// U and S^-1 U^H, [..., m, n]: the product of the reflections in U's columns is I - U S^-1 U^H. S is upper triangular
/// with S + S^H = U^H U, which makes the product unitary.
struct Reflections {
  Tensor U, rest;
};
Reflections reflections(const char* name, const Arg& columns) {
  const Tensor U = of_ordinary_sizes(columns);
  const Tensor gram = matmul({conj(U), columns.where}, U, {.transpose_a = true});
  const Tensor S = 0.5 * (triu(gram) + triu(gram, 1));
  try {
    return {U, triangular_solve({S, columns.where}, adjoint(U), {.upper = true})};
  } catch (const Error&) {
    if (!columns->concrete()) throw;
    const NoGrad no_grad;
    const std::vector<double> sizes = cast(column_sizes(columns.tensor()), DType::f64).values<double>();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t column = i % static_cast<std::size_t>(U.dim(-1));
      if (sizes[i] == 0)
        fail(name, columns.where, "column {} is 0, so it has no reflection; got {}", column, columns->spec().str());
      if (!std::isfinite(sizes[i]))
        fail(name, columns.where, "column {} has elements that are not finite; got {}", column, columns->spec().str());
    }
    throw;
  }
}

struct PolarFactor {
  static constexpr Traits traits{.name = "polar_factor"};
  Spec infer(Inputs in) const {
    check_matrix(in[0]);
    if (in[0].dim(-2) < in[0].dim(-1))
      rule_error("at least as many rows as columns are needed, got {}x{}. Hint: transpose", in[0].dim(-2),
                 in[0].dim(-1));
    return in[0].spec();
  }
  double flops(Inputs in) const {  // U V^H of the singular value decomposition
    const double m = extent(in[0], -2), n = extent(in[0], -1);
    return svd_flops(in[0]) + flops_of(in[0], 2 * m * n * n);
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().polar_factor({.dtype = out.dtype(),
                                .m = out.dim(-2),
                                .n = out.dim(-1),
                                .batch = matrices(out),
                                .a = in[0].data(),
                                .out = out.data()});
  }
  // With H = W^H A and X = W^H dA: W^H dW = O is skew, and X - X^H = O H + H O. The part of dA outside the span of W's
  // columns changes W by (I - W W^H) dA H^-1.
  void vjp(Vjp& v) const {
    const Tensor &W = v.out(), &G = v.dy(), WH = adjoint(W), H = matmul(WH, v.in(0)), K = matmul(WH, G);
    Tensor dA = matmul(W, sylvester(H, H, K - adjoint(K)));
    if (W.dim(-2) > W.dim(-1)) dA = dA + adjoint(solve(H, adjoint(G - matmul(W, K))));
    v.set(0, dA);
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return polar_factor(in[0]); }
};
REEL_OP(PolarFactor)

}  // namespace

Tensor skew(Arg X) {
  named("skew", X, [&] { check_square(X); });
  const Tensor upper = triu(X, 1);
  return upper - adjoint(upper);
}

Tensor skew_from_vector(Arg v, std::int64_t n) {
  named("skew_from_vector", v, [&] {
    if (!is_differentiable(v->dtype())) rule_error("{} elements are not supported", name_of(v->dtype()));
    if (n < 0) rule_error("a matrix has 0 rows or more, got {}", n);
    const std::int64_t free = saturated_product(n, std::max<std::int64_t>(n - 1, 0)) / 2;
    if (v->rank() < 1 || v->dim(-1) != free) rule_error("a skew {0}x{0} matrix has {1} free elements", n, free);
    if (n > 65536) rule_error("at most 65536 rows expected, whose elements i32 can count, got {}", n);
  });
  const std::int64_t free = v->dim(-1), count = v->shape().product(0, v->rank() - 1);
  std::vector<std::int32_t> place(static_cast<std::size_t>(n * n),
                                  static_cast<std::int32_t>(free));  // `free`: the index of a zero
  std::int32_t next = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) place[static_cast<std::size_t>(i * n + j)] = next++;
  }
  const Tensor index = Tensor::from<std::int32_t>(place, {n * n}, v->backend());
  const Tensor table = pad(transpose(reshape(v, {count, free})), 0, 0, 1);
  const Shape shape = with_matrix(v->shape().erase(v->rank() - 1), n, n);
  const Tensor upper = reshape(transpose(embedding(index, table)), {shape.begin(), shape.end()});
  return upper - adjoint(upper);
}

Tensor cayley(Arg A) {
  named("cayley", A, [&] { check_square(A); });
  const Tensor one = eye_like(A);
  return solve({one + A, A.where}, one - A);
}

Tensor cayley(Arg A, Arg D) {
  need_tensors("cayley", {&D});
  const Tensor W = cayley(A);
  if (D->rank() < 1 || D->dim(-1) != W.dim(-1))
    fail("cayley", A.where, "D needs one element for each column of A; got {} and {}", A->spec().str(),
         D->spec().str());
  const Shape row = D->shape().insert(D->rank() - 1, 1);
  return told_as("cayley", "mul", {&A, &D}, [&] { return W * reshape(D, {row.begin(), row.end()}); });
}

Tensor householder_product(Arg U) {
  named("householder_product", U, [&] { check_matrix(U); });
  const Reflections all = reflections("householder_product", U);
  return eye(U->dim(-2), U->dtype(), U->backend()) - matmul(all.U, all.rest);
}

Tensor householder_apply(Arg x, Arg U) {
  need_tensors("householder_apply", {&x});
  named("householder_apply", U, [&] { check_matrix(U); });
  return told_as("householder_apply", "matmul", {&x, &U}, [&] {
    const Reflections all = reflections("householder_apply", U);
    const Tensor onto = matmul(x, all.rest, {.transpose_b = true});
    return x - matmul({onto, x.where}, all.U, {.transpose_b = true});
  });
}

Tensor polar_factor(Arg A) { return apply(PolarFactor{}, A); }

}  // namespace reel
