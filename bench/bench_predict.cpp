// What a row costs that a trained model answers: reel::Predictor::next with 16 inputs, in microseconds. `user` is the
// CPU's time, which other programs disturb less.
//   build/bin/bench_predict [--cells lstm,gru,srnn] [--hidden 32,128] [--rows 100000]
#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "backends/cpu/threads/denormals.h"
#include "bench/clock.h"
#include "tasks/app/run.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/predictor.h"

namespace reel {
namespace {

constexpr std::int64_t inputs = 16;

double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(const std::string& folder, const std::string& cell, std::int64_t hidden, std::int64_t rows) {
  const ModelConfig config{"bench", {.inputs = inputs, .outputs = 1}, {.cell = cell, .hidden = hidden}, DType::f32};
  const Model model(config.shape, config.options, Init(1, config.dtype));
  save_model_config(folder + "/model.json", config);
  save_best(folder + "/best.safetensors", model, {1, 0});
  Predictor predictor(folder);
  std::vector<double> row(inputs), times;
  double sum = 0;
  for (std::int64_t t = 0; t < 1000; ++t) sum += predictor.next(row)[0];
  times.reserve(static_cast<std::size_t>(rows));
  const double start = cpu_seconds();
  for (std::int64_t t = 0; t < rows; ++t) {
    row[static_cast<std::size_t>(t % inputs)] = static_cast<double>(t % 7) / 7;
    times.push_back(bench::seconds([&] { sum += predictor.next(row)[0]; }));
  }
  const double user = (cpu_seconds() - start) / static_cast<double>(rows);
  print_out("{:<10} {:>6} {:>9.2f} {:>9.2f}  (sum of outputs {:.6g})\n", cell, hidden, 1e6 * bench::median(times),
            1e6 * user, sum);
}

int bench_predict(int argc, char** argv) {
  std::string cells = "lstm,gru,srnn", hidden = "32,128";
  std::int64_t rows = 100000;
  Options options("bench_predict", "Microseconds a row of Predictor::next.");
  options.list("cells", cells, cell_names(), "cells, comma-separated", "Options");
  options.list("hidden", hidden, Bounds{.low = 1, .high = most::units}, "units", "Options");
  options.add("rows", rows, "rows to measure", "Options", Bounds{.low = 1, .high = 1e9});
  options.parse(argc, argv);
  flush_denormals(true);
  backend().set_threads(1);
  const std::string folder = std::filesystem::temp_directory_path() / fmt::format("reel-bench-predict-{}", getpid());
  std::filesystem::create_directory(folder);
  print_out("{:<10} {:>6} {:>9} {:>9}\n", "cell", "units", "p50 us", "user us");
  for (const std::string& cell : split_list(cells))
    for (const std::string& n : split_list(hidden)) measure(folder, cell, std::stoll(n), rows);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("bench_predict", [&] { return reel::bench_predict(argc, argv); });
}
