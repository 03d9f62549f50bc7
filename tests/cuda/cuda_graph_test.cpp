// Training steps as CUDA graphs: to the last bit what they are kernel by kernel. Needs a GPU; says that it is skipped
// where there is none.
#include <array>
#include <cmath>
#include <random>

#include "ops/linalg.h"
#include "ops/spectral.h"
#include "tasks/training/device.h"
#include "tests/support/gpu.h"
#include "tests/support/recording_device.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

Backend* gpu() {
  static Backend* const found = gpu_or_skip("cuda");
  return found;
}

void same(const TaskOptions& o, const ModelOptions& m) {
  const Little task(o);
  const Ran plain = train_a_little(task, m, false, *gpu()), graph = train_a_little(task, m, true, *gpu()),
            wanted = train_a_little(task, m, true, RecordingDevice::get());
  CHECK(plain.numbers == graph.numbers);
  CHECK(plain.parameters == graph.parameters);
  CHECK_MESSAGE(graph.recorded == wanted.recorded, graph.note << "; on the test's own device: " << wanted.note);
}

}  // namespace

TEST_CASE("every cell: steps as graphs are what they are kernel by kernel, and are captured where the tables say") {
  if (!gpu()) return;
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    same({}, {.cell = type.name, .hidden = 16});
    same({.symbols = true, .weights = true, .scaled = true, .carried = true}, {.cell = type.name, .hidden = 16});
  }
}

TEST_CASE("several lengths, the last step alone, checkpoints over time, dropout") {
  if (!gpu()) return;
  for (const std::string cell : {"srnn", "lstm", "goru"}) {
    CAPTURE(cell);
    same({.lengths = 2}, {.cell = cell, .hidden = 16});
    same({.every_step = false}, {.cell = cell, .hidden = 16, .layers = 2});
    ModelOptions often{.cell = cell, .hidden = 16};
    often.checkpoint_every = 2;
    same({.carried = true}, often);
    same({}, {.cell = cell, .hidden = 16, .layers = 2, .dropout = 0.5});
  }
}

TEST_CASE("whole steps of every optimiser, clipped or not") {
  if (!gpu()) return;
  const Little task({.weights = true});
  const auto run = [&](const OptimizerOptions& o, bool graphs) {
    Model model(task.shape(), {.cell = "full_urnn", .hidden = 16, .layers = 2}, Init(3, DType::f32, *gpu()));
    return train_a_little(task, model, graphs, 8, 3, o);
  };
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    for (const double clip : {0.0, 0.1}) {
      OptimizerOptions o;
      o.kind = kind, o.lr = 1e-2, o.momentum = 0.9, o.clip_norm = clip, o.clip_value = clip / 5, o.weight_decay = clip;
      const Ran plain = run(o, false), graph = run(o, true);
      CHECK(plain == graph);
      CHECK(graph.recorded == 1);
    }
  }
}

TEST_CASE("every optimiser: many parameters after three steps on the GPU are the CPU's, within its rounding") {
  if (!gpu()) return;
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    OptimizerOptions options;
    options.kind = kind, options.clip_norm = 1, options.clip_value = 0.05, options.weight_decay = 0.1;
    const auto after = [&](Backend& device) {
      std::vector<Parameter> parameters;
      Tensors gradients, values;
      for (std::uint64_t i = 0; i < 120; ++i) {  // more than one launch takes
        const DType dtype = std::array{DType::f32, DType::f64, DType::c64, DType::c128}[i % 4];
        const Shape shape{i == 5 ? 0 : i == 10 ? 40000 : static_cast<std::int64_t>(37 * i)};
        values.push_back(on(random(shape, i, dtype), device));
        parameters.push_back({fmt::format("p{}", i), values.back(), ""});
        gradients.push_back(on(random(shape, 1000 + i, dtype), device));
      }
      Optimizer optimizer(parameters, options);
      for (int t = 0; t < 3; ++t) optimizer.step(gradients, optimizer.norm(gradients), 0.5);
      for (Tensor& x : values) x = on(x, backend("cpu"));
      return values;
    };
    const Tensors wanted = after(backend("cpu")), got = after(*gpu());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(difference(got[i], wanted[i]) <= (real_of(wanted[i].dtype()) == DType::f32 ? 1e-6 : 1e-14));
  }
}

