// Matrix and vector products.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/axes.h"
#include "ops/matrix.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// What is applied to an operand before the product.
struct Side {
  bool transpose, conj;
  bool operator==(const Side&) const = default;
};

struct Matmul {
  Side a, b;
  static constexpr std::int64_t lanes = 16;  // of a vector of f32
  bool operator==(const Matmul&) const = default;
  static constexpr Traits traits{.name = "matmul", .saves = Saves::inputs};

  struct Sizes {
    std::int64_t m, k, n;
  };
  Sizes sizes(const Tensor& x, const Tensor& y) const {
    return {x.dim(a.transpose ? -1 : -2), x.dim(a.transpose ? -2 : -1), y.dim(b.transpose ? -2 : -1)};
  }

  Spec infer(Inputs in) const {
    const Tensor &x = in[0], &y = in[1];
    if (x.dtype() != y.dtype()) rule_error("both sides must have one dtype. Hint: cast one");
    if (!is_differentiable(x.dtype())) rule_error("{} elements are not supported", name_of(x.dtype()));
    if (x.rank() < 2 || y.rank() < 2) rule_error("both sides need one axis or more");
    const auto [m, k, n] = sizes(x, y);
    if (const std::int64_t other = y.dim(b.transpose ? -1 : -2); k != other)
      rule_error("inner dimensions differ: {} and {}{}", k, other,
                 y.dim(b.transpose ? -2 : -1) != k ? ""
                 : b.transpose                     ? ". Hint: leave out transpose_b"
                                                   : ". Hint: pass transpose_b");
    if (x.rank() > 2 && y.rank() > 2 && !(places(x) == places(y)))
      rule_error("leading axes differ: {} and {}", places(x).str(), places(y).str());
    const Shape lead = x.rank() > 2 ? places(x) : places(y);
    return {x.dtype(), lead.insert(lead.rank(), m).insert(lead.rank() + 1, n), &x.backend()};
  }

  double flops(Inputs in) const {
    const double inner = static_cast<double>(sizes(in[0], in[1]).k);
    return static_cast<double>(infer(in).shape.numel()) * 2 * inner * (is_complex(in[0].dtype()) ? 4 : 1);
  }

  void run(Inputs in, Tensor& out) const {
    const Tensor &x = in[0], &y = in[1];
    auto [m, k, n] = sizes(x, y);
    std::int64_t batch = out.shape().product(0, out.rank() - 2);
    if (y.rank() == 2 && !a.transpose) {  // the batch axes of a become further rows of one product
      m *= batch;
      batch = 1;
    }
    out.backend().gemm({.dtype = out.dtype(),
                        .transpose_a = a.transpose,
                        .transpose_b = b.transpose,
                        .conj_a = a.conj,
                        .conj_b = b.conj,
                        .m = m,
                        .n = n,
                        .k = k,
                        .batch = batch,
                        .stride_a = x.rank() > 2 ? m * k : 0,
                        .stride_b = y.rank() > 2 ? k * n : 0,
                        .a = x.data(),
                        .b = y.data(),
                        .c = out.data()});
  }

