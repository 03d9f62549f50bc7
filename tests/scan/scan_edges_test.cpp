// Loops at the edges: singular functions of rows that no step looks up, no steps, nothing but constants, zeros with a
// sign, steps of very many calls, gradients and errors in a step.
#include <cmath>

#include "engine/scan/plan.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Way = ScanResult (*)(const Step&, const Tensors&, const Tensors&, const ScanOptions&, Loc);

/// The last state, the outputs, and the gradients of their sum.
Tensors results(Way way, const Step& step, const Tensors& state, const Tensors& xs, const Tensors& wrt) {
  Tape tape;
  const ScanResult r = way(step, state, xs, {}, Loc::current());
  Tensors out = r.last;
  out.insert(out.end(), r.ys.begin(), r.ys.end());
  Tensor loss = Tensor::zeros({}, DType::f64);
  for (const Tensor& x : out) loss = loss + sum(x);
  for (const Tensor& g : grad({loss}, wrt)) out.push_back(g);
  return out;
}

void check_as_unrolled(const Step& step, const Tensors& state, const Tensors& xs, const Tensors& wrt) {
  const Tensors expected = results(unroll, step, state, xs, wrt), got = results(scan, step, state, xs, wrt);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].shape() == expected[i].shape());
    CHECK(difference(got[i], expected[i]) < 1e-12);
  }
}

}  // namespace

TEST_CASE("rows of a table that no step looks up do not matter, whatever a function does at them") {
  const Tensor table = Tensor::from<double>({0, 1, 2}, {3, 1}), h = Tensor::zeros({2, 1}, DType::f64);
  const Tensor symbols = Tensor::from<std::int32_t>({1, 2, 2, 1, 1, 1, 2, 2}, {4, 2});
  using Function = Tensor (*)(const Tensor&);
  for (const Function f :
       {Function([](const Tensor& x) { return sqrt(x); }), Function([](const Tensor& x) { return log(x); }),
        Function([](const Tensor& x) { return reciprocal(x); }), Function([](const Tensor& x) { return 1 / x; }),
        Function([](const Tensor& x) { return power(x, 0.5); }),
        Function([](const Tensor& x) { return acos(1 - x / 4); }),
        Function([](const Tensor& x) { return pow(x, Tensor::full({}, 0.5, DType::f64)); })}) {
    check_as_unrolled(
        [&](const Tensors& s, const Tensors& x) {
          const Tensor e = f(embedding(x[0], table));
          return Next{{s[0] + e}, {e}};
        },
        {h}, {symbols}, {table});
  }
}

TEST_CASE("an index that only an unused row holds may lead nowhere") {
  const Tensor next = Tensor::from<std::int32_t>({-1, 0, 1}, {3}), table = random({2, 3}, 1), h = random({2, 3}, 2);
  const Tensor symbols = Tensor::from<std::int32_t>({1, 2, 2, 1, 1, 1, 2, 2}, {4, 2});
  check_as_unrolled(
      [&](const Tensors& s, const Tensors& x) {
        return Next{{s[0] + embedding(index_select(next, 0, x[0]), table)}, {}};
      },
      {h}, {symbols}, {table, h});
}

TEST_CASE("no steps, of a step that looks up rows of its input") {
  const Tensor tables = random({0, 3, 4}, 1), indices = Tensor::zeros({0, 2, 2}, DType::i32), h = random({2}, 2);
  const ScanResult r = scan(
      [](const Tensors& s, const Tensors& x) {
        return Next{s, {embedding(x[1], x[0])}};
      },
      {h}, {tables, indices});
  CHECK(r.ys[0].shape() == Shape({0, 2, 2, 4}));
  CHECK(contains(
      error_of([&] {
        scan([](const Tensors& s, const Tensors&) { return Next{s, {}}; }, {h}, {random({5}, 1)}, {.length = 0});
      }),
      "the number of time steps is 0, but an x is f64 (5,)"));
}

TEST_CASE("a loop of nothing but constants, with all passes off") {
  const ScanResult r = scan(
      [](const Tensors&, const Tensors&) {
        return Next{{}, {Tensor::full({2}, 1.5)}};
      },
      {}, {}, {.length = 3, .passes = ScanPasses::none()});
  CHECK(r.ys[0].values<float>() == std::vector<float>(6, 1.5F));
}

