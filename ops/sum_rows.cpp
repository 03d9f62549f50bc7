// Sums of the rows of a tensor, or of a product. A loop that runs in blocks adds them to a sum over time in place: what
// its step reads and writes for the gradient of a bias is one row, not a row of each sequence.
#include "ops/sum_rows.h"

#include "ops/axes.h"
#include "ops/ops.h"

namespace reel {

namespace {

Spec row_of(const Tensor& x) {
  if (x.dtype() == DType::boolean) refuse(DType::boolean, ". Hint: cast to i32");
  if (x.rank() == 0) rule_error("one axis or more is needed");
  Shape row = x.shape();
  row.set(0, 1);
  return {x.dtype(), row, &x.backend()};
}

void run_sum(const Tensor& x, const void* y, Tensor& out) {
  out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
  out.backend().sum_rows(
      {.dtype = out.dtype(), .rows = x.dim(0), .n = out.numel(), .x = x.data(), .y = y, .out = out.data()});
}

struct SumRows {  // x [B, ...] -> [1, ...]
  bool operator==(const SumRows&) const = default;
  static constexpr Traits traits{.name = "sum_rows", .saves = Saves::nothing, .linear = true, .accumulates = true};
  Spec infer(Inputs in) const { return row_of(in[0]); }
  void run(Inputs in, Tensor& out) const { run_sum(in[0], nullptr, out); }
  void vjp(Vjp& v) const { v.set(0, expand(v.dy(), v.spec(0).shape)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return sum(in[0], {1}, true); }
  bool reduces_rows(Inputs, Mapped) const { return true; }
  bool memory_bound(Inputs) const { return true; }
};
REEL_OP(SumRows)

struct SumProducts {  // x, y [B, ...] -> [1, ...]
  bool operator==(const SumProducts&) const = default;
  static constexpr Traits traits{.name = "sum_products", .saves = Saves::inputs, .accumulates = true};
  Spec infer(Inputs in) const {
    if (!(in[0].spec() == in[1].spec())) rule_error("both must have one shape and dtype");
    return row_of(in[0]);
  }
  double flops(Inputs in) const { return 2 * static_cast<double>(in[0].numel()); }
  void run(Inputs in, Tensor& out) const { run_sum(in[0], in[1].data(), out); }
  void vjp(Vjp& v) const {
    if (v.needs(0)) v.set(0, v.dy() * conj(v.in(1)));
    if (v.needs(1)) v.set(1, v.dy() * conj(v.in(0)));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return sum(in[0] * in[1], {1}, true); }
  bool reduces_rows(Inputs, Mapped sharded) const { return sharded[0] && sharded[1]; }
  bool memory_bound(Inputs) const { return true; }
};
REEL_OP(SumProducts)

}  // namespace

bool loop_adds_rows(const Tensor& x, const Shape& shape) {
  constexpr std::int64_t fewest = 8;  // numbers of a row
  const bool over_rows = x.rank() > 0 && (shape.rank() < x.rank() || shape[0] == 1) && x.dim(0) > 1;
  return over_rows && !x.storage() && x.backend().runs_in_blocks() && x.numel() >= fewest * x.dim(0);
}

Tensor sum_rows(const Tensor& x) { return apply(SumRows{}, {&x}, Loc::current()); }
Tensor sum_products(const Tensor& x, const Tensor& y) { return apply(SumProducts{}, {&x, &y}, Loc::current()); }

}  // namespace reel
