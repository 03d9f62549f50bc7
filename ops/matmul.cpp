// Matrix products.
#include "ops/ops.h"

namespace reel {

namespace {

struct Matmul {
  bool transpose_a, transpose_b;
  static constexpr Traits traits{.name = "matmul", .reads = Reads::inputs};

  struct Sizes {
    std::int64_t m, k, n;
  };
  Sizes sizes(const Tensor& a, const Tensor& b) const {
    return {a.dim(transpose_a ? -1 : -2), a.dim(transpose_a ? -2 : -1), b.dim(transpose_b ? -2 : -1)};
  }
  /// [..., n] -> [rows, n]
  static Tensor as_rows(const Tensor& x) { return reshape(x, {x.shape().product(0, x.rank() - 1), x.dim(-1)}); }
  static Shape leading(const Tensor& x) { return x.shape().erase(x.rank() - 1).erase(x.rank() - 2); }

  Spec infer(Inputs in) const {
    const Tensor &a = in[0], &b = in[1];
    if (a.dtype() != b.dtype()) broken("both sides must have one dtype. Hint: cast one");
    if (!is_differentiable(a.dtype())) broken("{} elements are not supported", name_of(a.dtype()));
    if (a.rank() < 2 || b.rank() < 2)
      broken("both sides need two axes or more. Hint: reshape a vector to one row or column");
    const auto [m, k, n] = sizes(a, b);
    if (const std::int64_t other = b.dim(transpose_b ? -1 : -2); k != other)
      broken("inner dimensions differ: {} and {}{}", k, other,
             b.dim(transpose_b ? -2 : -1) == k ? fmt::format(". Hint: pass transpose_b = {}", !transpose_b) : "");
    if (a.rank() > 2 && b.rank() > 2 && !(leading(a) == leading(b)))
      broken("leading axes differ: {} and {}", leading(a).str(), leading(b).str());
    const Shape lead = a.rank() > 2 ? leading(a) : leading(b);
    return {a.dtype(), lead.insert(lead.rank(), m).insert(lead.rank() + 1, n), &a.backend()};
  }

  void run(Inputs in, Tensor& out) const {
    const Tensor &a = in[0], &b = in[1];
    auto [m, k, n] = sizes(a, b);
    std::int64_t batch = out.shape().product(0, out.rank() - 2);
    if (b.rank() == 2 && !transpose_a) {  // the leading axes of a are further rows of one product
      m *= batch;
      batch = 1;
    }
    out.backend().gemm({out.dtype(), transpose_a, transpose_b, m, n, k, batch, a.rank() > 2 ? m * k : 0,
                        b.rank() > 2 ? k * n : 0, a.data(), b.data(), out.data()});
  }

  // c = A B with A = a or its transpose: dA = dc B*, dB = A* dc.
  void vjp(Vjp& v) const {
    const Tensor& dc = v.dy();
    if (v.needs(0)) {
      const Tensor b = conj(v.in(1));
      v.set(0,
            shared(v.spec(0), transpose_a ? matmul(b, dc, {transpose_b, true}) : matmul(dc, b, {false, !transpose_b})));
    }
    if (v.needs(1)) {
      const Tensor a = conj(v.in(0));
      if (v.spec(1).shape.rank() == 2 && !transpose_a &&
          dc.rank() > 2) {  // leading axes are rows: one product, not a sum
        const Tensor rows = as_rows(a), drows = as_rows(dc);
        v.set(1, transpose_b ? matmul(drows, rows, {true, false}) : matmul(rows, drows, {true, false}));
      } else {
        v.set(1, shared(v.spec(1),
                        transpose_b ? matmul(dc, a, {true, transpose_a}) : matmul(a, dc, {!transpose_a, false})));
      }
    }
  }
  /// The gradient of a side of two axes that all leading places shared: their sum.
  static Tensor shared(const Spec& spec, const Tensor& g) {
    return g.rank() > spec.shape.rank() ? sum_to(g, spec.shape) : g;
  }

  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    if (varying[0] && varying[1]) {
      if (in[0].rank() == in[1].rank()) return apply(*this, in, Where::current());
      // one side is shared by leading axes within a step: give it those axes
      Tensor a = in[0], b = in[1];
      Tensor& shorter = a.rank() < b.rank() ? a : b;
      const Tensor& longer = a.rank() < b.rank() ? b : a;
      Shape shape = longer.shape();
      shape[shape.rank() - 2] = shorter.dim(-2);
      shape[shape.rank() - 1] = shorter.dim(-1);
      shorter = expand(align(shorter, longer.rank() - 1), shape);
      return apply(*this, {&a, &b}, Where::current());
    }
    const std::size_t fixed = varying[0] ? 1 : 0;
    if (in[fixed].rank() == 2) return apply(*this, in, Where::current());
    Tensor sides[2] = {in[0], in[1]};
    sides[fixed] = expand(in[fixed], in[fixed].shape().insert(0, steps));
    return batch({&sides[0], &sides[1]}, both(), steps);
  }
  static Varying both() {
    Varying v;
    v.set(0);
    v.set(1);
    return v;
  }

  /// The sum over steps of at[t] b[t] is one product: steps become further places of the inner dimension.
  Tensor batch_sum(Inputs in, Varying varying, std::int64_t) const {
    if (!varying[0] || !varying[1] || in[0].rank() != 3 || in[1].rank() != 3 || !transpose_a || transpose_b) return {};
    const Tensor a = as_rows(in[0]), b = as_rows(in[1]);
    return apply(*this, {&a, &b}, Where::current());
  }
};
REEL_OP(Matmul)

}  // namespace

Tensor matmul(Arg a, Arg b, MatmulFlags flags) {
  return apply(Matmul{flags.transpose_a, flags.transpose_b}, {&a.tensor(), &b.tensor()}, a.where);
}

Tensor linear(Arg x, Arg W) { return matmul(x, W, {.transpose_b = true}); }
Tensor linear(Arg x, Arg W, Arg b) {
  const Tensor y = matmul(x, W, {.transpose_b = true});
  return operator+({y, x.where}, b);
}

}  // namespace reel
