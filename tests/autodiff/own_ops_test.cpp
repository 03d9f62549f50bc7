// Ops as users outside the tree write them: with results that are arguments, with memory of their own, or declared
// wrongly.
#include <algorithm>
#include <cmath>

#include "engine/scan/scan.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/sum_rows.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

template <class O, class... X>
auto call(const X&... x) {
  return apply(O{}, {&x...}, Loc::current());
}

struct Same {  // gives back its argument
  static constexpr Traits traits{.name = "same"};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out = in[0]; }
  void vjp(Vjp& v) const { v.set(0, v.dy()); }
};

struct Swapped {  // a, b -> b, a
  static constexpr Traits traits{.name = "swapped"};
  static int outputs() { return 2; }
  void infer(Inputs in, std::span<Spec> out) const {
    out[0] = in[1].spec();
    out[1] = in[0].spec();
  }
  void run(Inputs in, std::span<Tensor> out) const {
    out[0] = in[1];
    out[1] = in[0];
  }
  void vjp(Vjp& v) const {
    v.set(0, v.dy(1));
    v.set(1, v.dy(0));
  }
};

struct Twice {  // x -> one tensor as two results
  static constexpr Traits traits{.name = "twice", .allocates = true};
  static int outputs() { return 2; }
  void infer(Inputs in, std::span<Spec> out) const { out[0] = out[1] = in[0].spec(); }
  void run(Inputs in, std::span<Tensor> out) const { out[0] = out[1] = 2 * in[0]; }
  void vjp(Vjp& v) const {
    const Tensor zero = zeros_like(v.in(0));
    v.set(0, 2 * (v.dy(0).defined() ? v.dy(0) : zero) + 6 * (v.dy(1).defined() ? v.dy(1) : zero));
  }
};

/// The sum of 2 x over the rows, by a kernel that takes the 2 from memory of the op's own.
struct TwiceSum {
  static constexpr Traits traits{.name = "twice_sum", .saves = Saves::nothing, .linear = true, .accumulates = true};
  Spec infer(Inputs in) const { return {in[0].dtype(), {1, in[0].dim(1)}, &in[0].backend()}; }
  void run(Inputs in, Tensor& out) const {
    const Tensor two = full(in[0].shape(), 2, in[0].dtype(), in[0].backend());
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    out.backend().sum_rows({out.dtype(), in[0].dim(0), out.numel(), in[0].data(), two.data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, 2 * expand(v.dy(), v.spec(0).shape)); }
  bool reduces_rows(Inputs, Mapped sharded) const { return sharded[0]; }
  bool memory_bound(Inputs) const { return true; }
};

struct PlusTwice {  // x [B, n] + 2 b [n]
  static constexpr Traits traits{.name = "plus_twice", .saves = Saves::nothing, .linear = true};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0] + 2 * in[1]); }
  void vjp(Vjp& v) const {
    v.set(0, v.dy());
    if (v.needs(1)) v.set(1, reshape(call<TwiceSum>(v.dy()), {v.spec(1).shape[0]}));
  }
  bool shards_rows(Inputs, Mapped sharded) const { return sharded[0] && !sharded[1]; }
};

struct Endless {  // says that its work is NaN operations
  static constexpr Traits traits{.name = "endless"};
  Spec infer(Inputs in) const { return in[0].spec(); }
  double flops(Inputs) const { return std::nan(""); }
  void run(Inputs in, Tensor& out) const { out.assign(tanh(in[0])); }
  void vjp(Vjp& v) const { v.set(0, v.dy() * (1 - v.out() * v.out())); }
};

struct Lost {  // makes no result
  static constexpr Traits traits{.name = "lost", .allocates = true, .differentiable = false};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs, Tensor&) const {}
};

struct Refusing {
  static constexpr Traits traits{.name = "refusing"};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0]); }
  void vjp(Vjp&) const { rule_error("it has no gradient today"); }
};

/// x, but for an error of the standard library in one of its functions.
struct Throwing {
  enum Place { in_infer, in_run, in_vjp, in_vmap, in_internals } place;
  bool operator==(const Throwing&) const = default;
  static constexpr Traits traits{.name = "throwing"};
  Spec infer(Inputs in) const {
    if (place == in_infer) throw std::out_of_range("there is no such table");
    return in[0].spec();
  }
  void run(Inputs in, Tensor& out) const {
    if (place == in_run) throw std::runtime_error("there is no such table");
    REEL_ASSERT(place != in_internals);
    out.assign(in[0]);
  }
  void vjp(Vjp& v) const {
    if (place == in_vjp) throw std::invalid_argument("there is no such table");
    v.set(0, v.dy());
  }
  Tensor vmap(Inputs in, Mapped, std::int64_t) const {
    if (place == in_vmap) rule_error("there is no such table");
    return apply(*this, {&in[0]}, Loc::current());
  }
};

