// Lowered loops: the calls of a step and where their arrays lie, and ops that are no kernel calls or not only.
#include "engine/scan/lower/lowering.h"

#include "engine/device/recorder.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// y = 2 x, computed in the way that `how` says.
enum class How { on_host, half_on_host, by_value, with_temporary };
template <How how>
struct Twice {
  static constexpr Traits traits{.name = how == How::on_host        ? "twice_on_host"
                                         : how == How::half_on_host ? "twice_half_on_host"
                                         : how == How::by_value     ? "twice_by_value"
                                                                    : "twice_with_temporary",
                                 .linear = true};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    Backend& b = out.backend();
    const std::int64_t n = out.numel();
    StridedLoop<3> loop;
    loop.push(how == How::half_on_host && n > 0 ? n - 1 : n, {1, 1, 1});  // the host computes the last one
    const auto add = [&](const void* x, const void* y, void* to) {
      b.zip({index_of<Add, BinaryFunctors>, Add{}, out.dtype(), loop, x, y, to});
    };
    if constexpr (how == How::on_host) {
      for (std::int64_t i = 0; i < n; ++i) out.data_as<double>()[i] = 2 * in[0].data_as<double>()[i];
    } else if constexpr (how == How::half_on_host) {
      add(in[0].data(), in[0].data(), out.data());
      const auto* const x = static_cast<const double*>(in[0].data());  // nobody is told that the host looks at them
      if (n > 0) static_cast<double*>(out.data())[n - 1] = 2 * x[n - 1];
    } else if constexpr (how == How::by_value) {
      b.map({index_of<Affine, UnaryFunctors>, Affine{in[0].values<double>()[0] < 0 ? 2.0 : 2.0, 0}, out.dtype(), n,
             in[0].data(), out.data()});
    } else {  // x + (0 + x), through memory of its own
      Tensor sum = Tensor::zeros(out.shape(), out.dtype(), b);
      add(sum.data(), in[0].data(), sum.data());
      add(in[0].data(), sum.data(), out.data());
    }
  }
  void vjp(Vjp& v) const { v.set(0, apply(Twice{}, {&v.dy()}, Loc::current())); }
};
using OnHost = Twice<How::on_host>;
using HalfOnHost = Twice<How::half_on_host>;
using ByValue = Twice<How::by_value>;
using WithTemporary = Twice<How::with_temporary>;

/// Ops that make results of their own.
template <bool allocates>
struct Replacing {
  static constexpr Traits traits{.name = allocates ? "allocating" : "replacing", .allocates = allocates};
  bool short_of_a_row = false;
  bool operator==(const Replacing&) const = default;
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out = short_of_a_row ? at(in[0], 0) : in[0] + in[0]; }
  void vjp(Vjp& v) const { v.set(0, 2 * v.dy()); }
};

/// The sum of all inputs.
struct SumAll {
  static constexpr Traits traits{.name = "sum_all", .linear = true};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      out.data_as<double>()[i] = 0;
      for (std::size_t k = 0; k < in.size(); ++k) out.data_as<double>()[i] += in[k].data_as<double>()[i];
    }
  }
  void vjp(Vjp& v) const {
    for (std::size_t k = 0; k < v.inputs(); ++k) v.set(k, v.dy());
  }
  Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const {
    Tensors all;
    for (std::size_t k = 0; k < in.size(); ++k)
      all.push_back(mapped[k] ? in[k] : expand(in[k], in[k].shape().insert(0, steps)));
    return apply(*this, pointers(all), Loc::current());
  }
};

template <class O>
Tensor twice(const Tensor& x) {
  return apply(O{}, {&x}, Loc::current());
}

/// A plan's loop for so many rows of the batch.
std::shared_ptr<const ShardLoop> loop_of(const Plan& plan, std::int64_t rows) {
  std::vector<Prepacked> packed;
  for (const Program::Node& node : plan.loop.body.nodes) packed.push_back({node.attrs, {}});
  return plan.lowering()->loop(rows, {}, packed);
}

/// A plan of h <- tanh(h W^T + x), and its loop for all rows or for some.
struct Rnn {
  explicit Rnn(const Signature& s) {
    const Tensor W = random({4, 4}, 1);
    Traced body = trace({{DType::f64, {3, 4}, &backend()}, {DType::f64, {3, 4}, &backend()}}, [&](const Tensors& in) {
      const Tensor h = tanh(linear(in[0], W) + in[1]);
      return Tensors{h};
    });
    body.consts.clear();
    plan = plan_of(std::move(body), s, {});
  }
  std::shared_ptr<const ShardLoop> loop(std::int64_t rows) const { return loop_of(*plan, rows); }
  PlanPtr plan;
};

}  // namespace

