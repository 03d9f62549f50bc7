// How fast does each cell train, and how far is that from what the machine could do? Milliseconds of a whole training
// step (forward, gradient, RMSProp) on a fixed batch, beside a bound from the same run: the products at the fastest
// rate of one alone and the elementwise functions at their rate in registers, or, if that is longer, the memory traffic
// at the bandwidth of a triad. work.h and arithmetic.h say what is counted. On another device (--device) the rates are
// those of a large product and of a copy there, and steps are captured and run as graphs where it can, as in training;
// --no-graph has them kernel by kernel.
//   build/bin/bench_cells [--cells lstm,srnn/width=32] [--shapes 220x20x128] [--threads 1,2] [--budget 2] [--json FILE]
#include <fmt/ranges.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/cpu/threads/denormals.h"
#include "bench/arithmetic.h"
#include "bench/rates.h"
#include "bench/work.h"
#include "engine/core/parse.h"
#include "tasks/app/options.h"
#include "tasks/app/output_file.h"
#include "tasks/app/run.h"
#include "tasks/io/files.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/training_step.h"

namespace reel::bench {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// Steps, batch and units, and the task whose inputs and loss it has: copying (symbols in, cross entropy at every
/// step), adding (two numbers in, squared error at the end), pixels (one of 256 greys in, ten classes at the end) or
/// frames (as many numbers in as there are units, cross entropy at every step).
struct Row {
  std::int64_t T = 0, B = 0, n = 0;
  std::string task;
  std::string str() const { return fmt::format("{}x{}x{}", T, B, n); }
};

Row parse_row(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':'), sizes = split(parts.empty() ? "" : parts[0], 'x');
  std::vector<std::int64_t> numbers;
  for (const std::string& s : sizes) {
    if (const auto number = parse<std::int64_t>(s); number && *number > 0 && *number <= 1'000'000)
      numbers.push_back(*number);
  }
  Row row;
  if (numbers.size() == 3 && sizes.size() == 3) {
    row = {numbers[0], numbers[1], numbers[2], parts.size() > 1 ? parts[1] : ""};
    if (parts.size() == 1) row.task = row.T == 750 ? "adding" : row.T == 784 ? "pixels" : "copying";
  }
  if (row.task != "copying" && row.task != "adding" && row.task != "pixels" && row.task != "frames")
    throw Usage(
        fmt::format("--shapes: \"{}\" is not of the form TxBxn, or TxBxn:copying, :adding, :pixels or :frames, with "
                    "numbers of 1 to 1000000",
                    text));
  return row;
}

/// "srnn/width=32": a cell with settings.
ModelOptions parse_cell(const std::string& text) {
  const std::vector<std::string> parts = split(text, '/');
  ModelOptions options;
  options.cell = parts.empty() ? "" : parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string::npos)
      throw Usage(fmt::format("--cells: \"{}\" is not of the form cell/setting=value", text));
    options.settings[parts[i].substr(0, equals)] = parts[i].substr(equals + 1);
  }
  return options;
}

void check_cell(const std::string& text) {
  const ModelOptions options = parse_cell(text);
  try {
    const Settings settings(options.cell, cell_type(options.cell).settings, options.settings);
  } catch (const SettingError& e) {
    throw Usage(fmt::format("--cells \"{}\": {}", text, e.setting == "cell" ? e.rule : e.what()));
  }
}

/// A row's task, with one batch.
class RowTask final : public Task {
 public:
  explicit RowTask(const Row& row) : row_(row) {
    const auto symbols = [&](const Shape& shape, std::uint64_t stream, double count = 10) {
      return cast(floor(uniform(shape, 0, count, 1, stream)), DType::i32);
    };
    const auto [T, B, n, task] = row;
    const bool every_step = shape().every_step;
    batch_.x = task == "copying"  ? symbols({T, B}, 1)
               : task == "pixels" ? symbols({T, B}, 1, greys)
                                  : uniform({T, B, shape().inputs}, 0, 1, 1, 1);
    batch_.y = task == "adding" ? uniform({B, 1}, 0, 2, 1, 2) : symbols(every_step ? Shape{T, B} : Shape{B}, 2);
  }
  std::string name() const override { return row_.task; }
  ModelShape shape() const override {
    if (row_.task == "adding") return {.inputs = 2, .outputs = 1, .every_step = false};
    if (row_.task == "pixels") {
      const Tensor levels = arange(greys, DType::f32) / (greys - 1.0);
      return {.inputs = 1, .outputs = 10, .every_step = false, .levels = reshape(levels, {greys, 1})};
    }
    if (row_.task == "frames") return {.inputs = row_.n, .outputs = 10};
    return {.vocabulary = 10, .outputs = 10};
  }
  double baseline() const override { return 0; }
  Batch batch(std::uint64_t, const std::vector<std::uint64_t>&) const override { return batch_; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    return row_.task == "adding" ? mse(outputs, batch.y) : cross_entropy(outputs, batch.y);
  }

 private:
  static constexpr std::int64_t greys = 256;
  Row row_;
  Batch batch_;
};

