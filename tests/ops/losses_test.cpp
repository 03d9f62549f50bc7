// Losses at the edges: large logits, everything masked, nothing there, wrong shapes.
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

bool all_finite(const Tensor& x) {
  for (const auto& v : elements(x)) {
    if (!std::isfinite(v.real()) || !std::isfinite(v.imag())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("large logits give finite losses and gradients") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor logits = cast(Tensor::from<double>({1e4, -1e4, 0, -1e4, -1e4, 1e4}, {2, 3}), dtype);
    const Tensor target = Tensor::from<std::int32_t>({1, 2}, {2});
    const Tensor labels = cast(Tensor::from<double>({0, 1, 1, 0, 1, 1}, {2, 3}), dtype);
    Tape tape;
    const Tensor ce = cross_entropy(logits, target, {.reduction = LossReduction::none});
    CHECK(difference(cast(ce, DType::f64), Tensor::from<double>({2e4, 0}, {2})) < 1e-6);
    const auto [dx] = grad(sum(ce), {logits});
    CHECK(difference(cast(dx, DType::f64), Tensor::from<double>({1, -1, 0, 0, 0, 0}, {2, 3})) < 1e-6);
    const Tensor bce = binary_cross_entropy_with_logits(logits, labels, {.reduction = LossReduction::none});
    CHECK(difference(cast(bce, DType::f64), Tensor::from<double>({1e4, 1e4, std::log(2.0), 0, 1e4, 0}, {2, 3})) < 1e-6);
    const auto [db] = grad(sum(bce), {logits});
    CHECK(difference(cast(db, DType::f64), Tensor::from<double>({1, -1, -0.5, 0, -1, 0}, {2, 3})) < 1e-6);
  }
  // A small loss keeps its digits: log(1 + e^-30).
  const Tensor sure = Tensor::from<float>({30, -30}, {2}), labels = Tensor::from<bool>({true, false}, {2});
  for (const float v :
       binary_cross_entropy_with_logits(sure, labels, {.reduction = LossReduction::none}).values<float>())
    CHECK(v == doctest::Approx(std::exp(-30.0)).epsilon(1e-6));
}

TEST_CASE("where all is masked, or nothing there, the loss is 0 and so are its gradients") {
  const Tensor x = random({3, 4}, 1), t = random({3, 4}, 2), none = Tensor::zeros({3, 1}, DType::boolean);
  const Tensor target = Tensor::from<std::int32_t>({0, 3, 1}, {3});
  for (const LossReduction r : {LossReduction::mean, LossReduction::sum}) {
    Tape tape;
    for (const Tensor& loss :
         {mse(x, t, {none, r}), l1_loss(x, t, {none, r}), huber_loss(x, t, 1, {none, r}),
          binary_cross_entropy_with_logits(x, t, {none, r}), cross_entropy(x, target, {Tensor::zeros({3}), r})}) {
      CHECK(loss.item() == 0);
      const auto [dx] = grad(loss, {x});
      CHECK(difference(dx, Tensor::zeros({3, 4}, DType::f64)) == 0);
    }
  }
  CHECK(mse(Tensor::zeros({0, 2}), Tensor::zeros({0, 2})).item() == 0);
  CHECK(cross_entropy(Tensor::zeros({0, 2}), Tensor::from<std::int32_t>({}, {0})).item() == 0);
}

TEST_CASE("a mask leaves out what it covers") {
  const Tensor x = random({2, 3, 5}, 1), kept = slice(x, 1, 0, 2);
  const Tensor target = Tensor::from<std::int32_t>({0, 4, 2, 1, 1, 3}, {2, 3});
  const Tensor mask = Tensor::from<bool>({true, true, false}, {3});  // of the steps, for each sequence
  CHECK(cross_entropy(x, target, {.weight = mask}).item() ==
        doctest::Approx(cross_entropy(kept, slice(target, 1, 0, 2)).item()).epsilon(1e-14));
  CHECK(cross_entropy(x, target).item() ==
        doctest::Approx(cross_entropy(x, target, {.weight = Tensor::full({}, 3)}).item()));
  CHECK(mse(x, 0.5).item() == doctest::Approx(mean(square(x - 0.5)).item()));
  CHECK(all_finite(huber_loss(x, 0, 1e-3)));
}

TEST_CASE("cross entropy: small losses keep their digits, a class of no probability does no harm") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = cast(Tensor::from<double>({20, 0, -inf, -inf, 1, 1}, {2, 3}), dtype);
    Tape tape;
    const Tensor loss = cross_entropy(x, Tensor::from<std::int32_t>({0, 2}, {2}), {.reduction = LossReduction::none});
    CHECK(cast(loss, DType::f64).values<double>()[0] ==
          doctest::Approx(dtype == DType::f32 ? 0 : std::log1p(std::exp(-20.0))).epsilon(1e-7));
    CHECK(cast(loss, DType::f64).values<double>()[1] == doctest::Approx(std::log(2.0)).epsilon(1e-7));
    const auto [dx] = grad(sum(loss), {x});
    CHECK(difference(cast(dx, DType::f64), Tensor::from<double>({0, 0, 0, 0, 0.5, -0.5}, {2, 3})) < 1e-8);
  }
}

