// The price of several ranks: mpirun -n 2 build/bin/bench_ranks prints how long a word to all and a sum of gradients
// take, the quickest and the median of many.
#include <algorithm>
#include <chrono>

#include "tasks/app/launch.h"
#include "tasks/app/run.h"
#include "tasks/training/gradient_sum.h"

namespace reel {
namespace {

template <class Work>
std::string time_of(int count, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(1e6 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return fmt::format("{:>10.1f} {:>10.1f}", times.front(), times[times.size() / 2]);
}

void measure() {
  const std::unique_ptr<Ranks> ranks = join_ranks();
  print_out("{} ranks; microseconds   least     median\n", ranks->size());
  std::vector<double> words(static_cast<std::size_t>(ranks->size()));
  print_out("{:<20}{}\n", "a word to all", time_of(2000, [&] { ranks->share(words); }));
  for (const std::int64_t n : {1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22}) {
    const Tensors gradients{Tensor::full({n}, 1)}, sums{Tensor::zeros({n})};
    GradientSum sum(*ranks, backend("cpu"));
    const std::string times = time_of(200, [&] {
      sum.clear();
      sum.add(gradients, gradients, ranks->size());
      sum.write(sums);
    });
    print_out("{:<20}{}\n", fmt::format("sum of {} KiB", n * 4 / 1024), times);
  }
  ranks->gather("");
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program_of_ranks("bench_ranks", [&] {
    reel::Options options("bench_ranks",
                          "What a word to all ranks and a sum of gradients take: mpirun -n 2 bench_ranks.");
    options.parse(argc, argv);
    reel::measure();
    return 0;
  });
}