TEST_CASE("a learning rate that is set between steps holds for captured ones, too") {
  if (!gpu()) return;
  const Little task({});
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    const auto run = [&](bool graphs) {
      Model model(task.shape(), {.cell = "lstm", .hidden = 16}, Init(3, DType::f32, *gpu()));
      OptimizerOptions options;
      options.kind = kind;
      Optimizer optimizer(model.trained(), options);
      TrainingStep steps(task, model, optimizer, graphs);
      std::vector<double> losses;
      for (std::int64_t i = 0; i < 6; ++i) {
        if (i > 2) optimizer.set_lr(i == 5 ? 0 : 0.01 * static_cast<double>(i));
        Tensors carry;
        losses.push_back(steps(task.batch(1, {0, 1, 2}), {1, i}, carry).loss);
      }
      return losses;
    };
    CHECK(run(true) == run(false));
  }
}

TEST_CASE("a batch in parts: captured passes are the plain ones, and the update is the whole batch's") {
  if (!gpu()) return;
  const Little task({});
  const auto run = [&](bool graphs, std::size_t parts) {
    Model model(task.shape(), {.cell = "gru", .hidden = 16}, Init(3, DType::f32, *gpu()));
    Optimizer optimizer(model.trained(), usual_optimizer());
    TrainingStep steps(task, model, optimizer, graphs);
    Ran out;
    Tensors carry;
    for (std::int64_t i = 0; i < 5; ++i) {
      const Batch whole = task.batch(1, {0, 1, 2, 3});
      // equal parts, so that their mean is the whole's gradient
      const std::vector<Batch> all(parts, whole);
      const StepResult r = steps(whole, {1, i}, carry, 1, all);
      carry.clear();
      out.numbers.insert(out.numbers.end(), {r.loss, r.norm});
    }
    for (const Parameter& p : model.parameters()) out.parameters.push_back(elements(p.value));
    out.recorded = steps.recorded();
    return out;
  };
  const Ran plain = run(false, 2), graph = run(true, 2), whole = run(false, 0);
  CHECK(plain == graph);
  CHECK(graph.recorded == 1);
  for (std::size_t i = 0; i < whole.numbers.size(); ++i)
    CHECK(plain.numbers[i] == doctest::Approx(whole.numbers[i]).epsilon(1e-5));
}

TEST_CASE("a graph that runs asks for no memory") {
  if (!gpu()) return;
  const Little task({.symbols = true, .weights = true});
  Model model(task.shape(), {.cell = "lstm", .hidden = 16}, Init(3, DType::f32, *gpu()));
  Optimizer optimizer(model.trained(), usual_optimizer());
  TrainingStep steps(task, model, optimizer, true);
  Tensors carry;
  for (std::uint64_t i = 0; i < 8; ++i) {
    carry.clear();
    const MemoryUse before = gpu()->memory();
    steps(task.batch(1, {3 * i, 3 * i + 1, 3 * i + 2}), {1, 0}, carry);
    if (i < 2) continue;
    CHECK(gpu()->memory().live_bytes == before.live_bytes);
    CHECK(gpu()->memory().system_calls == before.system_calls);
  }
  CHECK(steps.recorded() == 1);
}

