// Steps that cannot be captured: they run kernel by kernel, with the same numbers, and hold no memory of steps.
#include <functional>
#include <memory>
#include <random>

#include "tests/support/recording_device.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("what is drawn without the number of the step is not captured, and says so") {
  using Draw = std::function<Tensor(const Tensor&, const StepContext&)>;
  class Noisy final : public Model {
   public:
    Noisy(const ModelShape& shape, Draw draw)
        : Model(shape, {.cell = "gru", .hidden = 8}, Init(3, DType::f32, RecordingDevice::get())),
          draw_(std::move(draw)) {}
    Tensor forward(const Batch& batch, const std::optional<StepContext>& training, Tensors* carry) const override {
      const Tensor y = (*this)(batch.x, training, carry);
      return training ? draw_(y, *training) : y;
    }

   private:
    Draw draw_;
  };
  const Little task({});
  const auto stopped = [&](const std::function<Draw()>& draw) {
    const auto run = [&](bool graphs) {
      Noisy model(task.shape(), draw());
      return train_a_little(task, model, graphs);
    };
    const Ran plain = run(false), graph = run(true);
    CHECK(plain == graph);
    CHECK(graph.recorded == 0);
    CHECK(graph.note == "its random numbers would be the same at each step");
  };
  const auto step_of = [](const StepContext& at) { return static_cast<std::uint64_t>(at.step); };
  stopped(
      [&] { return [&](const Tensor& y, const StepContext& at) { return dropout(y, 0.5, at.seed, step_of(at)); }; });
  stopped([&] {
    return [&](const Tensor& y, const StepContext& at) {
      return index_select(y, 0, permutation(y.dim(0), at.seed, step_of(at), y.backend()));
    };
  });
  stopped([] {  // nothing is taken from the generator in vain
    return [numbers = std::make_shared<std::mt19937>(5)](const Tensor& y, const StepContext&) {
      return index_select(y, 0, numpy_permutation(y.dim(0), *numbers, y.backend()));
    };
  });
}

TEST_CASE("a capture that fails leaves no memory of captured steps") {
  RecordingDevice& device = RecordingDevice::get();
  class Late final : public Little {  // from the fourth call on what no graph can have
   public:
    using Little::Little;
    Tensor loss(const Tensor& outputs, const Batch& b) const override {
      const Tensor error = Little::loss(outputs, b);
      return ++calls_ > 3 ? error * (1 + 0 * error.item()) : error;
    }

   private:
    mutable int calls_ = 0;
  };
  struct Use {
    std::size_t after, most;
  };
  const auto uses = [&](bool graphs) {  // of each step
    const Late task({.lengths = 2, .length = 40});
    Model model(task.shape(), {.cell = "lstm", .hidden = 16}, Init(3, DType::f32, device));
    Optimizer optimizer(model.trained(), usual_optimizer());
    TrainingStep steps(task, model, optimizer, graphs);
    std::vector<Use> out;
    for (const std::uint64_t first :
         {0, 0, 0, 3, 3, 3}) {  // one length is captured; the capture of the other one fails
      const Batch batch = task.batch(1, {first, first + 1, first + 2});
      Tensors carry;
      device.reset_peak();
      steps(batch, {1, 0}, carry);
      carry.clear();
      out.push_back({device.memory().live_bytes, device.memory().peak_bytes});
      CHECK(steps.note().has_value() == (graphs && out.size() == 5));
      CHECK(steps.recorded() == (graphs && out.size() > 1 && out.size() < 5 ? 1 : 0));
    }
    return out;
  };
  const std::vector<Use> plain = uses(false), graph = uses(true);
  CHECK(graph[3].after > 2 * plain[3].after);
  CHECK(graph[4].after == plain[4].after);
  CHECK(graph[5].most == plain[5].most);
}