TEST_CASE("0 and -0 are two constants, and a constant that is NaN is planned once") {
  const Tensor xs = Tensor::zeros({2}, DType::f64);
  const auto angle = [&](double c) {
    const Step step = [c](const Tensors&, const Tensors& x) {
      return Next{{}, {atan2(x[0], full({}, c, DType::f64))}};
    };
    return scan(step, {}, {xs}).ys[0].values<double>()[0];
  };
  CHECK(angle(0.0) == 0);
  CHECK(angle(-0.0) == doctest::Approx(std::acos(-1.)));
  angle(NAN);
  const std::int64_t before = plans_made();
  angle(NAN);
  CHECK(plans_made() == before);
}

TEST_CASE("a step of some thousand calls one after the other") {  // the stack is not deep enough for a call of each
  const Tensor h = random({2, 3}, 1);
  const Step step = [](const Tensors& s, const Tensors&) {
    Tensor y = s[0];
    for (int i = 0; i < 10000; ++i) y = sin(y);
    return Next{{y}, {}};
  };
  Tape tape;
  const Tensor last = scan(step, {h}, {}, {.length = 2}).last[0];
  CHECK(difference(last, unroll(step, {h}, {}, {.length = 2}).last[0]) < 1e-14);
  CHECK(grad({sum(last)}, {h})[0].shape() == h.shape());
}

TEST_CASE("a step whose values are reached on 2^60 paths, outside of the state's gradient") {
  const Tensor h = random({2, 3}, 1), xs = random({4, 2, 3}, 2), b = random({3}, 3), w = random({3, 3}, 4);
  for (const int blocks : {3, 60}) {
    const Step residual = [&](const Tensors& s, const Tensors& x) {
      Tensor y = x[0] * sigmoid(stop_gradient(s[0]));
      for (int i = 0; i < blocks; ++i) y = y + 0.1 * tanh(matmul(y, w));
      const Tensor next = tanh(0.5 * s[0] + y);
      return Next{{next}, {next}};
    };
    check_as_unrolled(residual, {h}, {xs}, {h, xs, w});
    const Step sums = [&](const Tensors& s, const Tensors& x) {  // linear, so sums over time are moved through them
      Tensor y = b * sigmoid(stop_gradient(s[0]));
      for (int i = 0; i < blocks; ++i) y = 0.5 * y + 0.5 * roll(y, 1, 1);
      const Tensor next = tanh(0.5 * s[0] + y + x[0]);
      return Next{{next}, {next}};
    };
    check_as_unrolled(sums, {h}, {xs}, {h, xs, b});
  }
}

TEST_CASE("a gradient in a step is a constant unless create_graph says otherwise, in a loop and in its gradient") {
  const Tensor h = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  Tensors both;
  for (const bool create_graph : {false, true}) {
    const Step step = [&](const Tensors& s, const Tensors& x) {
      const Tensor next = tanh(s[0] + x[0]);
      const auto [slope] = grad(sum(next * next * next), {next}, {.create_graph = create_graph});
      return Next{{next - 0.1 * slope}, {next}};
    };
    check_as_unrolled(step, {h}, {xs}, {h, xs});
    both.push_back(results(scan, step, {h}, {xs}, {h})[2]);
  }
  CHECK(difference(both[0], both[1]) > 0.01);
}

TEST_CASE("a state that the loss does not read has no gradient, whatever the derivative of its step is") {
  const Tensor xs = Tensor::from<double>({1, 4, 0}, {3, 1}), z = Tensor::zeros({1}, DType::f64);
  const Tensor singular = Tensor::zeros({3, 2, 2}, DType::f64);
  const auto gradients = [&](Way way, const ScanOptions& options) {
    Tape tape;
    const Step norms = [](const Tensors& s, const Tensors& x) {  // the last two only go on
      return Next{{s[0] + x[0], sqrt(x[0]), s[1] + s[2] + norm(x[1]), s[3] * det(x[1])}, {sqrt(x[0])}};
    };
    const ScanResult r = way(norms, {z, z, z, z}, {xs, singular}, options, Loc::current());
    return grad({sum(r.last[0])}, Tensors{xs, singular, z});
  };
  const Tensors expected = gradients(unroll, {});
  for (const std::int64_t every : {0, 1, 2}) {  // with loops in a loop, too
    const Tensors got = gradients(scan, {.checkpoint_every = every});
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].values<double>() == expected[i].values<double>());
  }
}

