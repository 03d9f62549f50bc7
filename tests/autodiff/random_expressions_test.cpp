// Random valid expressions of ten ops: their gradients and gradients of gradients against central differences. What one
// op at a time cannot show: shapes that meet, values used twice, real and complex parts of one expression.
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// An expression is drawn anew from its seed each time it is evaluated, so it is the same function every time.
class Expression {
 public:
  Expression(std::uint64_t seed, const Tensors& inputs) : stream_(seed, 17), values_(inputs) {}

  Tensor value(int ops) {
    for (int i = 0; i < ops; ++i) values_.push_back(step());
    return values_.back();
  }
  const std::string& text() const { return text_; }

 private:
  std::int64_t below(std::int64_t n) { return stream_.below(n); }
  const Tensor& any() { return values_[static_cast<std::size_t>(below(static_cast<std::int64_t>(values_.size())))]; }
  Tensor say(const char* op, const Tensor& y) {
    text_ += fmt::format("{} {}; ", op, y.spec().str());
    return y;
  }
  /// Values stay near 1, so that differences can be taken.
  static Tensor tame(const Tensor& x) { return x / (1 + 0.3 * sum(square(abs(x)), {}, true)); }

  Tensor step() {
    const Tensor x = any();
    const bool is_real = !is_complex(x.dtype());
    const int last = x.rank() - 1;
    switch (below(20)) {
      case 0:
        return say("tanh", is_real ? tanh(x) : sin(x));
      case 1:
        return say("exp", exp(tame(x)));
      case 2:
        return say("square", tame(square(x)));
      case 3:
        return say("sigmoid", is_real ? sigmoid(x) : x * 0.7);
      case 4:
        return say("sqrt", sqrt(3.0 + tame(x)));
      case 5:
        return say("log", log(3.0 + tame(x)));
      case 6:
        return say("conj", conj(x) + 0.5);
      case 7:
        return say("transpose", last >= 1 ? transpose(x) : -x);
      case 8:
        return say("roll", last >= 0 ? roll(x, 1 + below(3), below(last + 1)) : x - 1);
      case 9:
        return say("mean", mean(x, last >= 0 ? Axes{below(last + 1)} : Axes{}, true));
      case 10:
        return say("reshape", reshape(x, {1, -1}));
      case 11:
        return say("slice", last >= 0 && x.dim(last) > 1 ? slice(x, last, 1, x.dim(last)) : 2 * x);
      case 12:
        return say("pad", last >= 0 ? pad(x, last, 1, below(2)) : x / 2);
      case 13:
        return say("complex", is_real ? complex(x, cos(x)) : complex(imag(x), real(x)));
      case 14:
        return say("real", real(x) * 1.5);
      case 15:
        return say("concat", last >= 0 ? concat({x, -x}, last) : x + x);
      case 16:
        return say("matmul", last == 1 ? tame(matmul(x, x, {.transpose_b = true})) : neg(x));
      case 17:
        return say("sum_to", x * sum(tame(x)));
      default:
        return binary(x);
    }
  }

  Tensor binary(const Tensor& x) {
    for (int tries = 0; tries < 20; ++tries) {
      const Tensor y = any();
      if (!broadcast(x.shape(), y.shape())) continue;
      switch (below(4)) {
        case 0:
          return say("add", x + y);
        case 1:
          return say("sub", x - y);
        case 2:
          return say("mul", tame(x * y));
        default:
          return say("div", x / (2.0 + square(abs(y))));
      }
    }
    return say("neg", -x);
  }

  Stream stream_;
  Tensors values_;
  std::string text_;
};

}  // namespace

TEST_CASE("gradients of random expressions") {
  double worst_first = 0, worst_second = 0;
  constexpr int expressions = 300;
  for (std::uint64_t seed = 1; seed <= expressions; ++seed) {
    const Tensors inputs{random({3, 2}, seed), random({2}, seed + 1000, DType::c128), random({3, 1}, seed + 2000)};
    const auto f = [&](const Tensors& x) { return Expression(seed, x).value(10); };
    Expression shown(seed, inputs);
    shown.value(10);
    CAPTURE(seed);
    CAPTURE(shown.text());
    const GradErrors e = grad_errors(f, inputs, seed);
    worst_first = std::max(worst_first, e.first);
    worst_second = std::max(worst_second, e.second);
    CHECK(e.first < 1e-8);
    CHECK(e.second < 1e-8);
  }
  fmt::print("{} expressions of ten ops: worst relative error of the gradient {:.1e}, of the second {:.1e}\n",
             expressions, worst_first, worst_second);
}
