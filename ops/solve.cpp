// Linear equations.
#include <cmath>

#include "ops/functors/linalg.h"
#include "ops/matrix.h"

namespace reel {

namespace {

void check_equations(Inputs in) {
  check_same_dtype(in);
  check_square(in[0]);
  check_matrix(in[1]);
  if (in[0].dim(-1) != in[1].dim(-2)) rule_error("A is {0}x{0}, but B has {1} rows", in[0].dim(-1), in[1].dim(-2));
}

/// Gaussian elimination of each matrix: GVL, section 3.2.
double lu_flops(const Tensor& A) { return flops_of(A, 2.0 / 3 * std::pow(extent(A, -1), 3)); }

/// So many substitutions of B's columns into triangles of A's size: GVL, section 3.1.
double substitution_flops(const Tensor& A, const Tensor& B, const Shape& places, int triangles) {
  const double each = extent(A, -1) * extent(A, -1) * extent(B, -1) * (is_complex(A.dtype()) ? 4 : 1);
  return triangles * static_cast<double>(places.numel()) * each;
}

/// l r^H, the gradient of the matrix of a linear system. If the batch shares the matrix, its sum over the batch, as one
/// product.
Tensor outer(const Spec& spec, const Tensor& l, const Tensor& r) {
  if (spec.shape.rank() > 2) return matmul(l, conj(r), {.transpose_b = true});
  const auto as_rows = [](const Tensor& x) { return reshape(transpose(x), {matrices(x) * x.dim(-1), x.dim(-2)}); };
  return matmul(as_rows(l), conj(as_rows(r)), {.transpose_a = true});
}

struct Solve {  // A [..., n, n], B [..., n, k] -> [..., n, k]
  SolveFlags flags;
  bool operator==(const Solve&) const = default;
  static constexpr Traits traits{.name = "solve"};
  Spec infer(Inputs in) const {
    check_equations(in);
    return {in[1].dtype(), with_matrix(common_places(in), in[1].dim(-2), in[1].dim(-1)), &in[1].backend()};
  }
  double flops(Inputs in) const {  // each A is eliminated once
    return lu_flops(in[0]) + substitution_flops(in[0], in[1], common_places(in), 2);
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().solve({.dtype = out.dtype(),
                         .adjoint = flags.adjoint,
                         .n = out.dim(-2),
                         .k = out.dim(-1),
                         .batch = matrices(out),
                         .stride_a = matrix_stride(in[0]),
                         .stride_b = matrix_stride(in[1]),
                         .a = in[0].data(),
                         .b = in[1].data(),
                         .x = out.data()});
  }
  void vjp(Vjp& v) const {
    const Tensor dB = solve(v.in(0), v.dy(), {.adjoint = !flags.adjoint});
    v.set(1, dB);
    if (v.needs(0)) v.set(0, flags.adjoint ? -outer(v.spec(0), v.out(), dB) : -outer(v.spec(0), dB, v.out()));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return apply(*this, pointers(for_all_steps(in, mapped, steps)), Loc::current());
  }
};
REEL_OP(Solve)

struct TriangularSolve {  // A [..., n, n], B [..., n, k] -> [..., n, k]
  TriangularFlags flags;
  bool operator==(const TriangularSolve&) const = default;
  static constexpr Traits traits{.name = "triangular_solve"};
  Spec infer(Inputs in) const {
    check_equations(in);
    return {in[1].dtype(), with_matrix(common_places(in), in[1].dim(-2), in[1].dim(-1)), &in[1].backend()};
  }
  double flops(Inputs in) const { return substitution_flops(in[0], in[1], common_places(in), 1); }
  void run(Inputs in, Tensor& out) const {
    out.backend().triangular_solve({.dtype = out.dtype(),
                                    .upper = flags.upper,
                                    .unit_diagonal = flags.unit_diagonal,
                                    .adjoint = flags.adjoint,
                                    .tolerance = flags.tolerance,
                                    .n = out.dim(-2),
                                    .k = out.dim(-1),
                                    .batch = matrices(out),
                                    .stride_a = matrix_stride(in[0]),
                                    .stride_b = matrix_stride(in[1]),
                                    .a = in[0].data(),
                                    .b = in[1].data(),
                                    .x = out.data()});
  }
  void vjp(Vjp& v) const {
    TriangularFlags other = flags;
    other.adjoint = !flags.adjoint;
    const Tensor dB = triangular_solve(v.in(0), v.dy(), other);
    v.set(1, dB);
    if (!v.needs(0)) return;
    const Tensor dA = flags.adjoint ? -outer(v.spec(0), v.out(), dB) : -outer(v.spec(0), dB, v.out());
    const int skip = flags.unit_diagonal ? 1 : 0;
    v.set(0, flags.upper ? triu(dA, skip) : tril(dA, -skip));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return apply(*this, pointers(for_all_steps(in, mapped, steps)), Loc::current());
  }
};
REEL_OP(TriangularSolve)

struct Inverse {
  static constexpr Traits traits{.name = "inverse", .saves = Saves::output};
  Spec infer(Inputs in) const {
    check_square(in[0]);
    return in[0].spec();
  }
  double flops(Inputs in) const { return lu_flops(in[0]) + substitution_flops(in[0], in[0], places(in[0]), 2); }
  void run(Inputs in, Tensor& out) const {
    const Tensor one = eye_like(out);
    const std::int64_t n = out.dim(-1);
    out.backend().solve(
        {out.dtype(), false, n, n, matrices(out), matrix_stride(in[0]), 0, in[0].data(), one.data(), out.data()});
  }
  void vjp(Vjp& v) const {  // d(A^-1) = -A^-1 dA A^-1
    const Tensor h = adjoint(v.out());
    v.set(0, -matmul(matmul(h, v.dy()), h));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return inverse(in[0]); }
};
REEL_OP(Inverse)

struct Sylvester {  // A [..., m, m], B [..., n, n], C [..., m, n] -> [..., m, n]
  static constexpr Traits traits{.name = "sylvester"};
  Spec infer(Inputs in) const {
    check_same_dtype(in);
    check_square(in[0]);
    check_square(in[1]);
    check_matrix(in[2]);
    const std::int64_t m = in[0].dim(-1), n = in[1].dim(-1);
    if (in[2].dim(-2) != m || in[2].dim(-1) != n)
      rule_error("A is {0}x{0} and B is {1}x{1}, so C must be {0}x{1}, got {2}x{3}", m, n, in[2].dim(-2),
                 in[2].dim(-1));
    return {in[2].dtype(), with_matrix(common_places(in), m, n), &in[2].backend()};
  }
  double flops(Inputs in) const {  // GVL, algorithm 7.6.2: two Schur forms, a triangular equation, four products
    const double m = extent(in[0], -1), n = extent(in[1], -1);
    const Shape places = common_places(in);
    const double each = 5 * (m * m * n + m * n * n) * (is_complex(in[2].dtype()) ? 4 : 1);
    return flops_of(in[0], 25 * m * m * m) + flops_of(in[1], 25 * n * n * n) +
           static_cast<double>(places.numel()) * each;
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().sylvester({.dtype = out.dtype(),
                             .m = out.dim(-2),
                             .n = out.dim(-1),
                             .batch = matrices(out),
                             .stride_a = matrix_stride(in[0]),
                             .stride_b = matrix_stride(in[1]),
                             .stride_c = matrix_stride(in[2]),
                             .a = in[0].data(),
                             .b = in[1].data(),
                             .c = in[2].data(),
                             .x = out.data()});
  }
  void vjp(Vjp& v) const {  // A dX + dX B = dC - dA X - X dB
    const Tensor dC = sylvester(adjoint(v.in(0)), adjoint(v.in(1)), v.dy());
    v.set(2, dC);
    if (v.needs(0)) v.set(0, -matmul(dC, conj(v.out()), {.transpose_b = true}));
    if (v.needs(1)) v.set(1, -matmul(conj(v.out()), dC, {.transpose_a = true}));
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    return apply(*this, pointers(for_all_steps(in, mapped, steps)), Loc::current());
  }
};
REEL_OP(Sylvester)

}  // namespace

Tensor solve(Arg A, Arg B, SolveFlags flags) {
  need_tensors("solve", {&A, &B});
  const auto [left, right] = broadcast_places(A, B);
  return apply(Solve{flags}, {&left, &right}, A.where);
}
Tensor triangular_solve(Arg A, Arg B, TriangularFlags flags) {
  need_tensors("triangular_solve", {&A, &B});
  if (std::isnan(flags.tolerance)) fail("triangular_solve", A.where, "tolerance is a number, got {}", flags.tolerance);
  const auto [left, right] = broadcast_places(A, B);
  return apply(TriangularSolve{flags}, {&left, &right}, A.where);
}
Tensor inverse(Arg A) { return apply(Inverse{}, A); }
Tensor sylvester(Arg A, Arg B, Arg C) { return apply(Sylvester{}, A, B, C); }

}  // namespace reel