struct AsDouble {  // a view whose infer() gives another dtype
  static constexpr Traits traits{.name = "as_double", .differentiable = false};
  Spec infer(Inputs in) const { return {DType::f64, in[0].shape(), &in[0].backend()}; }
  std::int64_t alias(Inputs) const { return 0; }
};

#define REGISTER_BOTH(A, B) REEL_OP(A) REEL_OP(B)
REGISTER_BOTH(Same, Swapped)

}  // namespace

TEST_CASE("two ops may be registered on one line, as by a macro") {
  for (const Op* op : {&op_of<Same>(), &op_of<Swapped>()}) CHECK(std::ranges::count(op_registry(), op) == 1);
}

TEST_CASE("an error of the standard library in an own op names the op and the line of its call") {
  const Tensor x = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  const auto called = [](Throwing::Place place, const Tensor& x) {
    return apply(Throwing{place}, {&x}, Loc::current());
  };
  const std::string text = "[throwing] there is no such table", here = "(tests/autodiff/own_ops_test.cpp:";
  for (const auto place : {Throwing::in_infer, Throwing::in_run}) {
    const std::string error = error_of([&] { called(place, x); });
    CHECK(contains(error, text + "; got f64 (2, 3) " + here));
  }
  const auto looped = [&](Throwing::Place place, bool of_state) {
    return error_of([&] {
      Tape tape;
      const Step step = [&](const Tensors& s, const Tensors& x) {
        return Next{{s[0] + called(place, of_state ? s[0] : x[0])}, {}};
      };
      grad(sum(scan(step, {x}, {xs}).last[0]), {xs});
    });
  };
  for (const auto place : {Throwing::in_infer, Throwing::in_run, Throwing::in_vjp, Throwing::in_vmap}) {
    const std::string error = looped(place, place == Throwing::in_run);
    CAPTURE(error);
    CHECK(error.starts_with(text));
    CHECK(contains(error, here));
  }
  CHECK_THROWS_AS(called(Throwing::in_internals, x), std::logic_error);  // of Reel's own mistakes no words are changed
}

TEST_CASE("a result that is an argument, or another result, is a value of its own") {
  const Tensor x = random({3}, 1), a = random({3}, 2), b = random({3}, 3);
  Tape tape;
  Tensor y = x;
  for (int i = 0; i < 5; ++i) y = call<Same>(y);
  CHECK(difference(grad(sum(y), {x})[0], ones_like(x)) == 0);
  const Tensors swapped = call<Swapped>(a, b);
  const auto g = grad(sum(3 * swapped[0] + 7 * swapped[1]), {a, b});
  CHECK(difference(g[0], full_like(a, 7)) == 0);
  CHECK(difference(g[1], full_like(a, 3)) == 0);
  const Tensors twice = call<Twice>(x);
  CHECK(difference(grad(sum(5 * twice[0] + twice[1]), {x})[0], full_like(x, 16)) == 0);
}

TEST_CASE("an op that accumulates may fill memory of its own") {
  const Tensor h = random({4, 12}, 1), b = random({12}, 2), xs = random({6, 4, 12}, 3);
  const auto gradient = [&](auto run) {
    const Step step = [&](const Tensors& s, const Tensors& x) {
      return Next{{tanh(call<PlusTwice>(s[0] + x[0], b))}, {}};
    };
    Tape tape;
    return grad(sum(run(step, Tensors{h}, Tensors{xs}, ScanOptions{}, Loc::current()).last[0]), {b})[0];
  };
  CHECK(difference(gradient(scan), gradient(unroll)) < 1e-13);
}

TEST_CASE("mistakes in own ops are errors") {
  const Tensor x = random({2, 3}, 1);
  const auto looped = [&](auto f) {
    return error_of([&] {
      Tape tape;
      const Step step = [&](const Tensors& s, const Tensors&) { return Next{{f(s[0])}, {}}; };
      grad(sum(scan(step, {x}, {}, {.length = 3}).last[0]), {x});
    });
  };
  CHECK(contains(error_of([&] { call<PlusTwice>(x); }), "[plus_twice] argument 1 is missing, the call has 1"));
  CHECK(contains(error_of([&] { call<Lost>(x); }), "[lost] its run() gives"));
  CHECK(contains(looped([](const Tensor& s) { return s + stop_gradient(call<Lost>(s)); }), "[lost] its run() gives"));
  CHECK(contains(looped(&call<Refusing, Tensor>), "[refusing] it has no gradient today"));
  CHECK(contains(error_of([&] { call<AsDouble>(cast(x, DType::f32)); }), "[as_double] its run() gives f32"));
  CHECK(looped(&call<Endless, Tensor>).empty());
}
