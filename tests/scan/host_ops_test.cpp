// Ops that compute on the host, in time loops: they are called at each step, with that step's values, and never on
// others.
#include <algorithm>

#include "engine/scan/lower/lowering.h"
#include "engine/scan/scan.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// x / max x: the host finds the largest element, and a kernel divides.
struct Scaled {
  static constexpr Traits traits{.name = "scaled"};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    const auto* const x = in[0].data_as<double>();
    out.assign(in[0] * (1 / *std::max_element(x, x + in[0].numel())));
  }
  void vjp(Vjp& v) const { v.set(0, v.dy()); }
};

/// x + (0, 1, 2, ...), which the host writes into memory of the op's own.
struct Numbered {
  static constexpr Traits traits{.name = "numbered"};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    const Tensor numbers = Tensor::empty(out.spec());
    auto* const y = const_cast<double*>(numbers.data_as<double>());
    for (std::int64_t i = 0; i < numbers.numel(); ++i) y[i] = static_cast<double>(i);
    out.assign(in[0] + numbers);
  }
  void vjp(Vjp& v) const { v.set(0, v.dy()); }
};

/// a % b of integers: a crash if b is 0. Counts its calls.
struct Rest {
  static constexpr Traits traits{.name = "rest", .differentiable = false};
  static inline int calls = 0;
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const {
    const auto *const a = in[0].data_as<std::int32_t>(), *const b = in[1].data_as<std::int32_t>();
    ++calls;
    auto* const y = out.data_as<std::int32_t>();
    for (std::int64_t i = 0; i < out.numel(); ++i) y[i] = a[i] % b[i];
  }
};

/// The sum over the batch, on the host.
struct HostSum {
  static constexpr Traits traits{.name = "host_sum", .accumulates = true};
  Spec infer(Inputs in) const { return {in[0].dtype(), in[0].shape().erase(0), &in[0].backend()}; }
  void run(Inputs in, Tensor& out) const {
    const std::int64_t n = out.numel();
    const auto* const x = in[0].data_as<double>();
    auto* const y = out.data_as<double>();
    std::fill_n(y, n, 0.0);
    for (std::int64_t i = 0; i < in[0].numel(); ++i) y[i % n] += x[i];
  }
  void vjp(Vjp& v) const { v.set(0, expand(v.dy(), v.spec(0).shape)); }
  bool reduces_rows(Inputs, Mapped sharded) const { return sharded[0]; }
};

template <class O>
Tensor of(const Tensor& x) {
  return apply(O{}, {&x}, Loc::current());
}

}  // namespace

TEST_CASE("an op whose host reads its input, or writes what a kernel reads, sees the values of each step") {
  const Tensor h = random({3}, 1, DType::f64, 0.5, 1), xs = random({6, 3}, 2, DType::f64, 0.5, 1);
  for (const auto f : {&of<Scaled>, &of<Numbered>}) {
    const Step step = [&](const Tensors& s, const Tensors& x) {
      const Tensor y = f(s[0] + x[0]);
      return Next{{y}, {y}};
    };
    const ScanResult looped = scan(step, {h}, {xs}), unrolled = unroll(step, {h}, {xs});
    CHECK(difference(looped.last[0], unrolled.last[0]) < 1e-14);
    CHECK(difference(looped.ys[0], unrolled.ys[0]) < 1e-14);
  }
}

TEST_CASE("an op that computes on the host is never called on values that are not there") {
  const Tensor h = Tensor::from<std::int32_t>({7, 11}, {2}), divisors = Tensor::from<std::int32_t>({3, 5}, {2});
  const Step step = [&](const Tensors& s, const Tensors&) {
    return Next{{apply(Rest{}, {&s[0], &divisors}, Loc::current())}, {}};
  };
  const ScanResult result = scan(step, {h}, {}, {.length = 6});
  CHECK(result.last[0].values<std::int32_t>() == std::vector<std::int32_t>{1, 1});
  CHECK(Rest::calls == 6);
}

TEST_CASE("a sum that the host computes cannot add to a sum over time") {
  Traced body = trace({{DType::f64, {3, 4}, &backend()}, {DType::f64, {4}, &backend()}}, [](const Tensors& in) {
    const Tensor h = tanh(in[0]);
    return Tensors{h, in[1] + of<HostSum>(h)};
  });
  const PlanPtr plan = plan_of(std::move(body), {.carries = 2, .accumulators = 1, .length = 10, .gradient = true}, {});
  std::vector<Prepacked> packed;
  for (const Program::Node& node : plan->loop.body.nodes) packed.push_back({node.attrs, {}});
  CHECK(contains(error_of([&] { plan->lowering()->loop(2, {}, packed); }),
                 "[host_sum] its traits say .accumulates, but run() calls no fill() for its result"));
}

namespace {
struct Undecided {  // factor x, with a faster call that it writes and then does not give
  double factor = 1;
  bool operator==(const Undecided&) const = default;
  static constexpr Traits traits{.name = "undecided", .differentiable = false};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs in, Tensor& out) const { out.assign(in[0] * factor); }
  bool prepack(Inputs, Mapped, Attrs& better, Tensors&) const {
    better = Attrs(Undecided{7});
    return false;
  }
};
}  // namespace

TEST_CASE("a faster call that prepack() does not give is not made") {
  const Step step = [](const Tensors& s, const Tensors&) -> Next { return {{apply(Undecided{2}, s[0])}, {}}; };
  const auto last = scan(step, {Tensor::full({3}, 1, DType::f64)}, {}, {.length = 10}).last[0].values<double>();
  CHECK(last[0] == 1024);
}