  // C = A B, where A and B are a and b, transposed and conjugated by their flags: dA = dC B^H and dB = A^H dC, and the
  // same flags lead from there to the gradients of a and b.
  void vjp(Vjp& v) const {
    const Tensor& dc = v.dy();
    const bool both = a.conj == b.conj;  // conjugates the other factor: its flag, ^H and this factor's flag
    if (v.needs(0)) {
      const Tensor& y = v.in(1);
      v.set(0, shared(v.spec(0), a.transpose ? product(y, {b.transpose, both}, dc, {true, a.conj})
                                             : product(dc, {false, a.conj}, y, {!b.transpose, both})));
    }
    if (!v.needs(1)) return;
    const Tensor& x = v.in(0);
    if (v.spec(1).shape.rank() == 2 && !a.transpose && dc.rank() > 2) {  // batch axes become rows: one product, no sum
      const Tensor rows = as_rows(x), drows = as_rows(dc);
      v.set(1, b.transpose ? turned(drows, b.conj, rows, {false, both})
                           : product(rows, {true, both}, drows, {false, b.conj}));
    } else {
      v.set(1, shared(v.spec(1), b.transpose ? turned(dc, b.conj, x, {a.transpose, both})
                                             : product(x, {!a.transpose, both}, dc, {false, b.conj})));
    }
  }
  /// dc^H x, the gradient of a weight [n, k]. For a narrow weight it computes the transpose, because kernels vectorise
  /// along rows, and transposes it last; in a loop that happens after the sum over time.
  static Tensor turned(const Tensor& dc, bool conj, const Tensor& x, Side side) {
    const std::int64_t k = x.dim(side.transpose ? -2 : -1);
    if (dc.rank() > 2 || k > lanes || k >= dc.dim(-1)) return product(dc, {true, conj}, x, side);
    return permute(product(x, {!side.transpose, side.conj}, dc, {false, conj}), {1, 0});
  }
  static Tensor product(const Tensor& x, Side a, const Tensor& y, Side b) {
    return apply(Matmul{a, b}, {&x, &y}, Loc::current());
  }
  /// [..., n] -> [rows, n]
  static Tensor as_rows(const Tensor& x) { return reshape(x, {x.shape().product(0, x.rank() - 1), x.dim(-1)}); }
  /// The gradient of an operand of two axes that the batch shared: its sum over the batch.
  static Tensor shared(const Spec& spec, const Tensor& g) {
    return g.rank() > spec.shape.rank() ? sum_to(g, spec.shape) : g;
  }

  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    if (mapped[0] && mapped[1]) {
      if (in[0].rank() == in[1].rank()) return apply(*this, in, Loc::current());
      // Within a step the batch shares one operand: give it the batch axes.
      Tensor x = in[0], y = in[1];
      Tensor& shorter = x.rank() < y.rank() ? x : y;
      const Tensor& longer = x.rank() < y.rank() ? y : x;
      Shape shape = places(longer);
      shape = shape.insert(shape.rank(), shorter.dim(-2));
      shape = shape.insert(shape.rank(), shorter.dim(-1));
      shorter = expand(align(shorter, longer.rank() - 1), shape);
      return apply(*this, {&x, &y}, Loc::current());
    }
    const std::size_t fixed = mapped[0] ? 1 : 0;
    if (in[fixed].rank() == 2) return apply(*this, in, Loc::current());
    Tensor sides[2] = {in[0], in[1]};
    sides[fixed] = expand(in[fixed], in[fixed].shape().insert(0, steps));
    return vmap({&sides[0], &sides[1]}, all_varying(), steps);
  }
  static Mapped all_varying() {
    Mapped v;
    v.set(0);
    v.set(1);
    return v;
  }

  /// The sum over time of a[t]^T b[t] is one product: time steps extend the inner dimension.
  Tensor vmap_sum(Inputs in, Mapped mapped, std::int64_t) const {
    if (!mapped[0] || !mapped[1] || in[0].rank() != 3 || in[1].rank() != 3 || !a.transpose || b.transpose) return {};
    const Tensor x = as_rows(in[0]), y = as_rows(in[1]);
    return apply(*this, {&x, &y}, Loc::current());
  }

  bool shards_rows(Inputs in, Mapped sharded) const {
    if (in[0].rank() == 2) return sharded[0] && !sharded[1] && !a.transpose && in[1].rank() == 2;
    return sharded[0] && sharded[1] == (in[1].rank() > 2);
  }
  bool reduces_rows(Inputs in, Mapped sharded) const {
    return a.transpose && !b.transpose && sharded[0] && sharded[1] && in[0].rank() == 2 && in[1].rank() == 2;
  }
  /// Is a product per step as fast as one for all steps? That one makes a stacked tensor of the wide extent, products
  /// per step one of the narrow extent. But a step reads the weight again, or adds to its gradient (a is transposed),
  /// for the few rows of a shard.
  bool memory_bound(Inputs in) const {
    if (in[0].rank() != 2 || in[1].rank() != 2) return false;
    const auto [m, k, n] = sizes(in[0], in[1]);
    // A wide b is the input of a layer with few outputs: a value of the forward pass, which may be stacked anyway.
    const std::int64_t side = a.transpose ? m : k, narrow = std::min(side, n), wide = std::max(side, n);
    if (a.transpose && narrow > lanes && narrow != n) return false;
    const Backend& device = in[0].backend();
    const std::int64_t rows = a.transpose ? k : m, height = rows / std::max<std::int64_t>(1, device.shards({rows}));
    return narrow <= device.costs().narrow && 4 * (narrow - 4) <= wide && narrow <= 2 * height;
  }
  /// Stores a constant b in the layout that gemm reads fastest: transposed for a narrow product, not transposed
  /// otherwise.
  bool prepack(Inputs in, Mapped constant, Attrs& better, Tensors& replaced) const {
    if (!constant[1] || in[1].rank() != 2) return false;
    const auto [m, k, n] = sizes(in[0], in[1]);
    const bool narrow = is_narrow_product(n, k) && is_floating(in[1].dtype()) && !a.transpose;
    if (b.transpose == narrow) return false;
    better = Attrs(Matmul{a, {narrow, b.conj}});
    replaced = {{}, permute(in[1], {1, 0})};
    return true;
  }
};
REEL_OP(Matmul)
REEL_ATTRIBUTES(Matmul, {"transpose_a", attribute(op.a.transpose)}, {"transpose_b", attribute(op.b.transpose)},
                {"conj_a", attribute(op.a.conj)}, {"conj_b", attribute(op.b.conj)})

