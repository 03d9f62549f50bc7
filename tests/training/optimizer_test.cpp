// Optimisers against PyTorch and NumPy (tests/support/golden), clipping, groups, schedules, and that updates allocate
// nothing.
#include "tasks/training/optimizer.h"

#include <cstdlib>
#include <new>

#include "tasks/training/safetensors.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {
std::size_t allocations = 0;
}

// Every allocation of this program goes through here and is counted.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

Tensor copy(const Tensor& x) {
  Tensor out = Tensor::empty(x.spec());
  out.assign(x);
  return out;
}

TensorFile golden() { return load_safetensors(REEL_SOURCE_DIR "/tests/golden/optimizers.safetensors", backend()); }

}  // namespace

TEST_CASE("each optimiser takes the steps that PyTorch or NumPy takes") {
  const TensorFile file = golden();
  OptimizerOptions base;
  base.lr = 0.01;
  const auto with = [&](auto&& set) {
    OptimizerOptions o = base;
    set(o);
    return o;
  };
  const std::vector<std::pair<std::string, OptimizerOptions>> cases{
      {"sgd", with([](auto& o) { o.kind = "sgd"; })},
      {"sgd_momentum", with([](auto& o) { o.kind = "sgd", o.momentum = 0.9; })},
      {"rmsprop_torch", with([](auto& o) { o.decay = 0.9; })},
      {"rmsprop_tf", with([](auto& o) { o.rms_start = 1, o.epsilon_inside = true, o.epsilon = 1e-10; })},
      {"rmsprop_theano", with([](auto& o) { o.rms_start = 1e-3, o.epsilon = 0; })},
      {"adam", with([](auto& o) { o.kind = "adam"; })},
      {"adam_b0", with([](auto& o) { o.kind = "adam", o.beta1 = 0; })},
      {"amsgrad", with([](auto& o) { o.kind = "amsgrad"; })},
      {"adagrad", with([](auto& o) { o.kind = "adagrad", o.epsilon = 1e-10; })},
      {"adagrad", with([](auto& o) { o.kind = "adagrad", o.epsilon = 1e-10, o.rms_start = 1; })},  // rmsprop's alone
      {"adam", with([](auto& o) { o.kind = "adam", o.rms_start = 1; })},
      {"sgd_l2", with([](auto& o) { o.kind = "sgd", o.momentum = 0.9, o.weight_decay = 0.03; })},
      {"rmsprop_l2", with([](auto& o) { o.weight_decay = 0.03; })},
      {"adam_l2", with([](auto& o) { o.kind = "adam", o.weight_decay = 0.03; })},
      {"amsgrad_l2", with([](auto& o) { o.kind = "amsgrad", o.weight_decay = 0.03; })},
      {"adagrad_l2", with([](auto& o) { o.kind = "adagrad", o.epsilon = 1e-10, o.weight_decay = 0.03; })},
      {"adamw", with([](auto& o) { o.kind = "adamw", o.weight_decay = 0.03; })},
      {"adam", with([](auto& o) { o.kind = "adamw"; })},
  };
  for (const auto& [name, options] : cases) {
    CAPTURE(name);
    const Tensor p = copy(file.at("p0"));
    Optimizer optimizer({{"p", p, ""}}, options);
    for (std::int64_t t = 0; t < 12; ++t) {
      const Tensors g{file.at("g").at(t)};
      optimizer.step(g, optimizer.norm(g));
      CHECK(difference(p, file.at(name + ".p").at(t)) < 1e-12);
    }
  }
}

TEST_CASE("epsilon stands beside or under the root") {
  for (bool inside : {false, true}) {
    OptimizerOptions options;
    options.lr = 1, options.decay = 0, options.epsilon = 0.25, options.epsilon_inside = inside;
    const Tensor p = Tensor::full({1}, 0, DType::f64);
    Optimizer optimizer({{"p", p, ""}}, options);
    optimizer.step({Tensor::full({1}, 2, DType::f64)}, 2);
    CHECK(p.item() == doctest::Approx(inside ? -2 / std::sqrt(4.25) : -2 / 2.25));
  }
}

