// A traced step in fixed memory: what eval() computes of it, run after run.
#include "tasks/training/row_program.h"

#include "ops/ops.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Runs `step` on rows of `width` numbers and states of these widths, against eval(), 5 times.
void check(std::int64_t width, const std::vector<std::int64_t>& states, const Function& step, double tolerance) {
  std::vector<Spec> specs{{DType::f64, {1, width}, &backend()}};
  for (const std::int64_t n : states) specs.push_back({DType::f64, {1, n}, &backend()});
  const Traced traced = trace(specs, step);
  RowProgram program(traced);
  Tensors values;
  for (const Spec& s : specs) values.push_back(Tensor::zeros(s.shape, s.dtype));
  for (std::size_t i = 1; i < specs.size(); ++i) program.input(i).assign(values[i]);
  for (std::uint64_t t = 0; t < 5; ++t) {
    values[0] = random({1, width}, t);
    program.input(0).assign(values[0]);
    const Tensors expected = eval(traced.program, values, traced.consts);
    program.run();
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(difference(program.output(i), expected[i]) <= tolerance);
    for (std::size_t i = 1; i < specs.size(); ++i) {
      values[i] = expected[i];
      program.input(i).assign(program.output(i));
    }
  }
}

/// 2 tanh(x), in memory of its own, as an op may that computes with other ops.
struct Twice {
  static constexpr Traits traits{.name = "twice", .differentiable = false};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out = 2 * tanh(in[0]); }
};

/// Half of a product, by an op that nobody has registered.
struct Matmul {
  static constexpr Traits traits{.name = "matmul", .differentiable = false};
  Spec infer(Inputs in) const { return {in[0].dtype(), {in[0].dim(0), in[1].dim(1)}, &in[0].backend()}; }
  void run(Inputs in, Tensor& out) const { out.assign(0.5 * matmul(in[0], in[1])); }
};

}  // namespace

TEST_CASE("results that are inputs: a delay line and states that change places") {
  check(
      3, {3, 3, 3},
      [](const Tensors& in) {
        return Tensors{in[3] + in[0], in[0], in[1], in[2]};
      },
      0);
  check(
      2, {2, 2},
      [](const Tensors& in) {
        return Tensors{in[0] * 2.0, in[2], in[1] + in[0]};
      },
      0);
  check(
      2, {2},
      [](const Tensors& in) {
        return Tensors{reshape(in[1], {2}), in[0]};
      },
      0);
}

TEST_CASE("products of a row with constants of several widths, views, constants made of constants") {
  const Tensor W = random({5, 3}, 11), U = random({5, 5}, 12), V = random({2, 5}, 13), b = random({5}, 14);
  const auto step = [&](const Tensors& in) {
    const Tensor g = sigmoid(linear(in[0], W, b) + linear(in[1], U));
    const Tensor h = tanh(linear(in[0], W * 2.0) + g * linear(in[1], exp(U * -1.0), b));
    return Tensors{linear(h, V) + linear(in[1], V) + matmul(in[1], permute(V, {1, 0})), h};
  };
  check(3, {5}, step, 1e-13);
}

TEST_CASE("an op that puts another tensor in place of its result") {
  check(
      3, {3},
      [](const Tensors& in) {
        const Tensor h = apply(Twice{}, {&in[1]}, Loc::current()) + in[0];
        return Tensors{h, apply(Twice{}, {&h}, Loc::current())};
      },
      0);
}

TEST_CASE("an own op with the name of one of Reel's is itself") {
  const Tensor W = random({3, 3}, 11);
  check(
      3, {3},
      [&](const Tensors& in) {
        return Tensors{in[0], apply(Matmul{}, {&in[1], &W}, Loc::current()) + matmul(in[0], W)};
      },
      1e-13);
}

TEST_CASE("the same program again: nothing is allocated") {
  const Tensor W = random({64, 64}, 11), U = random({64, 64}, 12);
  const Spec spec{DType::f64, {1, 64}, &backend()};
  RowProgram program(trace({spec, spec}, [&](const Tensors& in) {
    const Tensor h = tanh(linear(in[0], W) + linear(in[1], U));
    return Tensors{sum(h, {1}), h};
  }));
  program.input(0).assign(random({1, 64}, 1));
  program.input(1).assign(random({1, 64}, 2));
  program.run();
  const auto before = backend().memory();
  for (int i = 0; i < 5; ++i) program.run();
  CHECK(backend().memory().live_bytes == before.live_bytes);
  CHECK(backend().memory().system_calls == before.system_calls);
}
