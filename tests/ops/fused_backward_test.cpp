// Gradients with a kernel of their own agree with the formulas of the derivatives.
#include <doctest/doctest.h>

#include <set>

#include "ops/elementwise.h"
#include "tests/support/check.h"

using namespace reel;
using test::difference;

TEST_CASE("fused gradients are what the formulas give") {
  std::set<std::string> seen;
  for (const FusedForm& form : fused_forms()) {
    CAPTURE(form.op.traits.name);
    seen.insert(form.op.traits.name);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const double rounding = dtype == DType::f32 ? 1e-6 : 1e-15;
      // Zeros, values on both sides, and rows of several vectors' length.
      Tensor x = uniform({37, 5}, -3, 3, 1, 2, dtype), bias = uniform({37, 5}, -1, 1, 1, 3, dtype);
      const Tensor dy = uniform({37, 5}, -1, 1, 1, 4, dtype);
      x = where(abs(x) < 0.3, constant(0, x), x);
      std::vector<const Tensor*> in{&x};
      if (form.op.traits.name == std::string("modrelu")) in.push_back(&bias);
      const Tensor y = apply(form.op, form.attrs, in, Loc::current());
      const Tensor expected = form.formula(in, y, dy), got = form.fused(dy, y);
      CHECK(difference(got, expected) <= rounding);
    }
  }
  CHECK(seen == std::set<std::string>{"modrelu", "relu", "sigmoid", "tanh"});
}
