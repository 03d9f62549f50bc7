// Parts of matrices: diagonals and triangles of the last two axes.
#include "ops/constant.h"
#include "ops/ops.h"

namespace reel {

namespace {

constexpr Traits part(const char* name) {
  return {.name = name, .kind = Kind::movement, .saves = Saves::nothing, .linear = true};
}

/// Copies between a vector [..., n] and the diagonal of a matrix [..., rows, columns].
void copy_diagonal(const Tensor& matrix, const void* in, void* out, std::int64_t n, bool from_matrix) {
  const std::int64_t rows = matrix.dim(-2), columns = matrix.dim(-1);
  const std::int64_t count = matrix.shape().product(0, matrix.rank() - 2);
  StridedLoop<2> loop;
  if (from_matrix) {
    loop.push(count, {rows * columns, n});
    loop.push(n, {columns + 1, 1});
  } else {
    loop.push(count, {n, rows * columns});
    loop.push(n, {1, columns + 1});
  }
  matrix.backend().copy({matrix.dtype(), loop, in, out});
}

struct Diag {  // [..., m, n] -> [..., min(m, n)]
  static constexpr Traits traits = part("diag");
  Spec infer(Inputs in) const {
    if (in[0].rank() < 2) rule_error("two axes or more are needed");
    const int r = in[0].rank();
    const std::int64_t n = std::min(in[0].dim(-1), in[0].dim(-2));
    return {in[0].dtype(), in[0].shape().erase(r - 1).erase(r - 2).insert(r - 2, n), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const { copy_diagonal(in[0], in[0].data(), out.data(), out.dim(-1), true); }
  void vjp(Vjp& v) const {
    const Shape& shape = v.spec(0).shape;
    Tensor square = diag_embed(v.dy());
    for (int axis : {shape.rank() - 2, shape.rank() - 1}) square = pad(square, axis, 0, shape[axis] - square.dim(axis));
    v.set(0, square);
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return diag(in[0]); }
};
REEL_OP(Diag)

struct DiagEmbed {  // [..., n] -> [..., n, n]
  static constexpr Traits traits = part("diag_embed");
  Spec infer(Inputs in) const {
    if (in[0].rank() < 1) rule_error("one axis or more is needed");
    return {in[0].dtype(), in[0].shape().insert(in[0].rank(), in[0].dim(-1)), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    copy_diagonal(out, in[0].data(), out.data(), out.dim(-1), false);
  }
  void vjp(Vjp& v) const { v.set(0, diag(v.dy())); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return diag_embed(in[0]); }
};
REEL_OP(DiagEmbed)

/// The mask of elements of x on or below diagonal k: bool [m, n].
Tensor below(const char* name, const Arg& x, std::int64_t k) {
  need_tensors(name, {&x});
  if (x->rank() < 2) fail(name, x.where, "two axes or more are needed; got {}", x->spec().str());
  const std::int64_t m = x->dim(-2), n = x->dim(-1);
  const auto keep = std::make_unique<bool[]>(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) keep[static_cast<std::size_t>(i * n + j)] = j - i <= k;
  }
  return Tensor::from(std::span<const bool>(keep.get(), static_cast<std::size_t>(m * n)), {m, n}, x->backend());
}

}  // namespace

Tensor diag(Arg x) { return apply(Diag{}, x); }
Tensor diag_embed(Arg x) { return apply(DiagEmbed{}, x); }

Tensor tril(Arg x, std::int64_t k) { return where({below("tril", x, k), x.where}, x, 0.0); }
// All diagonals are above -numel(), from where k - 1 does not overflow.
Tensor triu(Arg x, std::int64_t k) {
  return where({below("triu", x, std::max(k, -x.tensor("triu").numel()) - 1), x.where}, 0.0, x);
}

Tensor eye(std::int64_t n, DType dtype, Backend& backend, Loc where) {
  if (n < 0) fail("eye", where, "a matrix has 0 rows or more, got {}", n);
  try {
    [[maybe_unused]] const Shape square{n, n};  // throws if that is too large, before there is a diagonal
  } catch (const RuleError& e) {
    fail("eye", where, "{}", e.rule);
  }
  return diag_embed(full({n}, 1, dtype, backend));
}

}  // namespace reel