REEL_OP(OnHost)
REEL_OP(HalfOnHost)
REEL_OP(ByValue)
REEL_OP(WithTemporary)

TEST_CASE("a step is a list of kernel calls, with a place for each array at each time") {
  for (const bool saved : {false, true}) {
    for (const bool reverse : {false, true}) {
      const Rnn rnn({.carries = 1, .length = 10, .reverse = reverse, .save_carries = saved});
      for (const std::int64_t rows : {0, 2}) {
        const auto lowered = rnn.loop(rows);
        const std::vector<LoopCall>& calls = lowered->loop.calls;
        REQUIRE(calls.size() == 2);
        CHECK(std::string(calls[0].kernel.name()) == "gemm");
        CHECK(std::string(calls[1].kernel.name()) == "fused");
        const GemmArgs& product = *calls[0].kernel.as<Kernel::gemm>();
        CHECK(product.m == (rows > 0 ? rows : 3));
        CHECK(product.transpose_b);
        const Operand &before = calls[0].operands[0], &after = calls[1].operands.back();
        constexpr std::int64_t bytes = 3 * 4 * sizeof(double);  // of all rows
        CHECK(before.buffer == after.buffer);
        CHECK(before.double_buffered == !saved);
        for (std::int64_t i = 0; i < 10; ++i) {
          const std::int64_t t = reverse ? 9 - i : i;
          CHECK(before.at(i) == (saved ? (reverse ? t + 1 : t) * bytes : i % 2 * bytes));
          CHECK(after.at(i) == (saved ? (reverse ? t : t + 1) * bytes : (i + 1) % 2 * bytes));
        }
        const LoopBuffer& state = lowered->buffers[static_cast<std::size_t>(before.buffer)];
        CHECK(state.kind == LoopBuffer::Kind::state);
        CHECK(state.rows == (rows > 0));
        const Operand& weights = calls[0].operands[1];
        CHECK(weights.stride == 0);
        CHECK(lowered->buffers[static_cast<std::size_t>(weights.buffer)].kind == LoopBuffer::Kind::input);
      }
      CHECK(rnn.loop(2) == rnn.loop(2));
      CHECK(rnn.loop(2) != rnn.loop(1));
    }
  }
}

TEST_CASE("a call that accumulates adds to a sum over time in place, without a fill and an addition") {
  const Tensor index = Tensor::from<std::int32_t>({2, 0, 2}, {3});
  Traced body =
      trace({{DType::f64, {3, 4}, &backend()}, {DType::f64, {5, 4}, &backend()}, {DType::i32, {3}, &backend()}},
            [](const Tensors& in) {
              const Tensor h = tanh(in[0]);
              return Tensors{h, in[1] + index_add(h, 0, in[2], 5)};
            });
  const PlanPtr plan = plan_of(std::move(body), {.carries = 2, .accumulators = 1, .length = 10, .gradient = true}, {});
  const auto lowered = loop_of(*plan, 2);
  const std::vector<LoopCall>& calls = lowered->loop.calls;
  REQUIRE(calls.size() == 2);
  CHECK(std::string(calls[0].kernel.name()) == "fused");
  CHECK(std::string(calls[1].kernel.name()) == "segment_sum");
  const Operand& sum = calls[1].operands.back();
  CHECK(sum.stride == 0);
  CHECK(lowered->buffers[static_cast<std::size_t>(sum.buffer)] ==
        LoopBuffer{.kind = LoopBuffer::Kind::state, .index = 1});

  const Tensor start = random({3, 4}, 1);
  const Tensors got = run_plan(plan, {start}, {stack(Tensors(10, index))}, {}, Loc::current());
  Tensor h = start, total = Tensor::zeros({5, 4}, DType::f64);
  for (int t = 0; t < 10; ++t) {
    h = tanh(h);
    total = total + index_add(h, 0, index, 5);
  }
  CHECK(difference(got[1], total) < 1e-14);
}