TEST_CASE("cross entropy in a loop is what it is outside, and so are its derivatives") {
  const Tensor xs = random({4, 3, 5}, 1);
  const Tensor targets = Tensor::from<std::int32_t>({0, 4, 2, 1, 1, 3, 0, 0, 2, 4, 3, 1}, {4, 3});
  const Tensor W = random({5, 5}, 2);
  const auto outside = [&](const Tensor& w) {
    return cross_entropy(linear(xs, w), targets, {.reduction = LossReduction::sum});
  };
  const auto inside = [&](const Tensor& w) {
    const Step step = [&](const Tensors&, const Tensors& x) -> Next {
      return {{}, {cross_entropy(linear(x[0], w), x[1], {.reduction = LossReduction::sum})}};
    };
    return sum(scan(step, {}, {xs, targets}).ys[0]);
  };
  CHECK(inside(W).item() == doctest::Approx(outside(W).item()).epsilon(1e-14));
  const auto first = [&](const auto& f) {
    Tape tape;
    return grad(f(W), {W})[0];
  };
  CHECK(difference(first(inside), first(outside)) < 1e-13);
}

TEST_CASE("huber's second derivative at 0 is 1") {
  const Tensor x = Tensor::zeros({}, DType::f64);
  Tape tape;
  const auto [first] = grad(huber_loss(x, 0), {x}, {.create_graph = true});
  const auto [second] = grad(first, {x});
  CHECK(first.item() == 0);
  CHECK(second.item() == 1);
}

TEST_CASE("errors of losses name the function, the rule and the line") {
  const Tensor x = random({3, 4}, 1), target = Tensor::from<std::int32_t>({0, 3, 1}, {3});
  const auto says = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = error_of(f);
    CHECK_MESSAGE(contains(text, part), text);
    CHECK_MESSAGE(contains(text, "(tests/ops/losses_test.cpp:"), text);
  };
  says([&] { mse(x, random({4}, 2)); },
       "[mse] there must be a target for each element, but the target is f64 (4,); got f64 (3, 4)");
  says([&] { l1_loss(cast(x, DType::i32), 0); }, "[l1_loss] i32 elements are not supported");
  says([&] { huber_loss(x, x, 0); }, "[huber_loss] delta is above 0, got 0");
  const Tensor single = cast(x, DType::f32), wide = cast(x, DType::c128);
  const std::string dtypes = "both sides must have one dtype. Hint: cast one; got f64 (3, 4), f32 (3, 4) (";
  says([&] { mse(x, single); }, "[mse] " + dtypes);
  says([&] { l1_loss(x, single); }, "[l1_loss] " + dtypes);
  says([&] { huber_loss(x, single); }, "[huber_loss] " + dtypes);
  says([&] { binary_cross_entropy_with_logits(x, single); }, "[binary_cross_entropy_with_logits] " + dtypes);
  says([&] { huber_loss(wide, 0); }, "[huber_loss] c128 elements are not supported; got c128 (3, 4) (");
  says([&] { huber_loss(x, wide); }, "[huber_loss] c128 elements are not supported; got f64 (3, 4), c128 (3, 4) (");
  says([&] { binary_cross_entropy_with_logits(x, wide); },
       "[binary_cross_entropy_with_logits] targets are real numbers or bool, not c128; got f64 (3, 4) (");
  says([&] { mse(x, x, {.weight = random({3}, 3)}); },
       "[mse] weights (3,) cannot be broadcast to (3, 4), the shape of the loss");
  says([&] { mse(x, x, {.weight = random({2, 3, 4}, 3)}); }, "[mse] weights (2, 3, 4) cannot be broadcast to (3, 4)");
  says([&] { mse(x, x, {.weight = cast(x, DType::c128)}); }, "[mse] weights are real numbers or bool, not c128");
  says([&] { binary_cross_entropy_with_logits(cast(x, DType::c128), x); },
       "[binary_cross_entropy_with_logits] c128 logits are not supported");
  says([&] { cross_entropy(cast(x, DType::boolean), target); }, "[cross_entropy] bool logits are not supported");
  says([&] { cross_entropy(x, x); }, "[cross_entropy] targets are i32, not f64");
  says(
      [&] {
        cross_entropy(x, Tensor::from<std::int32_t>({0, 1}, {2}));
      },
      "[cross_entropy] there must be a target for each place along the last axis, but targets are (2,)");
  says([&] { cross_entropy(x, Tensor::from<std::int32_t>({0, 4, 1}, {3})); }, "index 4 at place 1 is not in 0..3");
}