TEST_CASE("clipping by the norm of all gradients, and by value") {
  const TensorFile file = golden();
  const Tensor g = file.at("g").at(0), a = Tensor::zeros({20}, DType::f64), b = Tensor::zeros({17}, DType::f64);
  OptimizerOptions options;
  options.kind = "sgd", options.lr = 1, options.clip_norm = 0.5;
  Optimizer optimizer({{"a", a, ""}, {"b", b, ""}}, options);
  const Tensors parts{slice(g, 0, 0, 20), slice(g, 0, 20, 37)};
  const double norm = optimizer.norm(parts);
  CHECK(norm == doctest::Approx(file.at("clip.norm").item()).epsilon(1e-13));
  optimizer.step(parts, norm);
  CHECK(difference(concat({a, b}, 0), -file.at("clip.g")) < 1e-13);

  options.clip_norm = 0, options.clip_value = 0.1;
  const Tensor c = Tensor::zeros({37}, DType::f64);
  Optimizer by_value({{"c", c, ""}}, options);
  by_value.step({g}, norm);
  CHECK(difference(c, -maximum(minimum(g, Tensor::full({}, 0.1, DType::f64)), Tensor::full({}, -0.1, DType::f64))) ==
        0);
}

TEST_CASE("another learning rate is that of the groups without one of their own") {
  const Tensor a = Tensor::zeros({1}, DType::f64), b = Tensor::zeros({1}, DType::f64);
  OptimizerOptions options;
  options.kind = "sgd", options.lr = 1, options.group_lr = {{"slow", 0.25}};
  Optimizer optimizer({{"a", a, ""}, {"b", b, "slow"}}, options);
  optimizer.set_lr(0.5);
  const Tensor one = Tensor::full({1}, 1, DType::f64);
  optimizer.step({one, one}, std::sqrt(2));
  CHECK(a.item() == -0.5);
  CHECK(b.item() == -0.25);
}

TEST_CASE("the norm of all gradients counts every dtype, both parts of complex ones") {
  const auto two = [](DType dtype) { return Tensor::full({}, {3, is_complex(dtype) ? 4.0 : 0.0}, dtype); };
  CHECK(JointNorm()({two(DType::c128)}) == 5);
  CHECK(JointNorm()({two(DType::c64)}) == 5);
  CHECK(JointNorm()({two(DType::f32), two(DType::c128), two(DType::f64), two(DType::c64)}) == std::sqrt(68));
}

TEST_CASE("parameters of all dtypes together take the steps that each takes alone") {
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    OptimizerOptions options;
    options.kind = kind, options.clip_norm = 1.5, options.clip_value = 0.3;
    std::vector<Parameter> together, alone;
    Tensors gradients;
    std::vector<Optimizer> each;
    for (const DType dtype : {DType::f32, DType::c128, DType::f64, DType::c64, DType::f32}) {
      for (const Shape& shape : {Shape{7, 5}, Shape{}, Shape{0}, Shape{130}}) {
        const auto seed = gradients.size();
        together.push_back({fmt::format("p{}", seed), random(shape, seed, dtype), ""});
        alone.push_back({"p", copy(together.back().value), ""});
        each.push_back(Optimizer({alone.back()}, options));
        gradients.push_back(random(shape, 100 + seed, dtype));
      }
    }
    Optimizer optimizer(together, options);
    for (int t = 0; t < 3; ++t) {
      const double norm = optimizer.norm(gradients);
      optimizer.step(gradients, norm, 0.5);
      for (std::size_t i = 0; i < each.size(); ++i) each[i].step({gradients[i]}, norm, 0.5);
    }
    for (std::size_t i = 0; i < together.size(); ++i) CHECK(elements(together[i].value) == elements(alone[i].value));
  }
}

