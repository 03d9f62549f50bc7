// Gradients that read what the loop saved beside what they compute again: the same numbers as without a loop. And
// tables of which no step gathers some rows.
#include <limits>

#include "engine/scan/scan.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Choice = Tensor (*)(const Tensor&);

/// The gradients of a step that gives `choice` of a rectangular product, which the loop may compute again.
Tensors gradients(Choice choice, std::int64_t steps, std::int64_t batch, DType dtype, bool loop) {
  const Tensor h0 = random({batch, 32}, 1, dtype), W = random({4, 32}, 2, dtype, -0.4, 0.4);
  const Step step = [&](const Tensors& s, const Tensors&) -> Next {
    const Tensor y = choice(linear(s[0], W) * slice(s[0], -1, 0, 1));
    return {{tanh(0.9 * s[0] + 0.1)}, {y}};
  };
  Tape tape;
  const ScanResult made = loop ? scan(step, {h0}, {}, {.length = steps}) : unroll(step, {h0}, {}, {.length = steps});
  return grad({sum(made.ys[0])}, Tensors{h0, W});
}

}  // namespace

TEST_CASE("clamp, max, min and equal compare with what their result was made of") {
  const Choice choices[] = {[](const Tensor& x) { return clamp(x * 0.25 + 0.5, 0, 1); },
                            [](const Tensor& x) { return max(x, {-1}, true); },
                            [](const Tensor& x) { return min(x, {-1}, true); },
                            [](const Tensor& x) { return where(equal(x, max(x, {-1}, true)), x, 0.5 * x); }};
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t steps : {1, 2, 3, 5, 12}) {
      for (const std::int64_t batch : {1, 2, 3, 4, 8, 16, 20}) {
        for (std::size_t i = 0; i < std::size(choices); ++i) {
          CAPTURE(name_of(dtype));
          CAPTURE(steps);
          CAPTURE(batch);
          CAPTURE(i);
          const Tensors in_loop = gradients(choices[i], steps, batch, dtype, true),
                        alone = gradients(choices[i], steps, batch, dtype, false);
          const double most = dtype == DType::f32 ? 1e-4 : 1e-12;
          for (std::size_t k = 0; k < 2; ++k) CHECK(difference(in_loop[k], alone[k]) < most);
        }
      }
    }
  }
}

TEST_CASE("rows of a table that no step gathers have no gradient, whatever is in them") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor W = random({4, 3}, 3), h0 = Tensor::full({2, 4}, 0, DType::f64);
  for (const double unused : {100.0, 1e200, inf, std::nan("")}) {
    CAPTURE(unused);
    const Tensor table =
        Tensor::from<double>({0.1, 0.2, 0.3, 0.4, -0.5, 0.6, unused, unused, unused, unused, 1, unused}, {4, 3});
    const Tensor symbols = cast(floor(uniform({9, 2}, 0, 1.999, 1, 4)), DType::i32);
    const auto of = [&](bool loop) {
      const Step step = [&](const Tensors& s, const Tensors& x) -> Next {
        const Tensor h = tanh(s[0] + linear(exp(embedding(x[0], table)), W) + linear(embedding(x[0], table), W));
        return {{h}, {h}};
      };
      Tape tape;
      const ScanResult made = loop ? scan(step, {h0}, {symbols}) : unroll(step, {h0}, {symbols});
      return grad({sum(made.ys[0])}, Tensors{table, W});
    };
    const Tensors in_loop = of(true), alone = of(false);
    for (std::size_t k = 0; k < 2; ++k) CHECK(difference(in_loop[k], alone[k]) < 1e-13);
  }
}

TEST_CASE("an error of a shard says of which rows it speaks") {
  std::vector<std::int32_t> places(2 * 24, 0);
  places[24 + 23] = 7;
  const Tensor table = random({3, 4}, 5), symbols = Tensor::from<std::int32_t>(places, {2, 24});
  const Step step = [&](const Tensors& s, const Tensors& x) -> Next { return {{s[0] + embedding(x[0], table)}, {}}; };
  const std::string text = error_of([&] { scan(step, {Tensor::full({24, 4}, 0, DType::f64)}, {symbols}); });
  CHECK(contains(text, "index 7 at place 11 is not in 0..2; in step 1 of scan, for rows 12 to 23"));
}