/// Throws Error unless a and b are vectors.
void check_vectors(const char* name, const Arg& a, const Arg& b) {
  need_tensors(name, {&a, &b});
  if (a->rank() != 1 || b->rank() != 1)
    fail(name, a.where, "two vectors expected; got {}, {}", a->spec().str(), b->spec().str());
}

}  // namespace

Tensor matmul(Arg a, Arg b, MatmulFlags flags) {
  need_tensors("matmul", {&a, &b});
  const Side left{flags.transpose_a, flags.conj_a}, right{flags.transpose_b, flags.conj_b};
  if (a->rank() != 1 && b->rank() != 1) {
    const auto [x, y] = broadcast_places(a, b);
    return apply(Matmul{left, right}, {&x, &y}, a.where);
  }
  // A vector is a row on the left and a column on the right; its extent of 1 is dropped from the result.
  const bool row = a->rank() == 1, column = b->rank() == 1;
  const Tensor x = row ? unsqueeze(a, 0) : a.tensor(), y = column ? unsqueeze(b, 1) : b.tensor();
  const Matmul op{{left.transpose && !row, left.conj}, {right.transpose && !column, right.conj}};
  const Tensor c = apply(op, {&x, &y}, a.where);
  return squeeze({c, a.where}, row && column ? Axes{-2, -1} : Axes{row ? -2 : -1});
}

Tensor linear(Arg x, Arg W) {
  need_tensors("linear", {&x, &W});
  if (W->rank() != 2 || x->rank() < 1 || x->dim(-1) != W->dim(1))
    fail("linear", x.where, "x must be [..., i] and W [o, i]; got x {}, W {}", x->spec().str(), W->spec().str());
  return told_as("linear", "matmul", [&] { return matmul(x, W, {.transpose_b = true}); });
}
Tensor linear(Arg x, Arg W, Arg b) {
  need_tensors("linear", {&b});
  const Tensor y = linear(x, W);
  if (b->shape() != Shape{W->dim(0)})
    fail("linear", x.where, "b must have one element for each row of W; got W {}, b {}", W->spec().str(),
         b->spec().str());
  return operator+({y, x.where}, b);
}

Tensor dot(Arg a, Arg b) {
  check_vectors("dot", a, b);
  return told_as("dot", "matmul", [&] { return matmul(a, b); });
}
Tensor vdot(Arg a, Arg b) {
  check_vectors("vdot", a, b);
  return told_as("vdot", "matmul", [&] { return matmul(a, b, {.conj_a = true}); });
}
Tensor outer(Arg a, Arg b) {
  check_vectors("outer", a, b);
  const Tensor column = unsqueeze(a, 1);
  return operator*({column, a.where}, b);
}
Tensor matrix_trace(Arg x) {
  need_tensors("matrix_trace", {&x});
  return told_as("matrix_trace", "diag", [&] { return sum({diag(x), x.where}, {-1}); });
}

}  // namespace reel