TEST_CASE("a complex parameter takes the steps of its two parts") {
  using C = std::complex<double>;
  for (const std::string& kind : OptimizerOptions::kinds()) {
    for (const double start : {0.0, 1.0}) {
      for (const double limit : {0.0, 0.4}) {
        CAPTURE(kind);
        CAPTURE(start);
        CAPTURE(limit);
        OptimizerOptions options;
        options.kind = kind, options.rms_start = start, options.lr = 0.1;
        options.clip_value = limit, options.momentum = 0.5;
        const Tensor z = Tensor::from<C>({C(1, 2), C(-3, 0.5)}, {2}),
                     parts = Tensor::from<double>({1, 2, -3, 0.5}, {4});
        Optimizer whole({{"z", z, ""}}, options), apart({{"parts", parts, ""}}, options);
        for (int t = 1; t <= 3; ++t) {
          whole.step({Tensor::from<C>({C(0.1, 0.7 * t), C(-2, 3)}, {2})}, 1);
          apart.step({Tensor::from<double>({0.1, 0.7 * t, -2, 3}, {4})}, 1);
        }
        const auto x = z.values<C>();
        CHECK(parts.values<double>() == std::vector{x[0].real(), x[0].imag(), x[1].real(), x[1].imag()});
      }
    }
  }
}

TEST_CASE("without an epsilon, what has no gradient stays as it is, from the first step on and for ever") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::string& kind : OptimizerOptions::kinds()) {
      CAPTURE(kind);
      OptimizerOptions options;
      options.kind = kind, options.epsilon = 0, options.decay = 0.5, options.rms_start = 1e-3;
      const Tensor p = Tensor::full({11}, 0.5, dtype), g = cast(arange(11) < 9.0, dtype);
      Optimizer optimizer({{"p", p, ""}}, options);
      for (int t = 0; t < 1200; ++t) optimizer.step({g}, 3);  // the squares fall below what f64 has
      const auto x = elements(p);
      CHECK(x[0].real() < 0.5);
      CHECK(x[8] == x[0]);
      CHECK((x[9] == 0.5 && x[10] == 0.5));
    }
  }
}

TEST_CASE("groups have their own rates") {
  OptimizerOptions options;
  options.kind = "sgd", options.lr = 1, options.group_lr = {{"head", 0.5}};
  const Tensor a = Tensor::zeros({2}), b = Tensor::zeros({2}), g = Tensor::full({2}, 1);
  Optimizer optimizer({{"a", a, "cell"}, {"b", b, "head"}}, options);
  optimizer.step({g, g}, 2, 0.5);  // and all rates a common factor
  CHECK(a.values<float>()[0] == -0.5F);
  CHECK(b.values<float>()[0] == -0.25F);
  options.group_lr = {{"tail", 1}};
  CHECK(contains(error_of([&] { Optimizer({{"a", a, ""}}, options); }), "no parameter is in group \"tail\""));
  CHECK(error_of([&] {
          Optimizer({{"c", a, ""}, {"b", b, "head"}, {"a", a, "cell"}, {"d", b, "head"}}, options);
        }) == "group-lr: no parameter is in group \"tail\"; the groups are cell, head");
}

TEST_CASE("an update changes parameters in place, on their version, without allocating") {
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    OptimizerOptions options;
    options.kind = kind, options.clip_norm = 1;
    Tensor p = random({37, 5}, 1, DType::f32);
    const Tensors g{random({37, 5}, 2, DType::f32)};
    Optimizer optimizer({{"p", p, ""}}, options);
    optimizer.step(g, optimizer.norm(g));
    const std::size_t before = allocations, system = backend().memory().system_calls,
                      live = backend().memory().live_bytes;
    for (int i = 0; i < 5; ++i) optimizer.step(g, optimizer.norm(g));
    CHECK(allocations == before);
    CHECK(backend().memory().system_calls == system);
    CHECK(backend().memory().live_bytes == live);
    CHECK(p.version() == 6);
  }
}

