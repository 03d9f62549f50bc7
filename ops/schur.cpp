// The complex Schur form.
#include <cmath>

#include "ops/functors/linalg.h"
#include "ops/spectral_parts.h"

namespace reel {

namespace {

struct Schur {  // A [..., n, n], complex -> Q, T
  static constexpr Traits traits{.name = "schur", .differentiable = false};
  int outputs() const { return 2; }
  void infer(Inputs in, std::span<Spec> out) const {
    check_square(in[0]);
    out[0] = out[1] = in[0].spec();
  }
  double flops(Inputs in) const { return flops_of(in[0], 25 * std::pow(extent(in[0], -1), 3)); }  // GVL, section 7.5
  void run(Inputs in, std::span<Tensor> out) const {
    out[0].backend().schur({.dtype = in[0].dtype(),
                            .batch = in[0].shape().product(0, in[0].rank() - 2),
                            .n = in[0].dim(-1),
                            .a = in[0].data(),
                            .q = out[0].data(),
                            .t = out[1].data()});
  }
};
REEL_OP(Schur)

}  // namespace

SchurResult schur(Arg A) {
  const Tensor complex = cast(A, complex_of(A.tensor("schur").dtype()));
  const Tensors r = apply_many(op_of<Schur>(), Attrs(Schur{}), {&complex}, A.where);
  return {r[0], r[1]};
}

}  // namespace reel