/// A model, a batch, and what the training loop does with them.
class Training {
 public:
  Training(const Row& row, ModelOptions options, bool graphs)
      : task_(row),
        model_(task_.shape(), with_units(std::move(options), row.n), Init(1)),
        optimizer_(model_.trained(), small_rate()),
        steps_(task_, model_, optimizer_, graphs),
        batch_(task_.batch(0, {})) {}

  void step() {
    Tensors carry;
    const StepResult result = steps_(batch_, {1, 0}, carry);
    if (!std::isfinite(result.loss)) throw Error("bench_cells", "the loss is not finite");
  }
  const Model& model() const { return model_; }
  const Tensor& x() const { return batch_.x; }
  /// Kernels of the step's graph; 0: it runs kernel by kernel.
  std::size_t kernels() const { return steps_.kernels(); }
  /// Why it does so, where the device could have a graph; told once.
  std::string note() { return steps_.note().value_or(""); }

 private:
  /// So small that the numbers stay as they are, however long it runs.
  static OptimizerOptions small_rate() {
    OptimizerOptions options;
    options.lr = 1e-5;
    return options;
  }
  static ModelOptions with_units(ModelOptions options, std::int64_t n) {
    options.hidden = n;
    return options;
  }
  RowTask task_;
  Model model_;
  Optimizer optimizer_;
  TrainingStep steps_;
  Batch batch_;
};

/// The machine's rates for a row, the best with so many threads or fewer; each is measured once.
class Bound {
 public:
  /// Seconds that the work takes at least; `arithmetic` are those of elementwise functions on one thread.
  double operator()(const Work& work, double arithmetic, const Row& row, int threads) {
    const std::int64_t all = std::min<std::int64_t>(row.T * row.B, 2048);
    const double products =
        work.serial_flops / gemm(row.B, row.n, threads) + work.parallel_flops / gemm(all, row.n, threads);
    const double bandwidth = on_cpu() ? best("triad", threads, triad_rate)
                                      : best("copy", 1, [](int) { return copy_rate(Tensor::zeros({1 << 26})); });
    return std::max(products + arithmetic / threads, work.bytes / bandwidth);
  }
  const std::map<std::string, double>& rates() const { return rates_; }

 private:
  double gemm(std::int64_t rows, std::int64_t n, int threads) {
    if (!on_cpu()) rows = n = 4096;  // kernels of loops are faster than the products of a step, each by itself
    return best(fmt::format("gemm {}x{}x{}", rows, n, n), threads, [&](int t) {
      return on_cpu() ? std::max(gemm_rate(rows, n, t), own_gemm_rate(rows, n, t)) : matmul_rate(rows, n);
    });
  }
  template <class F>
  double best(const std::string& name, int threads, F measure) {
    double rate = 0;
    for (int t = 1; t <= threads; ++t) {
      const std::string place = on_cpu() ? std::to_string(t) : backend().name();
      const auto [entry, fresh] = rates_.try_emplace(fmt::format("{} on {}", name, place));
      if (fresh) entry->second = measure(t);
      rate = std::max(rate, entry->second);
    }
    return rate;
  }
  std::map<std::string, double> rates_;
};