TEST_CASE("a step of very many kernels is no graph, and the device goes on") {
  if (!gpu()) return;
  Tensor x = Tensor::full({3}, 2.0, DType::f32, *gpu());
  {
    const auto graph = gpu()->capture();
    const auto fill_often = [&] {
      for (int i = 0; i <= 200'000; ++i) gpu()->fill({DType::f32, 3, 1.0, x.data()});
    };
    CHECK_THROWS_AS(fill_often(), NotCapturable);
  }
  CHECK(x.values<float>() == std::vector<float>{2, 2, 2});
}

TEST_CASE("a singular triangle in a graph is told with the next reading") {
  if (!gpu()) return;
  const auto triangle = [](double last) { return Tensor::from<double>({2, 0, 1, last}, {2, 2}, *gpu()); };
  Tensor a = triangle(4);
  const Tensor b = Tensor::from<double>({1, 2}, {2, 1}, *gpu());
  const std::vector<double> wanted = triangular_solve(a, b).values<double>();
  const auto graph = gpu()->capture();
  const Tensor x = triangular_solve(a, b);
  graph->stop();
  graph->replay();
  CHECK(x.values<double>() == wanted);
  a.assign(triangle(0));
  graph->replay();
  CHECK(contains(error_of([&] { x.values<double>(); }), "[triangular_solve] a matrix is singular, or not finite"));
  a.assign(triangle(4));
  graph->replay();
  CHECK(x.values<double>() == wanted);
}

TEST_CASE("a kernel of the CPU in a graph: the numbers of each replay, and its error with the next reading") {
  if (!gpu()) return;
  const auto matrix = [](double last) { return Tensor::from<double>({2, 0, 1, last}, {2, 2}, *gpu()); };
  Tensor a = matrix(4);
  const auto graph = gpu()->capture();
  const Tensor radius = spectral_radius(a);
  graph->stop();
  for (const double last : {4.0, -7.0, 1.0}) {
    a.assign(matrix(last));
    graph->replay();
    CHECK(radius.item() == doctest::Approx(std::max(2.0, std::abs(last))));
  }
  a.assign(matrix(NAN));
  graph->replay();
  const std::string error = error_of([&] { radius.item(); });
  CHECK(contains(error, "[spectral_radius]"));
  CHECK(contains(error, "the call came before this read"));
  CHECK(std::isnan(radius.item()));
  a.assign(matrix(4));
  graph->replay();
  CHECK(radius.item() == doctest::Approx(4));
}

TEST_CASE("a warning of a kernel of the CPU in a graph comes with the next reading") {
  if (!gpu()) return;
  const auto matrix = [](double last) { return Tensor::from<double>({2, 0, 0, last}, {2, 2}, *gpu()); };
  Tensor a = matrix(1);
  const auto graph = gpu()->capture();
  const Tensor radius = spectral_radius(a);
  graph->stop();
  const auto warned = [&](double last) {
    a.assign(matrix(last));
    graph->replay();
    const int before = warnings("spectral_radius");
    CHECK(radius.item() == 2);
    return warnings("spectral_radius") - before;
  };
  CHECK(warned(1) == 0);
  CHECK(warned(2) == 1);
  CHECK(warned(1) == 0);
}

TEST_CASE("no permutation is drawn in a graph") {
  if (!gpu()) return;
  std::mt19937 numbers(5);
  const auto graph = gpu()->capture();
  CHECK_THROWS_AS(permutation(8, 1, 2, *gpu()), NotCapturable);
  CHECK_THROWS_AS(numpy_permutation(8, numbers, *gpu()), NotCapturable);
  CHECK(numbers == std::mt19937(5));
}

TEST_CASE("a singular matrix in a graph is told with the next reading") {
  if (!gpu()) return;
  const auto matrix = [](double last) { return Tensor::from<double>({2, 1, 2, last}, {2, 2}, *gpu()); };
  Tensor a = matrix(4);
  const Tensor b = Tensor::from<double>({1, 2}, {2, 1}, *gpu());
  const std::vector<double> wanted = solve(a, b).values<double>();
  const auto graph = gpu()->capture();
  const Tensor x = solve(a, b);
  graph->stop();
  graph->replay();
  CHECK(x.values<double>() == wanted);
  a.assign(matrix(1));
  graph->replay();
  CHECK(contains(error_of([&] { x.values<double>(); }), "[solve] a matrix is singular, or not finite"));
  a.assign(matrix(4));
  graph->replay();
  CHECK(x.values<double>() == wanted);
}

TEST_CASE("a bad index in a graph is told with the reading of the loss, and nothing is updated by it") {
  if (!gpu()) return;
  const Little task({.symbols = true});
  Model model(task.shape(), {.cell = "gru", .hidden = 16}, Init(3, DType::f32, *gpu()));
  Optimizer optimizer(model.trained(), usual_optimizer());
  TrainingStep steps(task, model, optimizer, true);
  Tensors carry;
  for (std::uint64_t i = 0; i < 3; ++i) {
    carry.clear();
    steps(task.batch(1, {3 * i, 3 * i + 1, 3 * i + 2}), {1, 0}, carry);
  }
  Batch bad = task.batch(1, {9, 10, 11});
  bad.x.data_as<std::int32_t>()[4] = 77;
  carry.clear();
  const auto parameters = [&] {
    std::vector<std::vector<std::complex<double>>> all;
    for (const Parameter& p : model.parameters()) all.push_back(elements(p.value));
    return all;
  };
  const auto before = parameters();
  CHECK(contains(error_of([&] { steps(bad, {1, 0}, carry); }), "index 77 at place 4 is not in 0..3"));
  CHECK(parameters() == before);
  carry.clear();
  CHECK(error_of([&] { steps(task.batch(1, {12, 13, 14}), {1, 0}, carry); }).empty());
}
