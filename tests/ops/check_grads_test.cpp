// check_grads finds what is wrong in a derivative, and says of which input.
#include "ops/check_grads.h"

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

enum class Fault { none, first, second, not_a_number };

/// x^3, with a fault in the derivative by the second operand of cube(x) + cube(y).
struct Cube {
  Fault fault = Fault::none;
  bool operator==(const Cube&) const = default;
  static constexpr Traits traits{.name = "cube", .kind = Kind::elementwise, .cost = 2};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    for (std::int64_t i = 0; i < out.numel(); ++i) out.data_as<double>()[i] = std::pow(in[0].data_as<double>()[i], 3);
  }
  void vjp(Vjp& v) const {
    const Tensor x = v.in(0);
    if (fault == Fault::none) return v.set(0, v.dy() * 3 * x * x);
    if (fault == Fault::first) return v.set(0, v.dy() * 2 * x * x);
    if (fault == Fault::not_a_number) return v.set(0, v.dy() * (x - x) / (x - x));
    const NoGrad frozen;
    v.set(0, v.dy() * 3 * x * x);  // right, but it has no derivative of its own
  }
};

Tensor cube(const Tensor& x, Fault fault) { return apply(Cube{fault}, {&x}, Loc::current()); }

TensorFunction sum_of_cubes(Fault fault) {
  return [fault](const Tensors& in) { return cube(in[0], Fault::none) + cube(in[1], fault); };
}

}  // namespace

TEST_CASE("check_grads: right derivatives pass, of both orders") {
  const Tensors xs{random({3, 4}, 1), random({3, 4}, 2)};
  CHECK_NOTHROW(check_grads(sum_of_cubes(Fault::none), xs));
  const GradErrors errors = grad_errors(sum_of_cubes(Fault::none), xs);
  CHECK(errors.first < 1e-9);
  CHECK(errors.second < 1e-9);
  const Tensors mixed{random({5}, 3, DType::c128), Tensor::from<std::int32_t>({0, 3}, {2}), random({5}, 4)};
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return index_select(in[0] * exp(in[2]), 0, in[1]); }, mixed));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return 3 * in[0]; }, {xs[0]}));  // whose second gradient is 0
}

TEST_CASE("check_grads: wrong derivatives are told, with the input") {
  const Tensors xs{random({3, 4}, 1), random({3, 4}, 2)};
  const auto told = [&](Fault fault, const CheckGrads& check = {}) {
    return error_of([&] { check_grads(sum_of_cubes(fault), xs, check); });
  };
  CHECK(contains(told(Fault::first),
                 "[check_grads] the gradient with respect to input 1 is not what differences give: relative error 0."));
  CHECK(contains(told(Fault::first), "1e-06 is allowed (tests/ops/check_grads_test.cpp:"));
  CHECK(contains(told(Fault::not_a_number),
                 "the gradient with respect to input 1 is not what differences give: relative error inf"));
  CHECK(contains(told(Fault::second), "the second gradient with respect to input 1 is not"));
  CHECK(told(Fault::second, {.order = 1}).empty());
  CHECK(told(Fault::first, {.tolerance = 1}).empty());
  const auto tiny = [](const Tensors& in) { return 1e-9 * cube(in[0], Fault::first); };  // small is not right
  CHECK(contains(error_of([&] { check_grads(tiny, {xs[0]}); }), "the gradient with respect to input 0"));
}

TEST_CASE("check_grads: wrong derivatives of large results are told") {
  const Tensor x = random({4}, 6), y = 1.0 + Tensor::zeros({2000000}, DType::f64);
  const auto told = [&](const TensorFunction& f, const Tensors& xs) {
    return contains(error_of([&] { check_grads(f, xs, {.order = 1}); }),
                    "[check_grads] the gradient with respect to input 0 is not what differences give");
  };
  CHECK(told([](const Tensors& in) { return 1e7 + stop_gradient(in[0]); }, {x}));
  CHECK(told([](const Tensors& in) { return 100 + 1e-5 * scale_gradient(in[0], 1.5); }, {x}));
  CHECK(told([](const Tensors& in) { return concat({stop_gradient(in[0]), in[1]}, 0); }, {x, y}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return 1e7 + in[0]; }, {x}));  // though 1e-9 of it is rounding
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return 100 + 1e-5 * in[0]; }, {x}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return concat({in[0], in[1]}, 0); }, {x, y}, {.order = 1}));
}

