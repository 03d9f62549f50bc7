// Sorting: argsort is a kernel, and what follows from it gathers elements, so that gradients go where these came from.
#include "ops/attributes.h"
#include "ops/places.h"
#include "ops/told_as.h"

namespace reel {

namespace {

struct Argsort {
  int axis;
  bool descending;
  std::int64_t count;  // of the first in order
  bool operator==(const Argsort&) const = default;
  static constexpr Traits traits{.name = "argsort", .differentiable = false};
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype()) && in[0].dtype() != DType::i32)
      refuse(in[0].dtype(), in[0].dtype() == DType::boolean ? ". Hint: cast to i32" : ", as they have no order");
    Shape shape = in[0].shape();
    shape.set(axis, count);
    return {DType::i32, shape, &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const { out.backend().argsort(places_args(in[0], axis, descending, count, out)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const {
    return apply(Argsort{axis + 1, descending, count}, {&in[0]}, Loc::current());
  }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(Argsort)
REEL_ATTRIBUTES(Argsort, {"axis", attribute(op.axis)}, {"descending", attribute(op.descending)},
                {"count", attribute(op.count)})

}  // namespace

Tensor argsort(Arg x, std::int64_t axis, bool descending) {
  return named("argsort", x, [&] {
    const int a = checked_axis(axis, x->rank());
    return apply(Argsort{a, descending, x->dim(a)}, x);
  });
}

Tensor sort(Arg x, std::int64_t axis, bool descending) {
  return told_as("sort", "argsort", {&x}, [&] { return take_along(x, {argsort(x, axis, descending), x.where}, axis); });
}

TopKResult top_k(Arg x, std::int64_t k, std::int64_t axis) {
  const Tensor indices = named("top_k", x, [&] {
    const int a = checked_axis(axis, x->rank());
    if (k < 0 || k > x->dim(a)) rule_error("k is in 0..{}, the extent of axis {}, got {}", x->dim(a), axis, k);
    return told_as("top_k", "argsort", [&] { return apply(Argsort{a, true, k}, x); });
  });
  return {take_along(x, {indices, x.where}, axis), indices};
}

}  // namespace reel
