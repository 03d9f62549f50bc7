// Products by the weights of a loop, which are copied into panels once for all steps: against the same steps one by one
// in double precision, for sizes around a panel's width, a vector's and the rows multiplied at a time.
#include "engine/scan/scan.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr std::int64_t steps = 6;

/// The state [m, k] turns by one element, so that no step has the rows of another; a second one adds up its products.
/// `turned`: by W' for W [n, k].
ScanResult products(const Tensor& s, const Tensor& W, std::int64_t n, bool turned, bool in_loop) {
  const auto step = [&](const Tensors& state, const Tensors&) {
    const Tensor product = turned ? linear(state[0], W) : matmul(state[0], W);
    return Next{{roll(state[0], 1, -1), state[1] * 0.5 + product}, {}};
  };
  const Tensors state{s, Tensor::zeros({s.dim(0), n}, s.dtype(), s.backend())};
  return in_loop ? scan(step, state, {}, {.length = steps}) : unroll(step, state, {}, {.length = steps});
}

void check_products(std::int64_t m, std::int64_t k, std::int64_t n) {
  for (const bool turned : {false, true}) {
    const Tensor s = random({m, k}, 1), W = random(turned ? Shape{n, k} : Shape{k, n}, 2);
    const Tensor exact = products(s, W, n, turned, false).last[1];
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(name_of(dtype));
      CAPTURE(m);
      CAPTURE(k);
      CAPTURE(n);
      CAPTURE(turned);
      const Tensor got = products(cast(s, dtype), cast(W, dtype), n, turned, true).last[1];
      CHECK(difference(cast(got, DType::f64), exact) < (dtype == DType::f32 ? 1e-5 : 1e-13));
    }
  }
}

}  // namespace

TEST_CASE("weights of a loop: products of 1 to 70 rows by 33 to 300 columns") {
  for (const std::int64_t n : {33, 64, 78, 100, 127, 300})
    for (const std::int64_t m : {1, 2, 9, 70}) check_products(m, 128, n);
  for (const std::int64_t k : {1030, 2100}) check_products(6, k, 40);
  check_products(130, 64, 50);
}

TEST_CASE("weights of a loop larger than a megabyte: the rows of shards, and the parts of a product on two threads") {
  Backend& cpu = backend("cpu");
  const int threads = cpu.threads();
  for (const std::int64_t m : {8, 40, 70}) {
    check_products(m, 512, 600);
    const Tensor s = random({m, 512}, 1, DType::f32), W = random({512, 600}, 2, DType::f32);
    cpu.set_threads(1);
    const Tensor one = products(s, W, 600, false, true).last[1];
    cpu.set_threads(2);
    CHECK(difference(products(s, W, 600, false, true).last[1], one) == 0);
    cpu.set_threads(threads);
  }
}

TEST_CASE("right sides that are no weights: those of the state, of the inputs, and made by a step") {
  const Tensor s = random({9, 64}, 1), W = random({64, 64}, 2), xs = random({steps, 64, 64}, 3);
  const auto same = [&](const Step& step, const Tensors& state, const Tensors& inputs) {
    const ScanResult got = scan(step, state, inputs, {.length = steps}),
                     want = unroll(step, state, inputs, {.length = steps});
    for (std::size_t i = 0; i < want.last.size(); ++i) CHECK(difference(got.last[i], want.last[i]) < 1e-12);
  };
  same(
      [](const Tensors& state, const Tensors&) {
        return Next{{tanh(matmul(state[0], state[1])), state[1] * 0.9}, {}};
      },
      {s, W}, {});
  same([](const Tensors& state, const Tensors& x) { return Next{{tanh(matmul(state[0], x[0]))}, {}}; }, {s}, {xs});
  same(
      [&](const Tensors& state, const Tensors&) {
        return Next{{tanh(matmul(state[0], W * sum(state[0])))}, {}};
      },
      {s}, {});
  same([&](const Tensors& state, const Tensors&) { return Next{{tanh(matmul(state[0], exp(W)))}, {}}; }, {s}, {});
}

TEST_CASE("a loop in a loop: the weights of each") {
  const Tensor s = random({9, 64}, 1), V = random({64, 64}, 2), W = random({64, 64}, 3);
  const auto run = [&](bool in_loop) {
    const auto inner = [&](const Tensors& state, const Tensors&) {
      return Next{{tanh(matmul(state[0], W) + matmul(state[0], V))}, {}};
    };
    const auto outer = [&](const Tensors& state, const Tensors&) {
      const Tensor x = tanh(matmul(state[0], V));
      const ScanOptions options{.length = steps};
      const ScanResult r = in_loop ? scan(inner, {x}, {}, options) : unroll(inner, {x}, {}, options);
      return Next{{tanh(matmul(r.last[0], W))}, {}};
    };
    return in_loop ? scan(outer, {s}, {}, {.length = steps}) : unroll(outer, {s}, {}, {.length = steps});
  };
  CHECK(difference(run(true).last[0], run(false).last[0]) < 1e-12);
}
