// Training steps captured once and run again: to the last bit what they are kernel by kernel, on a device that does
// as a GPU does but needs none.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "tasks/io/files.h"
#include "tasks/training/device.h"
#include "tests/support/cells.h"
#include "tests/support/recording_device.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

Model model_for(const Task& task, const ModelOptions& options) {
  return Model(task.shape(), options, Init(3, DType::f32, RecordingDevice::get()));
}
Ran train_a_little(const Task& task, const ModelOptions& options, bool graphs, std::int64_t count = 8,
                   DType dtype = DType::f32) {
  return train_a_little(task, options, graphs, RecordingDevice::get(), count, 3, dtype);
}

/// "`solve`" of "[solve] its result is checked on the host".
std::string stopped_by(const std::string& note) {
  return note[0] == '[' ? fmt::format("`{}`", note.substr(1, note.find(']') - 1)) : "a value that the host looks at";
}

}  // namespace

namespace {

/// "Captured: `a`, `b`." in lines of the documentation's length.
std::string list_of(const std::vector<std::string>& names) {
  std::string text = "Captured:", line = text;
  for (const std::string& name : names) {
    const std::string word = fmt::format("`{}`{}", name, name == names.back() ? "." : ",");
    const bool fits = line.size() + 1 + word.size() <= 120;
    text += (fits ? " " : "\n") + word;
    line = fits ? line + " " + word : word;
  }
  return text;
}

}  // namespace

TEST_CASE("every cell, with every choice of its settings: the same numbers to the last bit, captured or not") {
  std::vector<std::string> names;
  std::map<std::string, std::string> stopped;  // by what is named in the documentation
  for (const CellType& type : cell_registry()) {
    std::string usual;
    const auto check = [&](const std::map<std::string, std::string>& settings) {
      const Little task({.symbols = settings.empty()});
      const ModelOptions options{.cell = type.name, .hidden = 8, .settings = settings};
      const Ran plain = train_a_little(task, options, false, 4), graph = train_a_little(task, options, true, 4);
      CHECK(plain == graph);
      CHECK(plain.recorded == 0);
      CHECK(graph.recorded == (graph.note.empty() ? 1 : 0));
      return graph.note.empty() ? "" : stopped_by(graph.note);
    };
    CAPTURE(type.name);
    usual = check({});
    const bool listed = needs_row(type, "docs/cuda.md");
    if (listed && usual.empty()) names.push_back(type.name);
    if (listed && !usual.empty()) stopped[fmt::format("`{}`", type.name)] = usual;
    for (const Setting& s : type.settings) {
      for (const std::string& choice : s.choices) {
        CAPTURE(s.name);
        CAPTURE(choice);
        if (choice == s.fallback) continue;
        try {
          const std::string here = check({{s.name, choice}});
          if (listed && here != usual)
            stopped[fmt::format("`{}` with `{} = {}`", type.name, s.name, choice)] = here.empty() ? "nothing" : here;
        } catch (const SettingError&) {  // a choice for other sizes
        }
      }
    }
  }
  std::string wanted = list_of(names) + "\n\n| cell | what stops it |\n|---|---|\n";
  for (const auto& [cell, op] : stopped) wanted += fmt::format("| {} | {} |\n", cell, op);
  if (const std::string page = REEL_SOURCE_DIR "/docs/cuda.md"; std::filesystem::exists(page))
    CHECK_MESSAGE(contains(read_file(page), wanted), "docs/cuda.md is to say:\n" << wanted);
  else
    MESSAGE("docs/cuda.md is not here");
}

TEST_CASE("every cell over several lengths, layers and states that are carried on") {
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    const Little task({.weights = true, .scaled = true, .carried = true, .lengths = 2});
    const ModelOptions options{.cell = type.name, .hidden = 8, .layers = 2};
    const Ran plain = train_a_little(task, options, false, 12), graph = train_a_little(task, options, true, 12);
    CHECK(plain == graph);
    // two lengths, with states and without, where there are such
    CHECK(graph.recorded == (!graph.note.empty() ? 0 : type.name == "r_transformer" ? 2 : 4));
  }
}

TEST_CASE("kinds of steps: weights, scales, symbols, the last step alone, precisions, checkpoints over time") {
  const auto same = [](const TaskOptions& o, const ModelOptions& m, int recorded, DType dtype = DType::f32) {
    const Little task(o);
    const Ran plain = train_a_little(task, m, false, 12, dtype), graph = train_a_little(task, m, true, 12, dtype);
    CHECK(plain == graph);
    CHECK(graph.recorded == recorded);
  };
  const ModelOptions lstm{.cell = "lstm", .hidden = 8}, srnn{.cell = "srnn", .hidden = 8};
  for (const ModelOptions& m : {lstm, srnn}) {
    CAPTURE(m.cell);
    same({.weights = true}, m, 1);
    same({.scaled = true}, m, 1);
    same({.symbols = true, .weights = true, .scaled = true}, m, 1);
    same({.every_step = false}, m, 1);
    same({.scaled = true}, m, 1, DType::f64);
    same({.lengths = 6}, m, 4);  // four kinds are captured, the others run kernel by kernel
  }
  ModelOptions often = lstm;
  often.checkpoint_every = 2;
  same({.carried = true}, often, 2);
  ModelOptions one_hot = srnn;
  one_hot.input = "one-hot";
  same({.symbols = true}, one_hot, 1);
}

