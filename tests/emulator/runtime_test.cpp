// What the backend makes of the runtime: calls that fail, and the waits of `cuda,sync`.
#include "backends/cuda/cuda.h"
#include "backends/cuda/linalg/matrix_kernels.h"
#include "ops/linalg.h"
#include "tests/emulator/device.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

struct Trained : Ran {
  std::size_t memory = 0;  // that step `at` needed
};
/// Steps whose states carry over: the third one is captured. Before step `at` (from 0) this call is made to fail.
Trained train(bool graphs, const char* failing = "", std::int64_t at = 2, int times = 1) {
  const Little task({.carried = true, .length = 40});
  Backend& gpu = backend("cuda");
  Model model(task.shape(), {.cell = "gru", .hidden = 16}, Init(3, DType::f32, gpu));
  Optimizer optimizer(model.trained(), usual_optimizer());
  TrainingStep steps(task, model, optimizer, graphs);
  Trained out;
  Tensors carry;
  for (std::int64_t i = 0; i < 8; ++i) {
    if (i == at) cuda_emulator::let_fail(failing, times);
    const auto first = static_cast<std::uint64_t>(3 * i);
    gpu.reset_peak();
    const std::size_t before = gpu.memory().live_bytes;
    const StepResult r = steps(task.batch(1, {first, first + 1, first + 2}), {1, i}, carry);
    out.numbers.insert(out.numbers.end(), {r.loss, r.norm});
    if (i == at) out.memory = gpu.memory().peak_bytes - before;
    if (const auto note = steps.note()) out.note += *note;
  }
  for (const Parameter& p : model.parameters()) out.parameters.push_back(elements(p.value));
  out.recorded = steps.recorded();
  return out;
}

}  // namespace

TEST_CASE("a graph that cannot be made or launched: the steps run kernel by kernel, with the same numbers") {
  const Trained plain = train(false), captured = train(true);
  CHECK(captured == plain);
  CHECK(captured.recorded == 1);
  for (const std::string call : {"cudaGraphInstantiate", "cudaGraphUpload"}) {
    const Trained made_late = train(true, call.c_str(), 2);  // when free blocks have gone back to the driver
    CHECK(made_late == plain);
    CHECK(made_late.recorded == 1);
    CHECK(made_late.note.empty());
    const Trained not_made = train(true, call.c_str(), 2, 2);
    CHECK(not_made == plain);
    CHECK(not_made.recorded == 0);
    CHECK(not_made.memory < plain.memory * 3 / 2);  // captured, the step had memory of its own, which it gave back
    CHECK(contains(not_made.note, call + ": "));
  }
  const Trained launched = train(true, "", 5), launched_late = train(true, "cudaGraphLaunch", 5);
  CHECK(launched_late == plain);
  CHECK(launched_late.memory == launched.memory);
  const Trained not_launched = train(true, "cudaGraphLaunch", 5, 2);
  CHECK(not_launched == plain);
  CHECK(not_launched.memory > launched.memory);
  CHECK(not_launched.recorded == 1);
  CHECK(not_launched.note.empty());
}

TEST_CASE("an error is told once: what runs behind it is not blamed") {
  Backend& gpu = backend("cuda");
  Tensor x = Tensor::full({3}, 2.0, DType::f32, gpu);
  CHECK(contains(error_of([] { cuda::check(cudaSetDevice(99), "cudaSetDevice"); }), "[cuda] cudaSetDevice: "));
  CHECK(error_of([&] { x = x + 1.0; }).empty());
  CHECK(x.values<float>() == std::vector<float>{3, 3, 3});
}

TEST_CASE("cuda,sync waits for each kernel, for large zeros and in linear algebra, too") {
  auto& gpu = dynamic_cast<cuda::Cuda&>(backend("cuda,sync"));
  const auto waiting = [&] { return cuda_emulator::waiting(gpu.stream_of_work()); };
  const Tensor zeros = Tensor::zeros({100'000}, DType::f32, gpu);
  CHECK(waiting() == 0);
  std::vector<std::int64_t> launched;
  const auto kernels = cuda::matrix_kernels(gpu.stream_of_work(), [&](std::int64_t n) { launched.push_back(n); });
  Tensor x = Tensor::full({2, 4, 4}, 1.0, DType::f32, gpu);
  kernels->keep_lower(DType::f32, x.data(), 2, 4);
  CHECK(launched == std::vector<std::int64_t>{32});
}