TEST_CASE("check_grads: derivatives of 0, where all differences are rounding") {
  const Tensor one = 1.0 + Tensor::zeros({3}, DType::f64), two_zeros = Tensor::from<double>({0, 0, 1}, {3});
  const auto bowl = [](const Tensors& in) { return square(in[0] - 1.0); };
  CHECK_NOTHROW(check_grads(bowl, {one}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return var(in[0]); }, {one}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return mse(in[0], in[1]); }, {one, one}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return prod(in[0]); }, {two_zeros}));
  const auto wrong = [&](const Tensors& in) { return bowl(in) + 1e-8 * (in[0] - stop_gradient(in[0])); };
  CHECK(contains(error_of([&] { check_grads(wrong, {one}); }), "the gradient with respect to input 0 is not"));
}

TEST_CASE("check_grads: large and small inputs, one tensor twice, a tape of the caller") {
  const Tensor x = random({4}, 5, DType::f64, 1, 2);
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return log(in[0]); }, {1e-4 * x}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return in[0] * in[0]; }, {1e12 * x}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return in[0] * in[0] * in[1]; }, {x, x}));
  CHECK_NOTHROW(check_grads([&](const Tensors& in) { return in[0] * x; }, {x}));
  CHECK_NOTHROW(check_grads([](const Tensors& in) { return in[0]; }, {Tensor::zeros({0}, DType::f64)}));
  Tape tape;
  check_grads([](const Tensors& in) { return exp(in[0]); }, {x});
  const auto [dx] = grad(sum(square(x)), {x});
  CHECK(difference(dx, 2 * x) < 1e-15);
}

TEST_CASE("check_grads: a function that asks for a gradient itself") {
  const Tensors xs{random({4}, 1), random({4}, 2)};
  const auto slope = [](bool create_graph) {
    return [=](const Tensors& in) {
      const auto [dx] = grad(sum(exp(in[0]) * in[1]), {in[0]}, {.create_graph = create_graph});
      return dx * in[1];
    };
  };
  CHECK_NOTHROW(check_grads(slope(true), xs));
  CHECK(contains(error_of([&] { check_grads(slope(false), xs); }), "the gradient with respect to input 0 is not what"));
}

TEST_CASE("check_grads: what it cannot check") {
  const auto f = [](const Tensors& in) { return in[0]; };
  const auto said = [&](const Tensors& xs, const CheckGrads& check = {}) {
    return error_of([&] { check_grads(f, xs, check); });
  };
  CHECK(said({random({2}, 1, DType::f32)})
            .starts_with("[check_grads] f64 and c128 are precise enough for differences; input 0 is f32 (2,)"));
  CHECK(said({Tensor::from<std::int32_t>({1}, {1})}).starts_with("[check_grads] no input has a gradient"));
  CHECK(said({}).starts_with("[check_grads] no input has a gradient"));
  CHECK(said({random({2}, 1)}, {.tolerance = NAN}).starts_with("[check_grads] tolerance is above 0; got nan"));
  CHECK(said({random({2}, 1), Tensor()}).starts_with("[check_grads] input 1 is an undefined tensor ("));
  CHECK(error_of([] {
          check_grads([](const Tensors&) { return Tensor(); }, {random({2}, 1)});
        }).starts_with("[check_grads] the result of f is an undefined tensor ("));
  int calls = 0;
  const auto drifting = [&](const Tensors& in) { return in[0] + ++calls; };
  CHECK(
      contains(error_of([&] { check_grads(drifting, {random({2}, 1)}); }), "f must be finite and the same each time"));
  CHECK(said({random({2}, 1)}, {.order = 3}).starts_with("[check_grads] order is 1 or 2; got 3"));
  CHECK(contains(
      error_of([&] { check_grads([](const Tensors& in) { return cast(in[0], DType::f32); }, {random({2}, 1)}); }),
      "f64 and c128 are precise enough for differences; the result is f32 (2,)"));
}