TEST_CASE("threads divide the elements of a large parameter, and change no bit") {
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    OptimizerOptions options;
    options.kind = kind;
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      backend().set_threads(threads);
      Tensor p = random({70001}, 1, DType::f32);
      Optimizer optimizer({{"p", p, ""}}, options);
      for (std::uint64_t i = 2; i < 5; ++i) optimizer.step({random({70001}, i, DType::f32)}, 1);
      results.push_back(p.values<float>());
    }
    backend().set_threads(1);
    CHECK(results[1] == results[0]);
    CHECK(results[2] == results[0]);
  }
}

TEST_CASE("weight decay: of what clipping leaves, at the rate of the step; a parameter on a manifold has none") {
  for (const std::string kind : {"sgd", "adamw"}) {
    CAPTURE(kind);
    OptimizerOptions options;
    options.kind = kind, options.lr = 0.5, options.weight_decay = 0.1, options.clip_value = 0.25, options.epsilon = 0;
    const Tensor p = Tensor::full({}, 4, DType::f64);
    Parameter round{"round", Tensor::full({}, 1, DType::f64), ""};
    round.retract = [](Tensor, const Tensor&, double) {};
    Optimizer optimizer({{"p", p, ""}, round}, options);
    optimizer.step({Tensor::full({}, 3, DType::f64), Tensor::full({}, 3, DType::f64)}, 5, 0.5);
    // sgd: 4 - 0.25 (0.25 + 0.4); adamw: 4 (1 - 0.025) - 0.25, as the first step of Adam is the rate
    CHECK(p.item() == doctest::Approx(kind == "sgd" ? 3.8375 : 3.65).epsilon(1e-14));
    CHECK(round.value.item() == 1);
  }
}

TEST_CASE("warm-up and falling schedules have PyTorch's factors") {
  const TensorFile file = golden();
  const ScheduleOptions warm{.kind = "constant", .every = 20, .factor = 0.5, .warmup = 12, .floor = 0.1, .steps = 60};
  const auto with = [&](const std::string& kind, std::int64_t warmup) {
    ScheduleOptions o = warm;
    o.kind = kind, o.warmup = warmup;
    return o;
  };
  const std::vector<std::pair<std::string, ScheduleOptions>> cases{
      {"cosine", with("cosine", 0)},       {"linear", with("linear", 0)},   {"cosine_warm", with("cosine", 12)},
      {"linear_warm", with("linear", 12)}, {"step_warm", with("step", 12)}, {"constant_warm", warm}};
  for (const auto& [name, options] : cases) {
    CAPTURE(name);
    const Schedule schedule(options);
    const auto expected = file.at("schedule." + name).values<double>();
    for (std::int64_t t = 0; t < 60; ++t)
      CHECK(schedule.factor(t) == doctest::Approx(expected[static_cast<std::size_t>(t)]).epsilon(1e-13));
  }
  CHECK(Schedule(with("cosine", 12)).factor(60) == doctest::Approx(0.1));
  CHECK(Schedule(with("linear", 12)).factor(1000) == doctest::Approx(0.1));
  Schedule plateau(with("plateau", 4));
  for (int i = 0; i < 4; ++i) plateau.validated(1);
  CHECK(plateau.factor(1) == 0.25);
  CHECK(plateau.factor(4) == 0.5);
}