TEST_CASE("an input that the loss does not read has no gradient, wherever it comes from") {
  const Tensor raw = Tensor::from<double>({1, 4, 0}, {3, 1}), w = Tensor::zeros({1}, DType::f64);
  for (const bool reads_state : {true, false}) {
    const auto gradients = [&](Way way) {
      Tape tape;
      const Tensor rate = sqrt(w);
      const Step step = [&](const Tensors& s, const Tensors& x) {
        const Tensor one = full({1}, 1, DType::f64);
        return Next{{s[0] + 1.0}, {rate * x[1], reads_state ? s[0] : one}};
      };
      const ScanResult r = way(step, {w}, {raw, sqrt(raw)}, {}, Loc::current());
      return grad({sum(r.ys[1])}, Tensors{raw, w});
    };
    const Tensors expected = gradients(unroll), got = gradients(scan);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].values<double>() == expected[i].values<double>());
  }
}

TEST_CASE("an initial state that is overwritten before the loss reads it has no gradient") {
  const Tensor raw = Tensor::from<double>({1, 4, 9}, {3, 1}), w = Tensor::zeros({1}, DType::f64);
  const auto gradients = [&](Way way, std::int64_t steps) {
    Tape tape;
    const Step queue = [](const Tensors& s, const Tensors& x) { return Next{{s[1], x[0]}, {}}; };
    const ScanResult r = way(queue, {sqrt(w), sqrt(w)}, {slice(raw, 0, 0, steps)}, {}, Loc::current());
    return grad({sum(r.last[0])}, Tensors{raw, w});
  };
  for (const std::int64_t steps : {2, 3}) {  // after one step the second state's start is there
    const Tensors expected = gradients(unroll, steps), got = gradients(scan, steps);
    CHECK(got[1].item() == 0);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].values<double>() == expected[i].values<double>());
  }
}

TEST_CASE("what a loop reads only through functions without a slope has no gradient") {
  const Tensor raw = Tensor::from<double>({0, 1, 4, 9, 0, 1}, {3, 2}), w = Tensor::from<double>({0, 1}, {2});
  using Function = Tensor (*)(const Tensor&);
  for (const Function flat :
       {Function([](const Tensor& x) { return stop_gradient(x); }), Function([](const Tensor& x) { return floor(x); }),
        Function([](const Tensor& x) { return round(x); }), Function([](const Tensor& x) { return sign(x); }),
        Function([](const Tensor& x) { return 0 * x; }), Function([](const Tensor& x) { return power(x, 0); }),
        Function([](const Tensor& x) { return cast(sum(x, {0}, true) > 1, DType::f64); }),
        Function([](const Tensor& x) { return expand(floor(prod(x, {0}, true)), x.shape()); }),
        Function([](const Tensor& x) {  // in a loop of its own
          return scan(
                     [](const Tensors& s, const Tensors& y) {
                       return Next{{s[0] + floor(y[0])}, {}};
                     },
                     {full({1}, 0, DType::f64)}, {unsqueeze(x, 1)})
              .last[0];
        })}) {
    const auto gradients = [&](Way way, const ScanOptions& options) {
      Tape tape;
      const Tensor rate = sqrt(w);
      const Step step = [&](const Tensors& s, const Tensors& x) {  // the third state is read by the second's step
        return Next{{s[0] * flat(x[0]) + x[1], s[1] * flat(s[2]) * flat(rate), s[2] * s[2]}, {s[0] * s[1]}};
      };
      const ScanResult r = way(step, {w + 1, w + 2, sqrt(w)}, {sqrt(raw), raw}, options, Loc::current());
      return grad({sum(r.ys[0])}, Tensors{raw, w});
    };
    const Tensors expected = gradients(unroll, {});
    for (const std::int64_t every : {0, 1, 2}) {
      const Tensors got = gradients(scan, {.checkpoint_every = every});
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(std::isfinite(sum(got[i]).item()));
        CHECK(difference(got[i], expected[i]) < 1e-12);
      }
    }
  }
}

