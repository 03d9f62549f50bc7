// scan against unroll: values, gradients and gradients of gradients, with each pass on and off.
#include <array>

#include "cells/cell.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

constexpr double tolerance = 1e-10;

/// All on, all off, each one off, each one alone.
std::vector<ScanPasses> some_passes() {
  constexpr std::array passes{&ScanPasses::delay_gathers, &ScanPasses::hoist, &ScanPasses::sink_reductions,
                              &ScanPasses::rematerialize, &ScanPasses::fuse,  &ScanPasses::shard_batch};
  std::vector<ScanPasses> out{{}, ScanPasses::none()};
  for (const auto pass : passes) {
    out.emplace_back().*pass = false;
    out.push_back(ScanPasses::none());
    out.back().*pass = true;
  }
  return out;
}

using Runner = std::function<ScanResult(const Step&, const Tensors&, const Tensors&)>;

/// Everything that a loop gives: outputs, last state, gradients, and, if `twice`, gradients of a function of those.
Tensors everything(const Runner& run, const Step& step, const Tensors& state, const Tensors& xs, const Tensors& wrt,
                   bool twice = true) {
  Tape tape;
  const ScanResult r = run(step, state, xs);
  Tensors out = r.last;
  out.insert(out.end(), r.ys.begin(), r.ys.end());
  Tensor loss = Tensor::zeros({}, DType::f64);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (is_differentiable(out[i].dtype())) loss = loss + sum(out[i] * random(out[i].shape(), 90 + i));
  }
  const Tensors first = grad({loss}, wrt, {.create_graph = twice});
  if (!twice) {
    out.insert(out.end(), first.begin(), first.end());
    return out;
  }
  Tensor next = Tensor::zeros({}, DType::f64);
  for (std::size_t i = 0; i < first.size(); ++i)
    next = next + sum(first[i] * first[i] * random(first[i].shape(), 70 + i));
  const Tensors second = grad({next}, wrt);
  out.insert(out.end(), first.begin(), first.end());
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

void hold_equal(const Step& step, const Tensors& state, const Tensors& xs, const Tensors& wrt,
                ScanOptions options = {}) {
  const Tensors expected =
      everything([&](const Step& s, const Tensors& s0, const Tensors& x) { return unroll(s, s0, x, options); }, step,
                 state, xs, wrt);
  for (const ScanPasses& passes : some_passes()) {
    CAPTURE(passes.delay_gathers);
    CAPTURE(passes.hoist);
    CAPTURE(passes.sink_reductions);
    CAPTURE(passes.rematerialize);
    CAPTURE(passes.fuse);
    CAPTURE(passes.shard_batch);
    options.passes = passes;
    const Tensors got =
        everything([&](const Step& s, const Tensors& s0, const Tensors& x) { return scan(s, s0, x, options); }, step,
                   state, xs, wrt);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(got[i], expected[i]) < tolerance);
    }
  }
  options.passes = {};
  for (std::int64_t every : {1, 2, 4}) {  // blocks of one, whole blocks, and steps that are left over
    CAPTURE(every);
    options.checkpoint_every = every;
    const Tensors got =
        everything([&](const Step& s, const Tensors& s0, const Tensors& x) { return scan(s, s0, x, options); }, step,
                   state, xs, wrt);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(got[i], expected[i]) < tolerance);
    }
  }
  options.checkpoint_every = 0;
  // A gradient that nobody will differentiate keeps less, and threads share the batch.
  options.passes = {};
  for (int threads : {1, 2}) {
    CAPTURE(threads);
    backend().set_threads(threads);
    const Tensors got =
        everything([&](const Step& s, const Tensors& s0, const Tensors& x) { return scan(s, s0, x, options); }, step,
                   state, xs, wrt, false);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(got[i], expected[i]) < tolerance);
    }
  }
  backend().set_threads(1);
  // Without a tape nothing is kept; the values are the same.
  const ScanResult plain = scan(step, state, xs, options);
  for (std::size_t i = 0; i < plain.last.size(); ++i) CHECK(difference(plain.last[i], expected[i]) < tolerance);
  for (std::size_t i = 0; i < plain.ys.size(); ++i)
    CHECK(difference(plain.ys[i], expected[plain.last.size() + i]) < tolerance);
}

}  // namespace

