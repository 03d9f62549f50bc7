// What the prices of CostModel are on this machine: for each, the measurements that decide it, the value they suggest,
// and the one in use.
//   build/bin/bench_costs [--rounds 9]
#include <string>

#include "backends/cpu/kernels/bf16_weights.h"
#include "bench/clock.h"
#include "engine/scan/scan.h"
#include "tasks/app/run.h"

namespace reel {
namespace {

using bench::median;
using bench::seconds;

std::int64_t rounds = 9;

/// The median of the rounds in seconds; the first round, which warms up, does not count.
double time_of(const std::function<void()>& f) {
  std::vector<double> times;
  for (std::int64_t i = 0; i <= rounds; ++i) times.push_back(seconds(f));
  return median({times.begin() + 1, times.end()});
}

Tensor numbers(const Shape& shape) { return uniform(shape, -1, 1, 1, 1); }

/// One measurement: a size, and how fast it went.
struct Point {
  std::int64_t size;
  double rate;
};

/// The largest size before the first whose rate is less than `share` of the best; 0: there is none.
std::int64_t last_fast(const std::vector<Point>& points, double share) {
  double best = 0;
  for (const Point& p : points) best = std::max(best, p.rate);
  std::int64_t last = 0;
  bool fast = false;
  for (const Point& p : points) {
    if (p.rate >= share * best) {
      fast = true;
      last = p.size;
    } else if (fast) {
      break;
    }
  }
  return last;
}

void show(const char* price, const char* meaning, const std::vector<Point>& points, const char* unit) {
  print_out("\n{}: {}\n", price, meaning);
  for (const Point& p : points) print_out("  {:>10}  {:8.2f} {}\n", p.size, p.rate, unit);
}

void suggest(const char* price, double in_use, double measured) {
  print_out("{:<22} in use {:>9}, measured {:>9.4g}\n", price, in_use, measured);
}

/// How fast a step reads and writes its values, by the bytes of all of them.
double step_cache() {
  std::vector<Point> points;
  for (std::int64_t bytes = 1 << 15; bytes <= 1 << 24; bytes *= 2) {
    const Tensor from = numbers({bytes / 8});
    Tensor to = Tensor::empty(from.spec());
    const auto repeat = (std::int64_t{1} << 25) / bytes;
    const double time = time_of([&] {
      for (std::int64_t i = 0; i < repeat; ++i) to.assign(from);
    });
    points.push_back({bytes, static_cast<double>(bytes * repeat) / time / 1e9});
  }
  show("step_cache", "a step copies its values, bytes of both", points, "GB/s");
  return static_cast<double>(last_fast(points, 0.5));
}

/// How fast 12 rows are multiplied by weights that another shard has just used, by the bytes of the weights.
double few_weights() {
  std::vector<Point> points;
  for (std::int64_t n = 64; n <= 2048; n *= 2) {
    const Tensor x = numbers({12, n}), W = numbers({n, n});
    const auto repeat = std::max<std::int64_t>(1, (std::int64_t{1} << 26) / (12 * n * n));
    const double time = time_of([&] {
      for (std::int64_t i = 0; i < repeat; ++i) matmul(x, W);
    });
    points.push_back({4 * n * n, static_cast<double>(2 * 12 * n * n * repeat) / time / 1e9});
  }
  show("few_weights", "12 rows by weights, bytes of the weights", points, "GFLOP/s");
  return static_cast<double>(last_fast(points, 0.8));
}

/// How fast rows are gathered, by the bytes of the table.
double small_table() {
  std::vector<Point> points;
  constexpr std::int64_t batch = 64, columns = 128;
  for (std::int64_t rows = 16; rows <= 1 << 15; rows *= 2) {
    const Tensor table = numbers({rows, columns});
    std::vector<Tensor> index;
    Stream random(1, 2);
    for (int i = 0; i < 256; ++i) {
      std::vector<std::int32_t> places;
      for (std::int64_t b = 0; b < batch; ++b)
        places.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(rows))));
      index.push_back(Tensor::from<std::int32_t>(places, {batch}));
    }
    const double time = time_of([&] {
      for (const Tensor& i : index) index_select(table, 0, i);
    });
    points.push_back({4 * rows * columns, static_cast<double>(std::ssize(index) * batch * columns * 4) / time / 1e9});
  }
  show("small_table", "rows gathered from a table, bytes of the table", points, "GB/s");
  return static_cast<double>(last_fast(points, 0.7));
}