TEST_CASE("a state that only another state reads has its gradient, and is planned once") {
  const Tensor h = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  const Step chain = [](const Tensors& s, const Tensors& x) {  // the loss reads the first; the last one reads all
    return Next{{s[1], sin(s[2]), s[0] + tanh(x[0]), s[0] + s[1] + s[2] + s[3]}, {s[3]}};
  };
  const auto gradients = [&](Way way) {
    Tape tape;
    const ScanResult r = way(chain, {h, h + 1, h + 2, h + 3}, {xs}, {}, Loc::current());
    return grad({sum(square(r.last[0]))}, Tensors{h, xs});
  };
  const Tensors expected = gradients(unroll), got = gradients(scan);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-12);
  const std::int64_t before = plans_made();
  gradients(scan);
  CHECK(plans_made() == before);
}

TEST_CASE("an error in a loop names the op, its line, the time step and the loop") {
  const Tensor h = Tensor::zeros({1, 2, 2}, DType::f64), one = eye(2, DType::f64);
  const Tensor xs = stack({one, one, 0 * one, one});
  const auto line = [](int n) { return fmt::format("tests/scan/scan_edges_test.cpp:{}", n); };
  int call = 0;
  const Step solves = [&](const Tensors& s, const Tensors& x) {
    call = __LINE__ + 1;
    return Next{{solve(x[0] + 0 * s[0], s[0])}, {}};
  };
  const auto said = [&](const ScanOptions& options) { return error_of([&] { scan(solves, {h}, {xs}, options); }); };
  const std::string singular = "[solve] the 2x2 matrix is singular: pivot 0 is 0; in step ", at = " of scan at ";
  const int loop = __LINE__ - 2;
  const std::string first = said({});
  CHECK(first == singular + "2" + at + line(loop) + " (" + line(call) + ")");
  CHECK(contains(said({.reverse = true}), singular + "2" + at));
  CHECK(contains(said({.checkpoint_every = -1}), "[scan] checkpoint_every is 0 or more steps, got -1"));
  CHECK(contains(said({.checkpoint_every = 2}), singular + "0" + at + line(loop) + "; in step 1" + at + line(loop)));

  const Tensor symbols = Tensor::from<std::int32_t>({1, 0, 1, 5, 0, 0}, {3, 2});
  const Step looks = [](const Tensors& s, const Tensors& x) { return Next{{index_select(s[0], 0, x[0])}, {}}; };
  CHECK(contains(
      error_of([&] {
        scan(looks, {random({2, 3}, 1)}, {symbols});
      }),
      "[index_select] index 5 at place 1 is not in 0..1; in step 1 of scan at tests/scan/scan_edges_test.cpp:"));

  const Step volume = [](const Tensors& s, const Tensors& x) {
    return Next{{s[0] * x[0] + unsqueeze(unsqueeze(det(s[0]), 1), 1)}, {}};
  };
  Tape tape;
  const ScanResult r = scan(volume, {h}, {xs}, {.passes = ScanPasses::none()});
  CHECK(contains(error_of([&] { grad(sum(r.last[0]), {h}); }),
                 "is singular: pivot 0 is 0; in step 3 of the gradient of scan at tests/scan/scan_edges_test.cpp:"));
}

TEST_CASE("an error of an op that has left the loop names its line in the step, too") {
  const Tensor symbols = Tensor::from<std::int32_t>({0, 7}, {2, 1}), row = random({1, 5}, 1), h = zeros_like(row);
  const Tensor singular = Tensor::zeros({2, 2, 2}, DType::f64), one = eye(2, DType::f64);
  int call = 0;
  const auto said = [&](const std::function<Tensor(const Tensor&)>& f, const Tensor& xs, const std::string& text) {
    const Step step = [&](const Tensors& s, const Tensors& x) { return Next{{s[0] + sum(f(x[0]))}, {}}; };
    const std::string error = error_of([&] { scan(step, {h}, {xs}); });
    CHECK_MESSAGE(error.starts_with(text), error);
    CHECK_MESSAGE(error.ends_with(fmt::format(" (tests/scan/scan_edges_test.cpp:{})", call)), error);
  };
  call = __LINE__ + 1;
  said([&](const Tensor& x) { return index_select(row, 1, x); }, symbols, "[index_select] index 7 ");
  call = __LINE__ + 1;
  said([&](const Tensor& x) { return cross_entropy(row, x); }, symbols, "[take_along] index 7 ");
  call = __LINE__ + 1;
  said([&](const Tensor& x) { return one_hot(x, 3, DType::f64); }, symbols, "[scatter_add] index 7 ");
  call = __LINE__ + 1;
  said([&](const Tensor& x) { return solve(x, one); }, singular, "[solve] the 2x2 matrix at place 0 of 2 is singular");
  call = __LINE__ + 1;
  said([&](const Tensor& x) { return cholesky(x); }, singular, "[cholesky] ");
}

