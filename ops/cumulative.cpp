// Sums, products and extremes of the elements so far along an axis. All but the extremes are linear recurrences
// y[j] = f[j] y[j-1] + t[j]. So are their gradients, in the other direction: no elements are divided by.
#include <cmath>
#include <utility>

#include "ops/attributes.h"
#include "ops/places.h"
#include "ops/recurrence.h"
#include "ops/told_as.h"

namespace reel {

namespace {

void run_recurrence(int axis, bool reverse, const Tensor* factors, const Tensor* terms, Tensor& out) {
  const Shape& s = out.shape();
  out.backend().recurrence({.dtype = out.dtype(),
                            .reverse = reverse,
                            .outer = s.product(0, axis),
                            .n = s[axis],
                            .inner = s.product(axis + 1, s.rank()),
                            .factors = factors ? factors->data() : nullptr,
                            .terms = terms ? terms->data() : nullptr,
                            .out = out.data()});
}

/// The elements of an axis but for the last one, or for the first.
Tensor without_last(const Tensor& x, int axis) { return slice(x, axis, 0, x.dim(axis) - 1); }
Tensor without_first(const Tensor& x, int axis) { return slice(x, axis, 1, x.dim(axis)); }
/// y[j] = x[j-1] along an axis, or x[j+1], with 0 where there is none.
Tensor before(const Tensor& x, int axis) { return pad(without_last(x, axis), axis, 1, 0); }
Tensor after(const Tensor& x, int axis) { return pad(without_first(x, axis), axis, 0, 1); }

struct Cumsum {
  int axis;
  bool reverse;
  bool operator==(const Cumsum&) const = default;
  static constexpr Traits traits{.name = "cumsum", .saves = Saves::nothing, .linear = true};
  Spec infer(Inputs in) const {
    if (in[0].dtype() == DType::boolean) refuse(DType::boolean, ". Hint: cast to i32");
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const { run_recurrence(axis, reverse, nullptr, &in[0], out); }
  void vjp(Vjp& v) const { v.set(0, cumsum(v.dy(), axis, !reverse)); }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return cumsum(in[0], axis + 1, reverse); }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(Cumsum)
REEL_ATTRIBUTES(Cumsum, {"axis", attribute(op.axis)}, {"reverse", attribute(op.reverse)})

struct Cumprod {
  int axis;
  bool operator==(const Cumprod&) const = default;
  static constexpr Traits traits{.name = "cumprod"};
  Spec infer(Inputs in) const {
    if (in[0].dtype() == DType::boolean) refuse(DType::boolean, ". Hint: cast to i32");
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const { run_recurrence(axis, false, &in[0], nullptr, out); }
  void vjp(Vjp& v) const {  // y[j] = x[j] y[j-1]
    const Tensor &x = v.in(0), &y = v.out();
    if (x.numel() == 0) return v.set(0, v.dy());
    const Tensor h = recurrence(conj(after(x, axis)), v.dy(), axis, true);
    v.set(0, concat({slice(h, axis, 0, 1), without_first(h, axis) * conj(without_last(y, axis))}, axis));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const { return cumprod(in[0], axis + 1); }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(Cumprod)

struct Recurrence {
  int axis;
  bool reverse;
  bool operator==(const Recurrence&) const = default;
  static constexpr Traits traits{.name = "recurrence"};
  Spec infer(Inputs in) const {
    if (in[0].dtype() == DType::boolean) refuse(DType::boolean);
    if (in[0].dtype() != in[1].dtype() || !(in[0].shape() == in[1].shape()))
      rule_error("factors and terms must have one dtype and shape");
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const { run_recurrence(axis, reverse, &in[0], &in[1], out); }
  void vjp(Vjp& v) const {  // h[j] = dy[j] + f[j+1] h[j+1], dt = h, df[j] = h[j] y[j-1]; reverse: the other way
    const Tensor &f = v.in(0), &y = v.out();
    if (f.numel() == 0) return v.set(0, v.dy()), v.set(1, v.dy());
    const auto behind = reverse ? after : before, ahead = reverse ? before : after;
    const Tensor h = recurrence(conj(ahead(f, axis)), v.dy(), axis, !reverse);
    if (v.needs(0)) v.set(0, h * conj(behind(y, axis)));
    if (v.needs(1)) v.set(1, h);
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    const auto stacked = [&](std::size_t i) {
      return mapped[i] ? in[i] : expand(in[i], in[i].shape().insert(0, steps));
    };
    return recurrence(stacked(0), stacked(1), axis + 1, reverse);
  }
  bool shards_rows(Inputs, Mapped sharded) const { return axis != 0 && sharded[0] && sharded[1]; }
};
REEL_OP(Recurrence)

template <bool largest>
struct PlacesOfExtremes {
  int axis;
  bool operator==(const PlacesOfExtremes&) const = default;
  static constexpr Traits traits{.name = largest ? "argcummax" : "argcummin", .differentiable = false};
  Spec infer(Inputs in) const {
    if (!is_floating(in[0].dtype()) && in[0].dtype() != DType::i32) refuse(in[0].dtype());
    return {DType::i32, in[0].shape(), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().argcummax(places_args(in[0], axis, largest, in[0].dim(axis), out));
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const {
    return apply(PlacesOfExtremes{axis + 1}, {&in[0]}, Loc::current());
  }
  bool shards_rows(Inputs, Mapped) const { return axis != 0; }
};
REEL_OP(PlacesOfExtremes<true>)
REEL_OP(PlacesOfExtremes<false>)

template <class O>
Tensor places(const Arg& x, std::int64_t axis) {
  return named(O::traits.name, x, [&] { return apply(O{checked_axis(axis, x->rank())}, x); });
}

}  // namespace

Tensor cumsum(Arg x, std::int64_t axis, bool reverse) {
  return named("cumsum", x, [&] { return apply(Cumsum{checked_axis(axis, x->rank()), reverse}, x); });
}
Tensor cumprod(Arg x, std::int64_t axis) {
  return named("cumprod", x, [&] { return apply(Cumprod{checked_axis(axis, x->rank())}, x); });
}
Tensor recurrence(Arg factors, Arg terms, std::int64_t axis, bool reverse) {
  const int a = named("recurrence", factors, [&] { return checked_axis(axis, factors->rank()); });
  return apply(Recurrence{a, reverse}, factors, terms);
}

Tensor argcummax(Arg x, std::int64_t axis) { return places<PlacesOfExtremes<true>>(x, axis); }
Tensor argcummin(Arg x, std::int64_t axis) { return places<PlacesOfExtremes<false>>(x, axis); }
Tensor cummax(Arg x, std::int64_t axis) {
  return told_as("cummax", "argcummax", {&x}, [&] { return take_along(x, {argcummax(x, axis), x.where}, axis); });
}
Tensor cummin(Arg x, std::int64_t axis) {
  return told_as("cummin", "argcummin", {&x}, [&] { return take_along(x, {argcummin(x, axis), x.where}, axis); });
}

Tensor logcumsumexp(Arg x, std::int64_t axis) {
  return named("logcumsumexp", x, [&] {
    if (!is_floating(x->dtype())) refuse(x->dtype(), x->dtype() == DType::i32 ? ". Hint: cast to f32" : "");
    const int a = checked_axis(axis, x->rank());
    if (x->numel() == 0) return x.tensor();
    // Sums of exp(x - shift) are at least 1: the shift is the largest element so far, and where it grows, the sum
    // fades.
    const Tensor largest = stop_gradient(cummax(x, a)), none = equal(largest, -INFINITY);
    const Tensor shift = where(is_finite(largest), largest, 0);
    const Tensor fade = pad(exp(without_last(largest, a) - without_first(shift, a)), a, 1, 0);
    const Tensor sums = recurrence(fade, exp(x - shift), a);
    return where(none, largest, shift + log(where(none, 1, sums)));
  });
}

}  // namespace reel