/// How fast the two halves of a roll are copied, by the bytes of the blocks that both go through at a time.
double copied_at_once() {
  std::vector<Point> points;
  constexpr std::int64_t columns = 256, rows = 1 << 14;
  const Tensor x = numbers({rows, columns});
  Tensor y = Tensor::empty(x.spec());
  for (std::int64_t bytes = 1 << 12; bytes <= 1 << 24; bytes *= 4) {
    const std::int64_t few = bytes / (4 * columns);
    const auto move = [&](std::int64_t first, std::int64_t from, std::int64_t to, std::int64_t width) {
      StridedLoop<2> loop{};
      loop.push(few, {columns, columns});
      loop.push(width, {1, 1});
      y.backend().copy({x.dtype(), loop, x.data_as<float>() + first * columns + from,
                        static_cast<float*>(y.data()) + first * columns + to});
    };
    const double time = time_of([&] {
      for (std::int64_t first = 0; first < rows; first += few) {
        move(first, 0, 1, columns - 1);
        move(first, columns - 1, 0, 1);
      }
    });
    points.push_back({bytes, 2.0 * static_cast<double>(x.bytes()) / time / 1e9});
  }
  show("copied_at_once", "a roll by one, bytes that its two copies take turns on", points, "GB/s");
  return static_cast<double>(last_fast(points, 0.9));
}

/// Products of 20 rows, one a step, against one product of all rows, which writes its result to memory: how much faster
/// the steps are, by the number of columns of the input.
double narrow() {
  std::vector<Point> points;
  constexpr std::int64_t steps = 784, batch = 20, hidden = 128;
  for (std::int64_t k = 1; k <= 128; k *= 2) {
    const Tensor all = numbers({steps, batch, k}), W = numbers({k, hidden}), step = numbers({batch, k});
    const Tensor h = numbers({batch, hidden});
    const double whole = time_of([&] {
      const Tensor y = matmul(all, W);
      for (std::int64_t t = 0; t < steps; ++t) y.at(t) + h;
    });
    const double each = time_of([&] {
      for (std::int64_t t = 0; t < steps; ++t) matmul(step, W) + h;
    });
    points.push_back({k, whole / each});
  }
  show("narrow", "a product a step against one of all steps, read step by step; by columns", points, "times as fast");
  std::int64_t last = 0;
  for (const Point& p : points) {
    if (p.rate < 0.8) break;
    last = p.size;
  }
  return static_cast<double>(last);
}

/// A weight that is stored anew once and then multiplied by often, against one that stays as it is.
double steps_to_prepack() {
  std::vector<Point> points;
  const Tensor x = numbers({20, 128}), W = numbers({128, 128});
  for (std::int64_t steps = 1; steps <= 32; steps *= 2) {
    const double as_is = time_of([&] {
      for (std::int64_t t = 0; t < steps; ++t) matmul(x, W, {.transpose_b = true});
    });
    const double anew = time_of([&] {
      const Tensor packed = permute(W, {1, 0});
      for (std::int64_t t = 0; t < steps; ++t) matmul(x, packed);
    });
    points.push_back({steps, as_is / anew});
  }
  show("steps_to_prepack", "products by a weight in a new layout, storing it included; by steps", points,
       "times as fast");
  for (const Point& p : points) {
    if (p.rate >= 1) return static_cast<double>(p.size);
  }
  return 1e9;
}

// The next three are in additions inside a fusion group, on states of 200 x 128 over 784 steps: what is saved is larger
// than the caches.
constexpr std::int64_t steps = 784, batch = 200, hidden = 128;
constexpr double elements = steps * batch * hidden;

/// Seconds of a loop with this step, whose state and constant are [batch, hidden].
double loop_time(const Tensors& xs, const std::function<Next(const Tensor& h, const Tensors& x, const Tensor& c)>& f) {
  const Tensor start = numbers({batch, hidden}), c = numbers({batch, hidden});
  return time_of(
      [&] { scan([&](const Tensors& h, const Tensors& x) { return f(h[0], x, c); }, {start}, xs, {.length = steps}); });
}

double addition() {
  const auto sum_of = [](int terms) {
    return loop_time({}, [=](const Tensor& h, const Tensors&, const Tensor& c) {
      Tensor sum = h;
      for (int i = 0; i < terms; ++i) sum = sum + c;
      return Next{{sum}, {}};
    });
  };
  return (sum_of(40) - sum_of(8)) / 32 / elements;
}

/// Seconds an element of writing a value in one loop and reading it in another.
double save(bool view) {
  const double without = loop_time({}, [](const Tensor& h, const Tensors&, const Tensor& c) {
    return Next{{h + c}, {}};
  });
  const double writes = loop_time({}, [=](const Tensor& h, const Tensors&, const Tensor& c) {
    const Tensor y = h - c;
    return Next{{h + c}, {view ? slice(y, 0, 0, batch - 1) : y}};
  });
  const double reads =
      loop_time({numbers({steps, batch, hidden})}, [](const Tensor& h, const Tensors& x, const Tensor&) {
        return Next{{h + x[0]}, {}};
      });
  return (writes - without + reads - without) / elements;
}

/// Seconds an element of a product of [batch, k].
double thin_product(std::int64_t k) {
  const Tensor x = numbers({batch, k}), W = numbers({k, hidden});
  return time_of([&] {
           for (std::int64_t t = 0; t < steps; ++t) matmul(x, W);
         }) /
         elements;
}