TEST_CASE("a step that suspends recording, or has a tape of its own, is told that it is traced") {
  const Tensor h = random({2, 3}, 1);
  const auto said = [&](const std::function<Tensor(const Tensor&)>& f) {
    return error_of([&] {
      scan([&](const Tensors& s, const Tensors&) { return Next{{f(s[0])}, {}}; }, {h}, {}, {.length = 2});
    });
  };
  CHECK(contains(said([](const Tensor& s) {
                   const NoGrad no_grad;
                   return tanh(s);
                 }),
                 "[tanh] argument 0 has no value: NoGrad and a new Tape do not work in a traced step"));
  CHECK(contains(said([](const Tensor& s) {
                   const Tape tape;
                   return tanh(s);
                 }),
                 "Hint: stop_gradient (tests/scan/scan_edges_test.cpp:"));
  Tensor kept;
  scan(
      [&](const Tensors& s, const Tensors&) {
        kept = s[0];
        return Next{s, {}};
      },
      {h}, {}, {.length = 2});
  CHECK(contains(error_of([&] { tanh(kept); }), "it belongs to a step that has ended or another thread, or, in a vjp"));
}

TEST_CASE("an undefined tensor, and elements that are read while a step is traced, are errors") {
  const Tensor h = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  using Loop = ScanResult (*)(const Step&, const Tensors&, const Tensors&, const ScanOptions&, Loc);
  for (const auto& [name, way] : {std::pair<std::string, Loop>{"[scan] ", scan}, {"[unroll] ", unroll}}) {
    const auto said = [&](const Step& step, const Tensor& state, const Tensor& x) {
      return error_of([&] { way(step, {state}, {x}, {}, Loc::current()); });
    };
    const Step same = [](const Tensors& s, const Tensors&) { return Next{s, {}}; };
    CHECK(contains(said(nullptr, h, xs), name + "the step is an empty function"));
    CHECK(contains(said(same, {}, xs), name + "state 0 is an undefined tensor"));
    CHECK(contains(said(same, h, {}), name + "x 0 is an undefined tensor"));
    CHECK(contains(said(
                       [](const Tensors&, const Tensors&) {
                         return Next{{Tensor()}, {}};
                       },
                       h, xs),
                   name + "after the step, state 0 is an undefined tensor"));
    CHECK(contains(said(
                       [](const Tensors& s, const Tensors&) {
                         return Next{s, {Tensor()}};
                       },
                       h, xs),
                   name + "output 0 is an undefined tensor"));
    CHECK(contains(error_of([&] { way(same, {h}, {xs}, {.length = -7}, Loc::current()); }),
                   name + "the number of time steps is -7, but an x is f64 (4, 2, 3)"));
  }
  int steps = 0;
  const Step fewer = [&](const Tensors& s, const Tensors&) { return Next{s, ++steps < 4 ? s : Tensors{}}; };
  CHECK(contains(error_of([&] { unroll(fewer, {h}, {xs}); }),
                 "[unroll] each step returns as many outputs as the first: 1, got 0"));
  const auto read = [&](const std::function<void(const Tensor&)>& f) {
    return error_of([&] {
      const auto step = [&](const Tensors& s, const Tensors&) {
        f(s[0]);
        return Next{s, {}};
      };
      scan(step, {h}, {}, {.length = 2});
    });
  };
  const std::string no_value =
      "this tensor has no value: it stands for one while a program is traced; got f64 (2, 3) (tests/scan/scan_edges";
  CHECK(contains(read([](const Tensor& s) { (void)s.data_as<double>(); }), "[data] " + no_value));
  CHECK(contains(read([](const Tensor& s) { (void)s.data(); }), "[data] " + no_value));
  CHECK(contains(error_of([] { (void)Tensor().data(); }), "[data] this tensor has no value: it is undefined"));
}
