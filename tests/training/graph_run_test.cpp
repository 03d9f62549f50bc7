// Whole runs with steps that are captured, updates included: to the last bit what they leave kernel by kernel.
#include <cmath>

#include "ops/linalg.h"
#include "tasks/app/train.h"
#include "tests/support/recording_device.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

/// What a run leaves: its rows without the seconds, the parameters and the optimiser's values.
struct Left {
  std::vector<RunFolder::Row> rows;
  std::vector<std::vector<std::complex<double>>> parameters;
  std::int64_t updates = 0;
  std::string error;
  bool operator==(const Left&) const = default;
};

/// The batch of the stream `bad` has a weight of 0.
class ZeroWeight : public Little {
 public:
  ZeroWeight(const TaskOptions& o, std::uint64_t bad) : Little(o), bad_(bad) {}
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    Batch b = Little::batch(seed, streams);
    for (const std::uint64_t s : streams) {
      if (s == bad_) b.weight.data_as<float>()[0] = 0;
    }
    return b;
  }

 private:
  std::uint64_t bad_;
};
/// Where a weight is 0, the root's slope times the weight is not a number, but the loss is one.
class Kinked final : public ZeroWeight {
 public:
  explicit Kinked(std::uint64_t bad) : ZeroWeight({.weights = true}, bad) {}
  Tensor loss(const Tensor& outputs, const Batch& b) const override {
    return Little::loss(outputs, b) + mean(sqrt(square(outputs) * b.weight));
  }
};
/// Divides its outputs by the first two weights, as a triangle.
class Divided final : public Model {
 public:
  using Model::Model;
  Tensor forward(const Batch& batch, const std::optional<StepContext>& training, Tensors* carry) const override {
    const Tensor y = (*this)(batch.x, training, carry), weights = slice(reshape(batch.weight, {-1}), 0, 0, 2);
    const Tensor triangle = (weights + 0.1 * sign(weights)) * eye(2, DType::f32, device());
    return reshape(transpose(triangular_solve(triangle, transpose(reshape(y, {-1, 2})))), {y.dim(0), y.dim(1), 2});
  }
};

struct RunOptions {
  OptimizerOptions optimizer = usual_optimizer();
  ScheduleOptions schedule;
  std::vector<std::int64_t> until = {12};  // each goes on where the one before it ended
  bool divided = false;
};

Left whole_run(const Task& task, const ModelOptions& m, bool graphs, const RunOptions& run = RunOptions()) {
  const TempDir dir;
  RunFolder folder = RunFolder::create(dir / "run", "little", m.cell);
  Left left;
  for (const std::int64_t steps : run.until) {
    const Init init(3, DType::f32, RecordingDevice::get());
    const auto made =
        run.divided ? std::make_unique<Divided>(task.shape(), m, init) : std::make_unique<Model>(task.shape(), m, init);
    Model& model = *made;
    Optimizer optimizer(model.trained(), run.optimizer);
    TrainOptions options;
    options.steps = steps;
    options.valid_every = 2;
    options.quiet = true;
    options.graphs = graphs;
    options.schedule = run.schedule;
    options.examples.batch = 3;
    options.examples.valid_size = 7;  // and a smaller batch at the end
    left.error = error_of([&] { train(task, model, optimizer, folder, options); });
    left.error = left.error.substr(0, left.error.find(';'));  // without the folder
    left.parameters.clear();
    for (const Parameter& p : model.parameters()) left.parameters.push_back(elements(p.value));
    for (const auto& [name, state] : optimizer.state()) left.parameters.push_back(elements(state));
    left.updates = optimizer.steps();
  }
  left.rows = folder.rows();
  for (RunFolder::Row& row : left.rows) row.seconds = 0;
  return left;
}

}  // namespace

TEST_CASE("whole runs, with validations between the steps and states carried on: the same rows and parameters") {
  for (const std::string cell : {"srnn", "lstm", "goru", "full_urnn", "lt_rnn", "scornn", "dtriv"}) {
    CAPTURE(cell);
    const ModelOptions m{.cell = cell, .hidden = 8};
    for (const TaskOptions& o : {TaskOptions{}, TaskOptions{.weights = true, .scaled = true, .carried = true},
                                 TaskOptions{.symbols = true, .every_step = false, .lengths = 2}}) {
      const Left plain = whole_run(Little(o), m, false), graph = whole_run(Little(o), m, true);
      CHECK(plain.error.empty());
      CHECK(plain.rows.size() == 6);
      CHECK(plain.updates == 12);
      CHECK(plain == graph);
    }
  }
}