/// Medians of a step for each number of threads, in seconds. They take turns, so that a busy machine slows all alike.
std::map<int, std::vector<double>> measure(Training& training, const std::vector<int>& threads, double budget) {
  std::map<int, std::vector<double>> times;
  const auto run = [&](int t) {
    backend().set_threads(t);
    return device_seconds([&] { training.step(); });
  };
  // Warm up. On a device the first step compiles kernels, and the second one is captured.
  for (int i = 0; i < (on_cpu() ? 1 : 3); ++i) {
    for (int t : threads) run(t);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  while (times[threads[0]].size() < 3 || spent() < budget) {
    for (int t : threads) times[t].push_back(run(t));
  }
  return times;
}

double physical_memory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

class Report {
 public:
  /// `graphs`: as Steps takes it.
  explicit Report(bool graphs) : graphs_(graphs) {
    print_out("device {}\n", backend().name());
    print_out("{:<22} {:<13} {:>7} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9}{}\n", "cell", "shape", "threads", "ms",
              "bound ms", "share", "speed-up", "saved MB", "peak MB", on_cpu() ? "" : "  of kernels");
  }

  void row(const std::string& cell, const Row& row, const std::vector<int>& threads, double budget) {
    const ModelOptions options = parse_cell(cell);
    Training training(row, options, graphs_);
    const Work work = work_of(training.model(), training.x());
    const double arithmetic = on_cpu() ? arithmetic_of(training.model(), training.x()) : 0;
    if (on_cpu() && 2 * work.values_bytes > 0.6 * physical_memory()) {  // gradients are as large as values
      print_out("{:<22} {:<13} left out: it needs {:.0f} GB\n", cell, row.str(), 2 * work.values_bytes / 1e9);
      return;
    }
    backend().reset_peak();
    auto times = measure(training, threads, budget);
    const double peak = static_cast<double>(backend().memory().peak_bytes) / 1e6;
    const std::string note = training.note();
    const std::string kernels = training.kernels() > 0 ? fmt::format("  graph of {}", training.kernels())
                                : note.empty()         ? ""
                                                       : "  no graph: " + note;
    for (int t : threads) {
      const double time = median(times[t]), bound = bound_(work, arithmetic, row, t);
      const double gain = times.contains(1) && t != 1 ? median(times[1]) / time : 0;
      print_out("{:<22} {:<13} {:>7} {:>9.2f} {:>9.2f} {:>4.0f} % {:>9} {:>9.1f} {:>9.1f}{}\n", cell, row.str(), t,
                1e3 * time, 1e3 * bound, 100 * bound / time, gain > 0 ? fmt::format("{:.2f}", gain) : "",
                work.saved_bytes / 1e6, peak, kernels);
      flush_out();
      rows_.push_back({{"system", "reel"},
                       {"cell", cell},
                       {"shape", row.str()},
                       {"task", row.task},
                       {"threads", t},
                       {"ms", 1e3 * time},
                       {"bound_ms", 1e3 * bound},
                       {"arithmetic_ms", 1e3 * arithmetic / t},
                       {"share", bound / time},
                       {"speed_up", gain > 0 ? nlohmann::ordered_json(gain) : nullptr},
                       {"repetitions", times[t].size()},
                       {"graph", training.kernels()},
                       {"serial_gflop", work.serial_flops / 1e9},
                       {"parallel_gflop", work.parallel_flops / 1e9},
                       {"moved_mb", work.bytes / 1e6},
                       {"saved_mb", work.saved_bytes / 1e6},
                       {"peak_mb", peak}});
    }
  }

  void rates() const {
    print_out("\nmeasured in this run:\n");
    for (const auto& [name, rate] : bound_.rates())
      print_out("  {:<28} {:7.1f} {}\n", name, rate / 1e9, name.starts_with("gemm") ? "GFLOP/s" : "GB/s");
  }
  std::string json() const {
    const nlohmann::ordered_json all{
        {"compiler", "GCC " __VERSION__},
        {"device", backend().name()},
        {"openblas", openblas_get_config()},
        {"rates", bound_.rates()},
        {"seconds_per_element", on_cpu() ? function_costs() : std::map<std::string, double>{}},
        {"rows", rows_}};
    return all.dump(2) + "\n";
  }

 private:
  bool graphs_;
  Bound bound_;
  std::vector<nlohmann::ordered_json> rows_;
};

int run(int argc, const char* const* argv) {
  std::string cells, shapes, threads_text = "1,2", file, device = "cpu";
  double budget = 2;
  bool no_graph = false;
  Options options("bench_cells", "Milliseconds of a training step of each cell, beside what the machine could do.");
  options.add("cells", cells, "as lstm,srnn/width=32; empty: all, and some with other settings", "Rows");
  options.add("shapes", shapes,
              "steps x batch x units, as 220x20x128,750x50x128; 750 steps are like adding, 784 like pixels, others "
              "like copying, unless :TASK follows (frames: n numbers in); empty: five shapes",
              "Rows");
  options.add("threads", threads_text,
              "numbers of threads of the CPU, which take turns; \"speed-up\" is that over 1 thread", "Rows");
  options.add("budget", budget, "seconds a row, but at least three steps", "Rows", Bounds{.low = 0, .high = 1e4});
  options.add("json", file, "writes the rows to this file as well", "Rows");
  add_device(options, device);
  options.flag("no-graph", no_graph, "on a GPU: run each step kernel by kernel, not as one CUDA graph", "Run");
  options.parse(argc, argv);
  require_output_file("json", file, {});
  flush_denormals(true);  // as in training
  use_device(device);

  std::vector<int> threads;
  for (const std::string& t : split(threads_text, ',')) {
    const auto number = parse<std::int64_t>(t);
    if (!number || *number < 1 || *number > 1024)
      throw Usage(fmt::format("--threads: \"{}\" is not a number of threads from 1 to 1024", t));
    threads.push_back(static_cast<int>(*number));
  }
  if (!on_cpu()) threads = {1};
  if (threads.empty()) throw Usage("--threads: one number or more expected");
  std::vector<std::string> names = split(cells, ',');
  if (names.empty()) {
    names = cell_names();
    names.insert(names.end(), {"srnn/width=32", "enrnn/normalise=on"});
  }
  std::vector<Row> rows;
  for (const std::string& s : split(shapes.empty() ? "220x20x128,750x50x128,784x100x256,2020x20x128" : shapes, ','))
    rows.push_back(parse_row(s));
  for (const std::string& name : names) check_cell(name);

  Report report(!no_graph);
  for (const Row& row : rows) {
    for (const std::string& name : names) report.row(name, row, threads, budget);
  }
  if (shapes.empty()) {
    for (const std::string& name : names) {
      if (name.starts_with("srnn")) report.row(name, parse_row("784x100x1024"), threads, budget);
    }
  }
  report.rates();
  if (!file.empty()) write_atomically(file, report.json());
  return 0;
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  return reel::run_program("bench_cells", [&] { return reel::bench::run(argc, argv); });
}