TEST_CASE("the gradient of what all rows share is one row, to which each step adds") {
  const Tensor x = random({12, 20, 8}, 71), h = random({20, 8}, 72), b = random({8}, 73), w = random({1, 8}, 74),
               v = random({20, 1}, 75);
  const auto gradients = [&](bool scanned) {
    const Step step = [&](const Tensors& s, const Tensors& in) { return Next{{tanh(w * s[0] + in[0] * v + b)}, {}}; };
    const Tape tape;
    const Tensor last = (scanned ? scan(step, {h}, {x}) : unroll(step, {h}, {x})).last[0];
    return grad({sum(last * last)}, Tensors{b, w, v});
  };
  std::vector<std::string> sums;  // of the gradient's loop
  PlanWatch watch{.stage = [](const std::string&, const std::string&, const Loop&) {},
                  .run =
                      [&](const PlanPtr& plan, const Tensors&, const Tensors&, const Tensors&) {
                        if (!plan->loop.signature.gradient) return;
                        const auto lowered = loop_of(*plan, 10);
                        for (const LoopCall& call : lowered->loop.calls) {
                          const std::string name(call.kernel.name());
                          if (name != "sum_rows" && name != "fill") continue;
                          sums.push_back(name);
                          CHECK(call.operands.back().stride == 0);
                          CHECK(lowered->buffers[static_cast<std::size_t>(call.operands.back().buffer)].kind ==
                                LoopBuffer::Kind::state);
                        }
                      }};
  plan_watch() = &watch;
  const Tensors got = gradients(true), wanted = gradients(false);
  plan_watch() = nullptr;
  CHECK(sums == std::vector<std::string>{"sum_rows", "sum_rows"});  // of b and w; v is not the same for all rows
  for (std::size_t k = 0; k < got.size(); ++k) CHECK(difference(got[k], wanted[k]) < 1e-14);
}

TEST_CASE("sums over time of what is added along rows, by each of two shards") {
  const Tensor table = random({20, 4}, 64), x = cast(floor(uniform({6, 20, 3}, 0, 4, 1, 65)), DType::i32);
  const auto gradient = [&](bool scanned) {
    const Step step = [&](const Tensors& s, const Tensors& in) {
      return Next{{tanh(s[0] + take_along(table, in[0], 1))}, {}};
    };
    const Tape tape;
    const Tensor start = random({20, 3}, 66);
    const ScanOptions options{.passes = {.hoist = false, .sink_reductions = false}};
    const Tensor last = (scanned ? scan(step, {start}, {x}, options) : unroll(step, {start}, {x})).last[0];
    return grad({sum(last * last)}, Tensors{table})[0];
  };
  CHECK(difference(gradient(true), gradient(false)) < 1e-14);
}

TEST_CASE("one term that two sums over time have") {
  const Tensor A = random({3, 4}, 61), C = random({3, 4}, 62),
               x = Tensor::from<std::int32_t>({0, 2, 1, 1, 2, 2}, {3, 2});
  const auto gradients = [&](bool scanned) {
    const Step step = [&](const Tensors& s, const Tensors& in) {
      return Next{{tanh(s[0] + embedding(in[0], A + C))}, {}};
    };
    const Tape tape;
    const Tensor start = random({2, 4}, 63);
    const ScanOptions options{.passes = {.delay_gathers = false, .hoist = false, .sink_reductions = false}};
    const Tensor last = (scanned ? scan(step, {start}, {x}, options) : unroll(step, {start}, {x})).last[0];
    return grad({sum(last * last)}, Tensors{A, C});
  };
  const Tensors got = gradients(true), expected = gradients(false);
  for (std::size_t i = 0; i < 2; ++i) CHECK(difference(got[i], expected[i]) < 1e-14);
}

TEST_CASE("ops that compute on the host, in part or by a value, and ops with memory of their own") {
  const auto both = [](auto&& f) {
    const Tensor xs = random({6, 5, 3}, 2), start = random({5, 3}, 3);
    const Step step = [&](const Tensors& s, const Tensors& x) {
      const Tensor h = tanh(f(s[0]) + f(x[0] * 0.3));
      return Next{{h}, {f(h)}};
    };
    for (const bool unrolled : {false, true}) {
      Tape tape;
      const ScanResult r = unrolled ? unroll(step, {start}, {xs}) : scan(step, {start}, {xs});
      Tensors got = grad({sum(r.ys[0] * r.ys[0])}, Tensors{xs, start});
      got.push_back(r.ys[0]);
      got.push_back(r.last[0]);
      static Tensors scanned;
      if (!unrolled) scanned = got;
      for (std::size_t k = 0; unrolled && k < got.size(); ++k) CHECK(difference(scanned[k], got[k]) < 1e-13);
    }
  };
  both(twice<OnHost>);
  both(twice<HalfOnHost>);
  both(twice<ByValue>);
  both(twice<WithTemporary>);
  both([](const Tensor& x) { return twice<WithTemporary>(twice<WithTemporary>(x) * 0.5) - twice<OnHost>(x) + x * 2; });
  // A row that is repeated before the first step, behind memory that a step uses for a while.
  both([bias = random({3}, 4)](const Tensor& x) { return twice<WithTemporary>(x) + bias; });
}