TEST_CASE("every cell, every setting of choice: scan is unroll") {
  for (const CellType& type : cell_registry()) {
    std::vector<std::map<std::string, std::string>> variants{{}};
    for (const Setting& s : type.settings) {
      for (const std::string& c : s.choices) {
        if (c != s.fallback) variants.push_back({{s.name, c}});
      }
    }
    for (const auto& given : variants) {
      CAPTURE(type.name);
      for (const auto& [k, v] : given) CAPTURE(k + "=" + v);
      Init init(3, DType::f64);
      std::unique_ptr<Cell> cell;
      const auto make = [&] { cell = type.make(3, 5, Settings(type.name, type.settings, given), init); };
      if (!error_of(make).empty()) continue;  // a setting that needs another one, too
      if (!cell->recurrent()) continue;
      Tensors state, wrt;
      for (const State& s : cell->states())
        state.push_back(random({2, s.width}, 40 + state.size(), s.complex ? DType::c128 : DType::f64));
      const Tensor xs = random({6, 2, 3}, 30);
      for (const Parameter& p : cell->parameters()) {
        if (p.trained) wrt.push_back(p.value);
      }
      wrt.insert(wrt.end(), state.begin(), state.end());
      wrt.push_back(xs);
      const Step step = [&](const Tensors& s, const Tensors& x) {
        Tensors next = cell->step(s, x[0]);
        Tensors y{cell->output(next)};
        return Next{std::move(next), std::move(y)};
      };
      hold_equal(step, state, {xs}, wrt);
      hold_equal(step, state, {xs}, wrt, {.reverse = true, .passes = {}});
    }
  }
}

TEST_CASE("states that swap places, stand still, or are the input") {
  const Tensor a = random({2, 3}, 1), b = random({2, 3}, 2), c = random({2, 3}, 3), xs = random({5, 2, 3}, 4);
  const Step step = [](const Tensors& s, const Tensors& x) {
    return Next{{s[1], tanh(s[0] + x[0]), s[2], x[0], sin(s[3]) * s[2]}, {s[3], s[2] * x[0], x[0], s[0]}};
  };
  hold_equal(step, {a, b, c, a, b}, {xs}, {a, b, c, xs});
}

TEST_CASE("two states with the same next value, and constants as next value and output") {
  const Tensor a = random({2}, 1), b = random({2}, 2), k = random({2}, 3), xs = random({4, 2}, 4);
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor n = tanh(s[0] * x[0] + s[1]);
    return Next{{n, n, k * k}, {n, k, s[2], Tensor::full({}, 3, DType::f64)}};
  };
  hold_equal(step, {a, b, a}, {xs}, {a, b, k, xs});
}

TEST_CASE("a step that leaves the loop altogether, as no state holds any of it there") {
  const Tensor W = random({64, 64}, 1), xs = random({3, 64, 64}, 2);
  const Step step = [&](const Tensors&, const Tensors& x) { return Next{{}, {matmul(x[0], W)}}; };
  hold_equal(step, {}, {xs}, {W, xs});
}

TEST_CASE("weights used elementwise, twice, transposed and through a function of themselves") {
  const Tensor h = random({3, 4}, 1), W = random({4, 4}, 2, DType::f64, -0.5, 0.5), v = random({4}, 3),
               xs = random({5, 3, 4}, 4);
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor Q = matmul(W, transpose(W)) * 0.5;  // does not depend on time
    const Tensor m = tanh(matmul(s[0], W) + matmul(x[0], W) + matmul(s[0], Q, {.transpose_b = true}) * v);
    return Next{{m * v + s[0] * 0.1}, {sum(m * W, {}, false) * v, max(m, {1}), m}};
  };
  CHECK_THROWS_AS(scan(step, {h}, {xs}), Error);  // m [3, 4] and W [4, 4] do not broadcast
  const Step fits = [&](const Tensors& s, const Tensors& x) {
    const Tensor Q = matmul(W, transpose(W)) * 0.5;
    const Tensor m = tanh(matmul(s[0], W) + matmul(x[0], W) + matmul(s[0], Q, {.transpose_b = true}) * v);
    return Next{{m * v + s[0] * 0.1}, {sum(reshape(m, {3, 1, 4}) * W), max(m, {1}), m}};
  };
  hold_equal(fits, {h}, {xs}, {h, W, v, xs});
}