/// How many times as fast as in f32 a product [m, k] [k, n] is in bf16, its right side packed for it or before.
double gain_of_bf16(std::int64_t m, std::int64_t k, std::int64_t n, bool packed_before) {
  const Tensor a = numbers({m, k}), b = numbers({k, n});
  Tensor c = numbers({m, n});
  const auto *x = static_cast<const float*>(a.data()), *w = static_cast<const float*>(b.data());
  auto* const y = static_cast<float*>(c.data());
  const cpu::bf16::Packed packed(backend(), {w, n, false}, k, n);
  const std::int64_t repeat = 1 + 10'000'000 / (m * k * n);
  const double plain = time_of([&] {
    for (std::int64_t i = 0; i < repeat; ++i)
      backend().gemm({DType::f32, false, false, false, false, m, n, k, 1, 0, 0, x, w, y});
  });
  return plain / time_of([&] {
           for (std::int64_t i = 0; i < repeat; ++i) {
             if (packed_before)
               packed.multiply(backend(), {x, k, false}, m, y, false);
             else
               cpu::bf16::multiply(backend(), {x, k, false}, {w, n, false}, m, k, n, y);
           }
         });
}

/// The smallest size from which on bf16 is faster; the measurement is of product(size).
template <class F>
double fewest_for_bf16(const char* price, const char* meaning, std::initializer_list<std::int64_t> sizes, F gain) {
  std::vector<Point> points;
  double fewest = 0;
  for (const std::int64_t size : sizes) {
    points.push_back({size, gain(size)});
    if (points.back().rate <= 1)
      fewest = 0;
    else if (fewest == 0)
      fewest = static_cast<double>(size);
  }
  show(price, meaning, points, "times as fast");
  return fewest;
}

void prices_of_bf16() {
  constexpr cpu::bf16::Prices prices;
  const double rows = fewest_for_bf16("bf16 rows", "[rows, 512] [512, 512]", {8, 16, 32, 48, 64, 96, 128, 512},
                                      [](std::int64_t m) { return gain_of_bf16(m, 512, 512, false); }),
               columns = fewest_for_bf16("bf16 columns", "[1024, 512] [512, columns]", {4, 8, 16, 24, 32, 64, 128},
                                         [](std::int64_t n) { return gain_of_bf16(1024, 512, n, false); }),
               terms = fewest_for_bf16("bf16 terms", "[1024, terms] [terms, 512]", {4, 8, 16, 24, 32, 64, 128},
                                       [](std::int64_t k) { return gain_of_bf16(1024, k, 512, false); }),
               products = fewest_for_bf16("bf16 products", "cubes of so many", {32, 48, 64, 96, 128, 192, 256},
                                          [](std::int64_t n) { return gain_of_bf16(n, n, n, false); }),
               packed = fewest_for_bf16("bf16 packed", "[10, n] [n, n] with a packed right side",
                                        {32, 64, 96, 128, 192, 256, 512},
                                        [](std::int64_t n) { return gain_of_bf16(10, n, n, true); });
  print_out("\n");
  suggest("bf16 rows", static_cast<double>(prices.rows), rows);
  suggest("bf16 columns", static_cast<double>(prices.columns), columns);
  suggest("bf16 terms", static_cast<double>(prices.terms), terms);
  suggest("bf16 products", static_cast<double>(prices.products), products * products * products);
  suggest("bf16 packed", static_cast<double>(prices.packed), packed * packed);
}

int run(int argc, const char* const* argv) {
  Options options("bench_costs", "The prices by which loops are planned, in use and measured.");
  options.add("rounds", rounds, "measurements to take the median of", "Run", Bounds{.low = 1, .high = 1e6});
  options.parse(argc, argv);
  backend().set_threads(1);
  const CostModel costs = backend().costs();
  const double step = step_cache(), weights = few_weights(), table = small_table(), copied = copied_at_once(),
               columns = narrow(), prepack = steps_to_prepack(), one = addition();
  print_out("\none addition in a fusion group: {:.3f} ns an element\n\n", one * 1e9);
  suggest("step_cache", static_cast<double>(costs.step_cache), step);
  suggest("few_weights", static_cast<double>(costs.few_weights), weights);
  suggest("small_table", static_cast<double>(costs.small_table), table);
  suggest("copied_at_once", static_cast<double>(costs.copied_at_once), copied);
  suggest("narrow", static_cast<double>(costs.narrow), columns);
  suggest("steps_to_prepack", static_cast<double>(costs.steps_to_prepack), prepack);
  suggest("save", costs.save, save(false) / one);
  suggest("save_view", costs.save_view, save(true) / one);
  const double thin = thin_product(2) / one, flop = (thin_product(34) / one - thin) / (2 * 32);
  suggest("memory_bound_product", costs.memory_bound_product, thin - 4 * flop);
  suggest("flop", costs.flop, flop);
  if (cpu::bf16::missing().empty()) prices_of_bf16();
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("bench_costs", [&] { return reel::run(argc, argv); });
}