TEST_CASE("a recorder keeps calls and knows its blocks") {
  Recorder recorder(backend());
  CHECK(recorder.name() == backend().name());
  Tensor a = Tensor::zeros({4}, DType::f32, recorder), b = Tensor::empty({DType::f32, {0}, &recorder});
  const std::vector<KernelCall> calls = recorder.take();
  REQUIRE(calls.size() == 1);
  CHECK(std::string(calls[0].name()) == "fill");
  CHECK(calls[0].as<Kernel::fill>()->out == a.data());
  CHECK(calls[0].as<Kernel::copy>() == nullptr);
  CHECK(recorder.take().empty());
  const auto* first = static_cast<const std::byte*>(a.data());
  CHECK(recorder.block_of(first) == a.storage());
  CHECK(recorder.block_of(first + 16) == a.storage());
  CHECK(recorder.block_of(first + 17) != a.storage());
  CHECK(recorder.block_of(b.data()) == b.storage());
  CHECK(recorder.block_of(nullptr) == nullptr);
  int outside = 0;
  CHECK(recorder.block_of(&outside) == nullptr);
  CHECK_THROWS_AS(a.item(), Error);
  CHECK_THROWS_AS((void)a.values<float>(), NotCapturable);
}

TEST_CASE("what a backend calls before each step can end a loop") {
  const Tensor h0 = Tensor::zeros({20, 2});
  const auto step = [](const Tensors& s, const Tensors&) { return Next{{tanh(s[0] + 1)}, {}}; };
  const auto run = [&] { return scan(step, {h0}, {}, {.length = 50}).last[0]; };
  const Tensor expected = run();
  for (const int threads : {1, 2}) {
    backend().set_threads(threads);
    std::atomic<int> steps = 0;
    backend().before_step = [&] { ++steps; };
    CHECK(difference(run(), expected) == 0);
    CHECK(steps >= 2 * 50);  // of each shard
    backend().before_step = [&] {
      if (++steps > 20) throw Error("test", "enough");
    };
    steps = 0;
    CHECK(error_of(run) == "[test] enough");
    CHECK(steps <= 20 + threads);
    backend().before_step = nullptr;
    CHECK(difference(run(), expected) == 0);
  }
  backend().set_threads(1);
}

TEST_CASE("an op may replace its result, in a loop, too, by one of the same shape") {
  const Tensor h = random({12, 3}, 1);
  const auto check = [&]<class O>(const O& op) {
    const Step step = [&](const Tensors& s, const Tensors&) {
      return Next{{0.75 * apply(op, {&s[0]}, Loc::current())}, {}};
    };
    const auto results = [&](bool loop) {
      Tape tape;
      const Tensor last = (loop ? scan(step, {h}, {}, {.length = 3}) : unroll(step, {h}, {}, {.length = 3})).last[0];
      return Tensors{last, grad(sum(square(last)), {h})[0]};
    };
    const Tensors expected = results(false), got = results(true);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-12);
    CHECK(difference(got[0], 3.375 * h) < 1e-12);
  };
  check(Replacing<false>{});
  check(Replacing<true>{});
  const auto fails = [&](bool loop) {
    return error_of([&] {
      const auto shorter = [](const Tensor& x) { return apply(Replacing<false>{true}, {&x}, Loc::current()); };
      if (!loop) return void(shorter(h));
      scan([&](const Tensors& s, const Tensors&) { return Next{{shorter(s[0])}, {}}; }, {h}, {}, {.length = 2});
    });
  };
  CHECK(contains(fails(false), "[replacing] its run() gives f64 (3,), its infer() f64 (12, 3); got f64 (12, 3)"));
  CHECK(contains(fails(true), "[replacing] its run() gives f64 (3,), its infer() f64 (12, 3); in step 0 of scan"));
}

TEST_CASE("a call in a loop may have many inputs") {
  const Tensor h = random({4, 3}, 1), xs = random({5, 4, 3}, 2);
  for (const std::size_t count : {64, 65, 66, 150}) {
    const Step step = [&](const Tensors& s, const Tensors& x) {
      Tensors terms;
      for (std::size_t k = 0; k < count; ++k) terms.push_back(k % 3 == 0 ? x[0] : k % 3 == 1 ? 2 * x[0] : h);
      return Next{{tanh(s[0] + apply(SumAll{}, pointers(terms), Loc::current()))}, {}};
    };
    CHECK(difference(scan(step, {h}, {xs}).last[0], unroll(step, {h}, {xs}).last[0]) < 1e-12);
  }
}