TEST_CASE("lookups, slices and joins inside the loop; an integer state counts the steps") {
  const Tensor h = random({2, 4}, 1), table = random({6, 4}, 2);
  const Tensor symbols = Tensor::from<std::int32_t>({0, 1, 5, 2, 2, 3, 4, 5, 1, 1}, {5, 2});
  const Tensor zero = Tensor::zeros({2}, DType::i32), one_ = Tensor::full({2}, 1, DType::i32);
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor e = embedding(x[0], table);
    const Tensor here = embedding(s[1], table);  // row number = step number
    const Tensors halves = split(s[0], 2);
    const Tensor mixed = concat({halves[1] * 0.5, tanh(halves[0])}, 1) + e * here;
    return Next{{roll(mixed, 1), s[1] + one_}, {pick(mixed, x[0] - maximum(x[0] - 3.0, 0.0)), s[1]}};
  };
  hold_equal(step, {h, zero}, {symbols}, {h, table});
}

TEST_CASE("two symbols a step that look up rows of one table") {
  const Tensor h = random({2, 4}, 1), table = random({3, 4}, 2);
  const Tensor a = Tensor::from<std::int32_t>({0, 1, 2, 2, 1, 0, 0, 2, 1, 1}, {5, 2}),
               b = Tensor::from<std::int32_t>({1, 1, 0, 2, 2, 0, 1, 0, 2, 1}, {5, 2});
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor e = embedding(x[0], table), f = embedding(x[1], table);
    return Next{{tanh(s[0] + e * f)}, {e - f, tanh(e) * sin(f)}};
  };
  hold_equal(step, {h}, {a, b}, {h, table});
}

TEST_CASE("rows longer than a block of a fused run, in a loop backwards: the end of a row spares the next step's") {
  const Tensor h = random({2, 1031}, 1), xs = random({4, 2, 1031}, 2);
  const Step step = [](const Tensors& s, const Tensors& x) {
    const Tensor y = tanh(s[0] * x[0] + x[0]);
    return Next{{y}, {y * x[0]}};
  };
  hold_equal(step, {h}, {xs}, {h, xs}, {.reverse = true, .passes = {}});
}

TEST_CASE("an output that is a sum over the batch, and as high as the batch") {
  const Tensor h = random({4, 4}, 1), xs = random({5, 4, 4}, 2);
  const Step step = [](const Tensors& s, const Tensors& x) {
    return Next{{tanh(s[0] + x[0])}, {matmul(s[0], x[0], {.transpose_a = true})}};
  };
  hold_equal(step, {h}, {xs}, {h, xs});
}

TEST_CASE("outputs that are some rows of a value") {
  const Tensor h = random({4, 3}, 1), xs = random({5, 4, 3}, 2);
  const Step step = [](const Tensors& s, const Tensors& x) {
    const Tensor y = tanh(s[0] + x[0]);
    return Next{{sin(y)}, {slice(y, 0, 1, 3), slice(y * x[0], 0, 0, 2)}};
  };
  hold_equal(step, {h}, {xs}, {h, xs});
}

TEST_CASE("an op with two results, of which the step reads the second alone") {
  const Tensor h = random({3, 3}, 1), xs = random({4, 3, 3}, 2);
  const Tensor dominant = 4 * eye(3, DType::f64);
  const Step step = [&](const Tensors& s, const Tensors& x) {
    const Tensor size = slogdet(s[0] + dominant).log_abs, of_input = slogdet(x[0] + dominant).log_abs;
    return Next{{tanh(s[0] * sin(size) + x[0])}, {exp(size) * of_input}};
  };
  hold_equal(step, {h}, {xs}, {h, xs});
}

TEST_CASE("a scan inside the step of a scan") {
  const Tensor h = random({2, 3}, 1), W = random({3, 3}, 2, DType::f64, -0.5, 0.5), xs = random({3, 4, 2, 3}, 3);
  for (bool unrolled : {false, true}) {
    const Step inner = [&](const Tensors& s, const Tensors& x) {
      const Tensor next = tanh(matmul(s[0], W) + x[0]);
      return Next{{next}, {s[0] * x[0], next}};  // alone, the loop returns the saved states; in the other one, a copy
    };
    const Step outer = [&](const Tensors& s, const Tensors& x) {
      const ScanResult r = unrolled ? unroll(inner, {s[0]}, {x[0]}) : scan(inner, {s[0]}, {x[0]});
      return Next{{r.last[0]}, {sum(r.ys[0], {0}), sum(square(r.ys[1]), {0})}};
    };
    hold_equal(outer, {h}, {xs}, {h, W, xs});
  }
}