TEST_CASE("a step that runs again: one launch, one reading, nothing allocated, the update included") {
  RecordingDevice& device = RecordingDevice::get();
  const Little task({.weights = true, .scaled = true, .carried = true});
  Model model = model_for(task, {.cell = "lstm", .hidden = 8});
  Optimizer optimizer(model.trained(), usual_optimizer());
  TrainingStep steps(task, model, optimizer, true);
  Tensors carry;
  const auto step = [&](std::uint64_t first) {
    const std::vector<std::uint64_t> streams{first, first + 1, first + 2};
    steps(task.batch(1, streams), {1, 0}, carry);
  };
  for (std::uint64_t i = 0; i < 4; ++i) step(3 * i);  // without states, then with: plain, captured, run again
  REQUIRE(steps.recorded() == 1);
  CHECK(steps.kernels() > 20);
  for (std::uint64_t i = 4; i < 8; ++i) {
    const std::size_t allocations = device.allocations, reads = device.reads, kernels = device.kernels,
                      replays = device.replays;
    const MemoryUse before = device.memory();
    step(3 * i);
    CHECK(device.allocations == allocations);
    CHECK(device.memory().live_bytes == before.live_bytes);
    CHECK(device.memory().system_calls == before.system_calls);
    CHECK(device.replays == replays + 1);
    CHECK(device.reads == reads + 1);
    CHECK(device.kernels == kernels);
  }
}

