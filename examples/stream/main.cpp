// A cell one time step at a time, with its state kept between calls: what a service or an audio loop does. Prints how
// long a step takes, and checks that the steps give what a scan over the whole sequence gives.
#include <reel/reel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

int main(int argc, char** argv) try {
  using namespace reel;
  const std::string name = argc > 1 ? argv[1] : "lstm";
  const std::int64_t input = 16, hidden = 128, steps = 20000, checked = 200;
  backend().set_threads(1);
  const NoGrad inference;  // nothing is recorded

  const CellType& type = cell_type(name);
  Init init(1);
  const std::unique_ptr<Cell> cell = type.make(input, hidden, Settings(name, type.settings), init);
  if (!cell->recurrent()) throw Error(name, "has no step of its own: it reads whole sequences");
  const Tensor xs = normal({checked, 1, input}, 0, 1, 1, 1);  // [T, B, input]

  Tensors state = cell->initial(1);
  std::vector<double> times;
  double difference = 0;
  const Tensor whole = scan(*cell, state, xs).hs;  // [T, B, hidden]
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor x = xs.at(t % checked);  // [B, input]
    const auto start = std::chrono::steady_clock::now();
    state = cell->step(state, x);
    const Tensor y = cell->output(state);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    if (t < checked) difference = std::max(difference, max(abs(y - whole.at(t))).item());
  }
  const auto percentile = [&](double p) {
    const auto at = times.begin() + static_cast<std::ptrdiff_t>(p * static_cast<double>(times.size() - 1));
    std::nth_element(times.begin(), at, times.end());
    return *at;
  };
  std::printf("%s, %lld units: a step takes %.1f us (p50), %.1f us (p99); differs from a scan by %.0e\n", name.c_str(),
              static_cast<long long>(hidden), percentile(0.5), percentile(0.99), difference);
  return difference < 1e-5 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "stream: %s\n", e.what());
  return 1;
}