TEST_CASE("one step, no step, no inputs, only the last state") {
  const Tensor h = random({2, 3}, 1), W = random({3, 3}, 2);
  const Step step = [&](const Tensors& s, const Tensors& x) { return Next{{tanh(matmul(s[0], W) + x[0])}, {}}; };
  hold_equal(step, {h}, {random({1, 2, 3}, 3)}, {h, W});
  const Step free = [&](const Tensors& s, const Tensors&) { return Next{{tanh(matmul(s[0], W))}, {s[0]}}; };
  hold_equal(free, {h}, {}, {h, W}, {.reverse = false, .length = 4, .passes = {}});
  Tape tape;
  const ScanResult none = scan(step, {h}, {Tensor::zeros({0, 2, 3}, DType::f64)});
  CHECK(difference(none.last[0], h) == 0);
  const Tensor nothing = Tensor::zeros({0, 2, 3}, DType::f64);
  CHECK(scan(free, {h}, {nothing}).ys[0].shape() == Shape{0, 2, 3});
  CHECK(unroll(free, {h}, {nothing}).ys[0].shape() == Shape{0, 2, 3});
  const Step idle = [](const Tensors&, const Tensors&) { return Next{{}, {}}; };
  CHECK(scan(idle, {}, {}, {.length = 3}).ys.empty());
  const Step ones = [](const Tensors&, const Tensors&) { return Next{{}, {Tensor::full({2}, 1)}}; };
  CHECK(scan(ones, {}, {}, {.length = 3}).ys[0].values<float>() == std::vector<float>(6, 1));
  CHECK(difference(grad({sum(none.last[0])}, Tensors{h})[0], Tensor::full({2, 3}, 1, DType::f64)) == 0);
}

TEST_CASE("rows without elements, and a batch without rows") {
  for (const Shape& shape : {Shape{3, 0}, Shape{0, 3}}) {
    const Tensor h = Tensor::zeros(shape, DType::f64), b = random({shape[1]}, 2);
    const Step step = [&](const Tensors& s, const Tensors& x) { return Next{{tanh(s[0] * b + x[0])}, {s[0] + b}}; };
    hold_equal(step, {h}, {Tensor::zeros({4, shape[0], shape[1]}, DType::f64)}, {h, b});
  }
}

TEST_CASE("the passes do what they say") {
  Init init(3, DType::f64);
  const CellType& type = cell_type("srnn");
  const auto cell = type.make(20, 20, Settings("srnn", type.settings, {{"width", "20"}}), init);
  const Tensor xs = random({6, 2, 20}, 30);
  const auto body = [&](ScanPasses passes) {
    Tape tape;
    scan(*cell, cell->initial(2), xs, {.passes = passes});
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (std::string(tape.node(i).op->traits.name) == "scan") return tape.node(i).attrs.as<Scan>().loop().body;
    }
    return Program{};
  };
  // SRNN's whole beta network leaves the loop, where nothing is fused: what stays is the shift, one addition and the
  // ReLU.
  CHECK(body(ScanPasses::none()).nodes.size() > 8);
  const Program hoisted = body({.fuse = false});
  REQUIRE(hoisted.nodes.size() == 3);
  CHECK(std::string(hoisted.nodes[0].op->traits.name) == "roll");
  CHECK(std::string(hoisted.nodes[1].op->traits.name) == "add");
  CHECK(std::string(hoisted.nodes[2].op->traits.name) == "relu");

  // Sink: an LSTM's backward loop has the products that carry the gradient back, and none for the weights.
  const CellType& lstm = cell_type("lstm");
  const auto gates = lstm.make(20, 20, Settings("lstm", lstm.settings), init);
  const auto products_in_loops = [&](ScanPasses passes) {
    Tape tape;
    Tensors wrt;
    for (const Parameter& p : gates->parameters()) wrt.push_back(p.value);
    const Sequence out = scan(*gates, gates->initial(2), xs, {.passes = passes});
    grad({sum(out.hs)}, wrt, {.create_graph = true});
    int products = 0, loops = 0;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (std::string(tape.node(i).op->traits.name) != "scan" || ++loops != 2) continue;
      for (const Program::Node& n : tape.node(i).attrs.as<Scan>().loop().body.nodes)
        products += std::string(n.op->traits.name) == "matmul" ? 1 : 0;
    }
    return products;
  };
  CHECK(products_in_loops({}) == 4);
  CHECK(products_in_loops({.sink_reductions = false}) == 8);
  CHECK(products_in_loops({.hoist = false, .sink_reductions = false}) ==
        12);  // inputs' weights, too; products are not made again
  CHECK(products_in_loops(ScanPasses::none()) == 20);
}