TEST_CASE("a cell whose step changes after an update is captured anew") {
  const Little task({});
  const auto run = [&](bool graphs) {
    Model model = model_for(task, {.cell = "enrnn", .hidden = 8});
    const auto parameter = [&](const std::string& name) {
      for (const Parameter& p : model.parameters()) {
        if (p.name == "cell." + name) return p.value;
      }
      throw std::logic_error("no parameter cell." + name);
    };
    Tensor T = parameter("T");
    Optimizer optimizer(model.trained(), usual_optimizer());
    TrainingStep steps(task, model, optimizer, graphs);
    std::vector<double> losses;
    std::vector<int> captured;
    for (std::uint64_t i = 0; i < 10; ++i) {
      if (i == 5) T.assign(eye(T.dim(0), T.dtype(), T.backend()) * 3.0);  // the next update takes note
      Tensors carry;
      losses.push_back(
          steps(task.batch(1, {3 * i, 3 * i + 1, 3 * i + 2}), {1, static_cast<std::int64_t>(i)}, carry).loss);
      captured.push_back(steps.recorded());
      CHECK(parameter("grown").item() == (i < 5 ? 0 : 1));
    }
    CHECK(captured == (graphs ? std::vector{0, 1, 1, 1, 1, 1, 0, 1, 1, 1} : std::vector<int>(10)));
    return losses;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("learning rates that are set between steps hold for captured ones, too") {
  const Little task({});
  const auto run = [&](bool graphs) {
    Model model = model_for(task, {.cell = "enrnn", .hidden = 8});
    OptimizerOptions options = usual_optimizer();
    options.group_lr = {{"orthogonal", 2e-2}};
    Optimizer optimizer(model.trained(), options);
    TrainingStep steps(task, model, optimizer, graphs);
    std::vector<double> losses;
    for (std::int64_t i = 0; i < 8; ++i) {
      if (i > 2) optimizer.set_lr(i < 6 ? 0.1 / static_cast<double>(i) : 0);
      Tensors carry;
      losses.push_back(steps(task.batch(1, {0, 1, 2}), {1, i}, carry).loss);
    }
    CHECK(steps.recorded() == (graphs ? 1 : 0));
    return losses;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("memory of a graph goes back with it, also when it was given up") {
  RecordingDevice& device = RecordingDevice::get();
  const Little task({});
  const std::size_t before = device.memory().live_bytes;
  train_a_little(task, {.cell = "gru", .hidden = 8}, true);
  CHECK(device.memory().live_bytes == before);
  const Ran stopped = train_a_little(task, {.cell = "exprnn", .hidden = 8}, true);
  CHECK_FALSE(stopped.note.empty());
  CHECK(device.memory().live_bytes == before);
}

TEST_CASE("losses that tasks train on, and what they take of the outputs, are captured") {
  RecordingDevice& device = RecordingDevice::get();
  const Tensor outputs = on(random({5, 3, 4}, 1, DType::f32), device), y = on(integers({5, 3}, 0, 4, 1, 2), device),
               numbers = on(random({5, 3, 4}, 2, DType::f32, 0, 1), device),
               weight = on(random({5, 3}, 3, DType::f32, 0, 1), device),
               places = on(Tensor::from<std::int32_t>({3, 7, 14}, {3}), device);
  const std::vector<std::function<Tensor()>> losses{
      [&] { return cross_entropy(outputs, y); },
      [&] { return cross_entropy(outputs, y, {.weight = weight}); },
      [&] { return cross_entropy(slice(outputs, 0, 2, 5), slice(y, 0, 2, 5)); },
      [&] {
        return cross_entropy(embedding(places, reshape(outputs, {-1, 4})), at(y, 1));
      },
      [&] { return mse(outputs, numbers); },
      [&] { return sum(mean(square(outputs - numbers), {-1}) * weight) / sum(weight); },
      [&] {
        const Tensor keys = binary_cross_entropy_with_logits(outputs, numbers, {.reduction = LossReduction::none});
        return sum(sum(keys, {-1}) * weight) / sum(weight);
      }};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    const auto value_and_gradient = [&] {
      const Tape tape;
      const Tensor l = losses[i]();
      return Tensors{l, grad({l}, Tensors{outputs})[0]};
    };
    const Tensors wanted = value_and_gradient();
    const auto graph = device.capture();
    const Tensors got = value_and_gradient();
    graph->stop();
    graph->replay();
    for (std::size_t k = 0; k < 2; ++k) CHECK(elements(got[k]) == elements(wanted[k]));
  }
}

TEST_CASE("a pool holds on to what it freed, even when there is no more: a graph writes there") {
  int left = 2;
  CachingAllocator all([&](std::size_t bytes) { return left-- > 0 ? std::malloc(bytes) : nullptr; },
                       [](void* block, std::size_t) { std::free(block); });
  auto pool = make_pool(all);
  void* const block = pool->allocate(1000);
  REQUIRE(block);
  pool->release(block, 1000);
  void* const large = pool->allocate(100000);
  CHECK(large);
  CHECK(pool->allocate(200000) == nullptr);
  CHECK(all.allocate(1000) == nullptr);
  CHECK(pool->allocate(1000) == block);
  CHECK(all.use().live_bytes > 101000);
  pool->release(block, 1000);
  pool->release(large, 100000);
  pool.reset();
  CHECK(all.use().live_bytes == 0);
  CHECK(all.allocate(1000) == block);  // back where it came from
  all.release(block, 1000);
}

TEST_CASE("dropout: each step has the random numbers of its number, captured or not") {
  for (const TaskOptions& o : {TaskOptions{}, TaskOptions{.scaled = true, .carried = true, .lengths = 2}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Little task(o);
      const ModelOptions options{.cell = "gru", .hidden = 8, .layers = 3, .dropout = 0.5};
      const Ran plain = train_a_little(task, options, false, 12, dtype),
                graph = train_a_little(task, options, true, 12, dtype);
      CHECK(plain == graph);
      CHECK(graph.recorded == (o.carried ? 4 : 1));
      if (o.carried) continue;  // the other cell has no states
      ModelOptions inside{.cell = "r_transformer", .hidden = 8, .layers = 2};
      const Ran without = train_a_little(task, inside, false, 12, dtype);
      inside.settings = {{"dropout", "0.5"}};
      const Ran with = train_a_little(task, inside, false, 12, dtype);
      CHECK(with == train_a_little(task, inside, true, 12, dtype));
      CHECK_FALSE(with == without);
    }
  }
}

TEST_CASE("the number of a step changes what drops out, also where it is read on the device") {
  RecordingDevice& device = RecordingDevice::get();
  const Tensor x = Tensor::full({100}, 1, DType::f32, device);
  Tensor offset = Tensor::full({}, 7, DType::f64, device);
  const auto graph = device.capture();
  const Tensor y = dropout(x, 0.5, 3, std::uint64_t{4} << 60, offset);
  graph->stop();
  for (const double number : {7.0, 8.0, 0.0, 0x1p52}) {
    device.write(offset.data(), &number, sizeof number);
    graph->replay();
    const std::uint64_t stream = (std::uint64_t{4} << 60) + static_cast<std::uint64_t>(number);
    CHECK(elements(y) == elements(dropout(x, 0.5, 3, stream)));
    CHECK(elements(y) != elements(dropout(x, 0.5, 3, stream + 1)));
  }
}

TEST_CASE("a device that cannot capture runs kernel by kernel, and says nothing") {
  const Little task({});
  Model model(task.shape(), {.cell = "gru", .hidden = 8}, Init(3, DType::f32, backend("cpu")));
  Optimizer optimizer(model.trained(), usual_optimizer());
  TrainingStep steps(task, model, optimizer, true);
  Tensors carry;
  for (std::uint64_t i = 0; i < 4; ++i) steps(task.batch(1, {i, i + 1}), {1, 0}, carry);
  CHECK(steps.recorded() == 0);
  CHECK_FALSE(steps.note());
}