TEST_CASE("every optimiser, clipped by norm, by value or not, with rates that change, at once or resumed") {
  const Little task({.carried = true});
  const ModelOptions m{.cell = "lstm", .hidden = 8, .layers = 2, .dropout = 0.3};
  for (const std::string& kind : OptimizerOptions::kinds()) {
    CAPTURE(kind);
    for (const double clip_norm : {0.0, 0.05, 1e3}) {
      RunOptions run;
      run.optimizer.kind = kind;
      run.optimizer.lr = 1e-2;
      run.optimizer.momentum = 0.9;
      run.optimizer.clip_norm = clip_norm;
      run.optimizer.clip_value = clip_norm > 0 ? 0 : 0.01;
      run.optimizer.group_lr = {{"head", 1e-3}};
      run.schedule = {.kind = "step", .every = 3, .factor = 0.7};
      const Left plain = whole_run(task, m, false, run), graph = whole_run(task, m, true, run);
      CHECK(plain.error.empty());
      CHECK(plain == graph);
      run.until = {6, 12};
      CHECK(whole_run(task, m, true, run) == plain);
      run.until = {12};
      run.optimizer.clip_norm = run.optimizer.clip_value = 0;
      CHECK((whole_run(task, m, true, run).parameters == plain.parameters) == (clip_norm == 1e3));
    }
  }
}

TEST_CASE("rates that follow the validations") {
  const Little task({});
  RunOptions run;
  run.optimizer.lr = 0.5;  // too high: some validations are worse than those before
  for (const std::string kind : {"plateau", "window"}) {
    run.schedule = {.kind = kind, .factor = 0.1, .patience = 1, .after = 0};
    const Left plain = whole_run(task, {.cell = "gru", .hidden = 8}, false, run);
    CHECK(plain == whole_run(task, {.cell = "gru", .hidden = 8}, true, run));
    RunOptions constant = run;
    constant.schedule = {};
    CHECK(plain.parameters != whole_run(task, {.cell = "gru", .hidden = 8}, true, constant).parameters);
  }
}

TEST_CASE("a loss or a gradient that is not a number is told at its step, and nothing is updated by it") {
  constexpr std::int64_t stream = 3 * 7 + 1;
  const Little no_loss({.bad = stream});
  const Kinked no_gradient(stream);
  for (const Task* task : std::initializer_list<const Task*>{&no_loss, &no_gradient}) {
    const ModelOptions m{.cell = "lstm", .hidden = 8};
    const Left plain = whole_run(*task, m, false), graph = whole_run(*task, m, true);
    CHECK(contains(plain.error,
                   task == &no_loss ? "the loss became NaN at step 8" : "the gradient norm became NaN at step 8"));
    CHECK(plain.updates == 7);
    CHECK(plain == graph);
    RunOptions before;
    before.until = {7};
    CHECK(whole_run(*task, m, true, before).parameters == graph.parameters);
  }
}

TEST_CASE("what is noted on the way is told as it is kernel by kernel, and nothing is updated by it") {
  for (const bool carried : {false, true}) {
    const ZeroWeight task({.weights = true, .carried = carried}, 3 * 7 + 1);
    const ModelOptions m{.cell = "lstm", .hidden = 8};
    RunOptions run;
    run.divided = true;
    const Left plain = whole_run(task, m, false, run), graph = whole_run(task, m, true, run);
    CHECK(contains(plain.error, "[triangular_solve]"));
    CHECK(contains(plain.error, "is singular: element 0 of its diagonal is 0"));
    CHECK(plain.updates == 7);
    CHECK(plain == graph);
  }
}

TEST_CASE("after a step that came to nothing the next ones go on from the states and parameters as they were") {
  for (const std::string cell : {"lstm", "ornn"}) {  // the gradient of the second notes what it meets on the way
    CAPTURE(cell);
    for (const bool carried : {false, true}) {
      for (const int step : {0, 1, 7, 8}) {  // run, captured, run again
        const Little task({.carried = carried, .chain = 5, .bad = 3 * step + 1});
        const auto run = [&](bool graphs) {
          return train_a_little(task, {.cell = cell, .hidden = 8}, graphs, RecordingDevice::get(), 16);
        };
        Ran plain = run(false), graph = run(true);
        for (Ran* ran : {&plain, &graph}) {
          double& loss = ran->numbers[static_cast<std::size_t>(2 * step)];
          CHECK(std::isnan(loss));
          loss = 0;
        }
        CHECK(plain == graph);
        CHECK(graph.recorded == (carried ? 2 : 1));
      }
    }
  }
}