TEST_CASE("schedules") {
  Schedule constant({});
  CHECK(constant.factor(12345) == 1);
  Schedule step({.kind = "step", .every = 10, .factor = 0.5});
  CHECK(step.factor(9) == 1);
  CHECK(step.factor(10) == 0.5);
  CHECK(step.factor(25) == 0.25);
  Schedule plateau({.kind = "plateau", .factor = 0.1, .patience = 2});
  for (double loss : {3.0, 2.0, 2.5, 2.1}) plateau.validated(loss);  // two without a better one
  CHECK(plateau.factor(0) == doctest::Approx(0.1));
  Schedule tied({.kind = "plateau", .factor = 0.1, .patience = 2});
  for (int i = 0; i < 3; ++i) tied.validated(2.0);  // as good as the best is not better
  CHECK(tied.factor(0) == doctest::Approx(0.1));
  Schedule copy({.kind = "plateau", .factor = 0.1, .patience = 2});
  copy.restore(plateau.state());
  for (double loss : {2.2, 2.3}) copy.validated(loss), plateau.validated(loss);
  CHECK(copy.factor(0) == plateau.factor(0));
  CHECK(copy.factor(0) == doctest::Approx(0.01));
  Schedule window({.kind = "window", .factor = 0.1, .patience = 3, .after = 4});
  for (double loss : {3.0, 4.0, 2.0, 5.0}) window.validated(loss);  // too early
  CHECK(window.factor(0) == 1);
  for (double loss : {4.5, 4.0}) window.validated(loss);  // not worse than 5, which is among the last three
  CHECK(window.factor(0) == 1);
  Schedule later({.kind = "window", .factor = 0.1, .patience = 3, .after = 4});
  later.restore(window.state());
  for (Schedule* s : {&window, &later}) {
    s->validated(4.9);  // 5, 4.5, 4 before
    CHECK(s->factor(0) == 1);
    s->validated(4.95);  // 4.5, 4, 4.9
    CHECK(s->factor(0) == doctest::Approx(0.1));
  }
  CHECK_FALSE(copy.restore("gone"));
}

TEST_CASE("options out of range, and gradients that are not those of the parameters, are refused") {
  const auto make = [](const OptimizerOptions& options) {
    return Optimizer({{.name = "W", .value = Tensor::zeros({4, 2})}, {.name = "b", .value = Tensor::zeros({3})}},
                     options);
  };
  const auto said = [&](const OptimizerOptions& options) { return error_of([&] { make(options); }); };
  CHECK(said({.kind = "Adam"}) == "kind: \"Adam\" is not one of sgd, rmsprop, adam, adamw, amsgrad, adagrad");
  CHECK(said({.lr = -1}) == "lr: a finite number of 0 or more is needed, got -1");
  CHECK(said({.lr = NAN}) == "lr: a finite number of 0 or more is needed, got nan");
  CHECK(said({.beta1 = 2}) == "beta1: 0 to 0.999999 is needed, got 2");
  CHECK(said({.clip_norm = -1}) == "clip_norm: a finite number of 0 or more is needed, got -1");
  Optimizer optimizer = make({.kind = "sgd", .lr = 1});
  const auto step = [&](const Tensors& gradients) { return error_of([&] { optimizer.step(gradients, 1); }); };
  const Tensor W = Tensor::zeros({4, 2}), b = Tensor::zeros({3});
  CHECK(step({W, b}).empty());
  CHECK(step({b, W}) == "[optimizer] W is f32 (4, 2), its gradient f32 (3,)");
  CHECK(step({Tensor::zeros({4, 2}, DType::f64), b}) == "[optimizer] W is f32 (4, 2), its gradient f64 (4, 2)");
  CHECK(error_of([&] { optimizer.set_lr(-1); }) == "lr: a finite number of 0 or more is needed, got -1");
  CHECK(step({W, Tensor()}) == "[optimizer] the gradient of b is undefined");
}

TEST_CASE("schedules out of range are refused") {
  const auto said = [](const ScheduleOptions& options) { return error_of([&] { Schedule{options}; }); };
  CHECK(said({.kind = "consine"}).starts_with("schedule: \"consine\" is not one of constant, step, cosine"));
  CHECK(said({.kind = "step", .every = 0}) == "every: 1 or more is needed, got 0");
  CHECK(said({.kind = "plateau", .patience = 0}) == "patience: 1 or more is needed, got 0");
  CHECK(said({.kind = "cosine", .floor = 2}) == "floor: 0 to 1 is needed, got 2");
}