TEST_CASE("errors of scan") {
  const Tensor h = random({2, 3}, 1), xs = random({4, 2, 3}, 2);
  const Step keep = [](const Tensors& s, const Tensors&) { return Next{s, {}}; };
  CHECK(contains(error_of([&] {
                   scan(keep, {h}, {xs, random({5, 2}, 1)});
                 }),
                 "[scan] the number of time steps is 4, but an x is f64 (5, 2)"));
  CHECK(contains(error_of([&] { scan(keep, {h}, {}); }), "length must say how many steps"));
  const Step narrow = [](const Tensors& s, const Tensors&) { return Next{{slice(s[0], 1, 0, 2)}, {}}; };
  const std::string shape = error_of([&] { scan(narrow, {h}, {xs}); });
  CHECK(contains(shape, "state 0 must keep its dtype and shape: it is f64 (2, 3), and f64 (2, 2) after the step"));
  CHECK(contains(shape, "tests/scan/scan_test.cpp:"));
  const Step drops = [](const Tensors&, const Tensors&) { return Next{}; };
  CHECK(contains(error_of([&] { scan(drops, {h}, {xs}); }),
                 "the step must return as many states as it is given: 1, got 0"));
  const Step looks = [](const Tensors& s, const Tensors&) {
    sum(s[0]).item();
    return Next{s, {}};
  };
  const std::string looked = error_of([&] { scan(looks, {h}, {xs}); });
  CHECK(contains(looked, "[item] this tensor has no value: it stands for one while a program is traced; got f64 ()"));
  CHECK(contains(looked, "tests/scan/scan_test.cpp:"));
}

TEST_CASE("a training step asks the system for no memory once it has run") {
  Init init(3);
  const CellType& type = cell_type("lstm");
  const auto cell = type.make(3, 32, Settings("lstm", type.settings), init);
  const Tensor xs = random({50, 4, 3}, 30, DType::f32);
  const auto step = [&] {
    Tensors wrt;
    for (const Parameter& p : cell->parameters()) wrt.push_back(p.value);
    Tape tape;
    grad({mean(scan(*cell, cell->initial(4), xs).hs)}, wrt);
  };
  step();
  const std::size_t calls = backend().memory().system_calls;
  for (int i = 0; i < 3; ++i) step();
  CHECK(backend().memory().system_calls == calls);
}

TEST_CASE("with checkpoints the peak of memory grows as the root of the number of steps") {
  Init init(3);
  const CellType& type = cell_type("lstm");
  const auto cell = type.make(2, 64, Settings("lstm", type.settings), init);
  Tensors wrt;
  for (const Parameter& p : cell->parameters()) wrt.push_back(p.value);
  const auto peak = [&](std::int64_t T, std::int64_t every) {  // of a step that reads the last state alone
    const Tensor xs = random({T, 8, 2}, 30, DType::f32);
    const std::size_t before = backend().memory().live_bytes;
    backend().reset_peak();
    {
      Tape tape;
      const Step step = [&](const Tensors& s, const Tensors& x) { return Next{cell->step(s, x[0]), {}}; };
      grad({sum(scan(step, cell->initial(8), {xs}, {.checkpoint_every = every}).last[0])}, wrt);
    }
    return static_cast<double>(backend().memory().peak_bytes - before);
  };
  const double all = peak(1600, 0), root = peak(1600, 40), longer = peak(6400, 80);
  MESSAGE(fmt::format("1600 steps: {:.1f} MB, with checkpoints {:.2f} MB; 6400 steps: {:.2f} MB", all / 1e6, root / 1e6,
                      longer / 1e6));
  CHECK(root < all / 10);
  CHECK(longer < 2.5 * root);  // four times the steps, twice the memory
}
