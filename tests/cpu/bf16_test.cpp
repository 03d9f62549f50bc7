// Products of the device "cpu,bf16": their operands are rounded to bf16, nothing else is. Compared with sums in double
// precision of operands rounded here; with f32 where products are small; and with themselves on other numbers of
// threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>

#include "backends/cpu/kernels/bf16_products.h"
#include "cells/cell.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;
namespace bf16 = reel::cpu::bf16;

namespace {

/// False, with a message: this processor or build has no such products.
bool possible() {
  const std::string missing = bf16::missing();
  if (!missing.empty()) MESSAGE("skipped: " << missing);
  return missing.empty();
}

/// Makes tensors that nobody places on a device that divides work among so many threads, while it lives.
struct On {
  explicit On(const std::string& device, int threads = 1) { set_default_backend(device).set_threads(threads); }
  ~On() {
    backend().set_threads(1);
    set_default_backend("cpu");
  }
};

/// The nearest number with 8 bits of mantissa, by arithmetic; even where two are as near.
double rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::ldexp(1.0, std::ilogb(x) - 7);
  return std::nearbyint(x / unit) * unit;
}

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  return cast(random({std::max<std::int64_t>(count, 1)}, seed), DType::f32).values<float>();
}

/// A product [m, k] [k, n] of random numbers, and the largest error of c in units of k roundings. Each rounding of a
/// sum is relative to a partial sum, which grows as a random walk: one or two such units. An operand that is not
/// rounded, or wrongly, is off by thousands.
struct Case {
  std::int64_t m, k, n;
  bool transposed_a, transposed_b;
  std::vector<float> a = numbers(m * k, 1), b = numbers(k * n, 2);

  bf16::Matrix left() const { return {a.data(), transposed_a ? m : k, transposed_a}; }
  bf16::Matrix right() const { return {b.data(), transposed_b ? k : n, transposed_b}; }
  double error(const std::vector<float>& c, const std::vector<float>& before) const {
    // Rows of a and columns of b, each rounded once: rounding in the inner loop takes minutes under sanitizers.
    std::vector<double> rows, columns;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) rows.push_back(rounded(static_cast<double>(*left().at(i, l))));
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l) columns.push_back(rounded(static_cast<double>(*right().at(l, j))));
    double worst = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(i * n + j);
        const double sum = std::inner_product(rows.data() + i * k, rows.data() + (i + 1) * k, columns.data() + j * k,
                                              before.empty() ? 0 : static_cast<double>(before[at]));
        const double error = std::abs(sum - static_cast<double>(c[at]));
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      }
    }
    return worst / (0x1p-24 * static_cast<double>(std::max<std::int64_t>(k, 1)));
  }
};
constexpr double most = 2;

std::vector<float> bits_of(const Tensors& xs) {
  std::vector<float> all;
  for (const Tensor& x : xs) {
    const auto v = x.values<float>();
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  const auto equal = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

/// Numbers that do not depend on the device.
Tensor fixed(const Shape& shape, std::uint64_t seed, double scale = 1) {
  return random(shape, seed, DType::f32, -scale, scale);
}

}  // namespace

TEST_CASE("the device says its name, and refuses others") {
  CHECK(backend("cpu").name() == "cpu");
  CHECK(contains(error_of([] { backend("cpu,tf32"); }), "\"cpu,bf16\", got \"cpu,tf32\""));
  CHECK(contains(error_of([] { backend("cpu:1"); }), "got \"cpu:1\""));
  if (possible())
    CHECK(backend("cpu,bf16").name() == "cpu,bf16");
  else
    CHECK(contains(error_of([] { backend("cpu,bf16"); }), "Hint: "));
}

TEST_CASE("products of all forms and awkward sizes") {
  if (!possible()) return;
  for (const std::int64_t m : {1, 2, 15, 16, 17, 63, 65, 130}) {
    for (const std::int64_t n : {1, 7, 32, 65, 300}) {
      for (const std::int64_t k : {1, 2, 31, 33, 257, 1023, 1025, 2049}) {
        if (m * n * k > 2'000'000) continue;
        for (int form = 0; form < 4; ++form) {
          const Case p{m, k, n, (form & 1) != 0, (form & 2) != 0};
          std::vector<float> c(static_cast<std::size_t>(m * n), NAN);
          bf16::multiply(backend(), p.left(), p.right(), m, k, n, c.data());
          CHECK_MESSAGE(p.error(c, {}) < most, m << " x " << k << " x " << n << ", form " << form);
        }
      }
    }
  }
}

TEST_CASE("sums go on in c") {
  if (!possible()) return;
  for (const std::int64_t m : {3, 64, 100}) {
    for (const bool transposed : {false, true}) {
      const Case p{m, 1500, 40, transposed, false};
      const bf16::Packed b(backend(), p.right(), p.k, p.n);
      const std::vector<float> before = numbers(p.m * p.n, 3);
      std::vector<float> c = before;
      b.multiply(backend(), p.left(), p.m, c.data(), true);
      CHECK(p.error(c, before) < most);
      b.multiply(backend(), p.left(), p.m, c.data(), false);
      CHECK(p.error(c, {}) < most);
    }
  }
}

TEST_CASE("oneDNN starts no threads of its own") {
  if (!possible()) return;
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  const Case p{512, 512, 512, false, false};
  std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
  bf16::multiply(backend(), p.left(), p.right(), p.m, p.k, p.n, c.data());
  CHECK(threads() == before);
}

TEST_CASE("a row does not depend on how many others are multiplied with it") {
  if (!possible()) return;
  for (const std::int64_t k : {64, 500, 512, 1024}) {
    for (const std::int64_t n : {32, 100, 256, 512}) {
      const Case p{130, k, n, false, false};
      const bf16::Packed b(backend(), p.right(), k, n);
      std::vector<float> all(static_cast<std::size_t>(130 * n)), c(all.size());
      b.multiply(backend(), p.left(), 130, all.data(), false);
      for (std::int64_t m = 1; m < 130; m += m < 40 ? 1 : 7) {
        b.multiply(backend(), p.left(), m, c.data(), false);
        CHECK_MESSAGE(std::memcmp(c.data(), all.data(), static_cast<std::size_t>(m * n) * sizeof(float)) == 0,
                      m << " x " << k << " x " << n);
      }
    }
  }
}

TEST_CASE("numbers between two of bf16 go to the nearest, or to the even one") {
  if (!possible()) return;
  const float above_one = 1 + 0x1p-7F;
  for (const auto& [x, nearest] : {std::pair{1.0F, 1.0F},
                                   {1 + 0x1p-8F, 1.0F},
                                   {1 + 0x1p-8F + 0x1p-20F, above_one},
                                   {above_one + 0x1p-8F, 1 + 0x1p-6F},
                                   {-1 - 0x1p-8F, -1.0F},
                                   {3.4e38F, INFINITY},
                                   {3.38e38F, std::bit_cast<float>(0x7f7eU << 16)}}) {
    CAPTURE(x);
    for (const bool left : {true, false}) {
      const std::vector<float> a(32, left ? x : 1.0F), b(32, left ? 1.0F : x);
      std::vector<float> c(32 * 32);
      bf16::multiply(backend(), {a.data(), 1, false}, {b.data(), 32, false}, 32, 1, 32, c.data());
      CHECK(c[5] == nearest);
    }
  }
}

TEST_CASE("NaN and infinities pass through") {
  if (!possible()) return;
  const On on("cpu,bf16");
  constexpr float inf = std::numeric_limits<float>::infinity();
  // The second NaN has its bits where bf16 has none.
  for (const float special : {std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001U), inf, -inf}) {
    auto a = numbers(128 * 256, 1);
    for (float& x : a) x = std::abs(x) + 0.5F;
    auto b = a;
    b.resize(std::size_t{256 * 128});
    a[256 * 3 + 7] = special;
    const Tensor c = matmul(Tensor::from<float>(a, {128, 256}), Tensor::from<float>(b, {256, 128}));
    const auto v = c.values<float>();
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (i / 128 != 3)
        CHECK(std::isfinite(v[i]));
      else if (std::isnan(special))
        CHECK(std::isnan(v[i]));
      else
        CHECK(v[i] == special);
    }
  }
}

TEST_CASE("products of the device: large ones round, small ones and other dtypes are those of f32") {
  if (!possible()) return;
  const auto product = [](const std::string& device, int threads, const Shape& a, const Shape& b, MatmulFlags flags,
                          DType dtype) {
    const On on(device, threads);
    return matmul(random(a, 1, dtype), random(b, 2, dtype), flags);
  };
  struct Size {
    Shape a, b;
    MatmulFlags flags;
    bool rounds;
  };
  const Size sizes[]{{{300, 200}, {200, 100}, {}, true},
                     {{200, 300}, {200, 100}, {.transpose_a = true}, true},
                     {{300, 200}, {100, 200}, {.transpose_b = true}, true},
                     {{200, 300}, {100, 200}, {.transpose_a = true, .transpose_b = true}, true},
                     {{5, 190, 170}, {5, 170, 180}, {}, true},
                     {{5, 190, 170}, {170, 180}, {}, true},
                     {{2, 3000, 64}, {2, 3000, 64}, {.transpose_a = true}, true},
                     {{10, 300}, {300, 300}, {}, false},
                     {{3000, 300}, {300, 10}, {}, false},
                     {{3000, 4}, {4, 300}, {}, false},
                     {{0, 300}, {300, 300}, {}, false},
                     {{300, 0}, {0, 300}, {}, false}};
  for (const Size& s : sizes) {
    CAPTURE(s.a.str());
    CAPTURE(s.b.str());
    const auto bits = [&](const std::string& device, int threads) {
      return bits_of({product(device, threads, s.a, s.b, s.flags, DType::f32)});
    };
    for (const int threads : {1, 2, 3}) {
      CHECK(same_bits(bits("cpu", threads), bits("cpu,bf16", threads)) != s.rounds);
      if (s.rounds) CHECK(same_bits(bits("cpu,bf16", 1), bits("cpu,bf16", threads)));
    }
    // Two roundings of 2^-9 for each term, and as many terms as a walk: 2^-8 sqrt(k / 3) at most, the largest of many.
    CHECK(difference(product("cpu", 1, s.a, s.b, s.flags, DType::f32),
                     product("cpu,bf16", 1, s.a, s.b, s.flags, DType::f32)) < 0.02);
    if (s.flags.transpose_a || s.a.rank() > 2) continue;
    CHECK(elements(product("cpu", 1, s.a, s.b, s.flags, DType::f64)) ==
          elements(product("cpu,bf16", 1, s.a, s.b, s.flags, DType::f64)));
    CHECK(elements(product("cpu", 1, s.a, s.b, s.flags, DType::c64)) ==
          elements(product("cpu,bf16", 1, s.a, s.b, s.flags, DType::c64)));
  }
}

TEST_CASE("a loop's weights are packed once, and are those of its run") {
  if (!possible()) return;
  constexpr std::int64_t T = 12, B = 5, n = 256;
  // The state is the last input, so each product is known, but none can leave the loop.
  const auto products = [](const Tensor& xs, const Tensor& W) {
    const auto step = [&](const Tensors& s, const Tensors& x) { return Next{{x[0]}, {matmul(s[0], W)}}; };
    return scan(step, {Tensor::zeros({B, n})}, {xs}).ys[0];
  };
  for (const int threads : {1, 2, 3}) {
    const On on("cpu,bf16", threads);
    const Tensor xs = fixed({T, B, n}, 1);
    Tensor W = fixed({n, n}, 2);
    for (int run = 0; run < 2; ++run) {
      const auto got = products(xs, W).values<float>(), w = W.values<float>(), x = xs.values<float>();
      double worst = 0;
      for (std::int64_t i = 0; i < T * B; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < n && i >= B; ++l)
            sum += rounded(static_cast<double>(x[static_cast<std::size_t>((i - B) * n + l)])) *
                   rounded(static_cast<double>(w[static_cast<std::size_t>(l * n + j)]));
          worst = std::max(worst, std::abs(sum - static_cast<double>(got[static_cast<std::size_t>(i * n + j)])));
        }
      }
      CHECK(worst < most * 0x1p-24 * n);
      W.assign(fixed({n, n}, 3));  // in the same memory
    }
  }
}

TEST_CASE("a right side that steps change is not kept") {
  if (!possible()) return;
  const auto run = [](const std::string& device, int threads) {
    const On on(device, threads);
    const Tensor A = fixed({80, 256}, 1);
    const auto step = [&](const Tensors& s, const Tensors&) {
      const Tensor next = s[0] * 0.5 + 0.25;
      return Next{{next}, {matmul(A, s[0])}};
    };
    return bits_of({scan(step, {fixed({256, 256}, 2)}, {Tensor::zeros({10, 1})}).ys[0]});
  };
  const auto plain = run("cpu", 1);
  CHECK(same_bits(plain, run("cpu,bf16", 1)));
  CHECK(same_bits(plain, run("cpu,bf16", 2)));
}

TEST_CASE("a training step of LSTM and GRU is near that in f32, on any number of threads the same") {
  if (!possible()) return;
  constexpr std::int64_t T = 30, B = 20, n = 256;
  for (const std::string name : {"lstm", "gru"}) {
    for (const std::int64_t every : {0, 6}) {
      CAPTURE(name);
      CAPTURE(every);
      const auto run = [&](const std::string& device, int threads) {
        const On on(device, threads);
        Init init(1);
        const CellType& type = cell_type(name);
        const auto cell = type.make(n, n, Settings(name, type.settings), init);
        Tensors parameters;
        for (const Parameter& p : cell->parameters()) parameters.push_back(p.value);
        Tape tape;
        const Tensor ys =
            cell->run(cell->initial(B), {fixed({T, B, n}, 1)}, {.checkpoint_every = every}, Loc::current()).hs;
        const Tensor loss = mean(square(ys - fixed({T, B, n}, 2)));
        Tensors all{loss};
        for (const Tensor& g : grad({loss}, parameters)) all.push_back(g);
        return all;
      };
      const Tensors plain = run("cpu", 1), one = run("cpu,bf16", 1);
      CHECK(!same_bits(bits_of(plain), bits_of(one)));
      for (std::size_t i = 0; i < plain.size(); ++i) {
        // The roundings, 2^-9 each, are independent: gradients are off by about as much of their own size.
        const auto x = elements(plain[i]), y = elements(one[i]);
        double off = 0, size = 0;
        for (std::size_t j = 0; j < x.size(); ++j) off += std::norm(x[j] - y[j]), size += std::norm(x[j]);
        CHECK_MESSAGE(std::sqrt(off / size) < 0x1p-7, i << ": " << std::sqrt(off / size));
      }
      CHECK(same_bits(bits_of(run("cpu", 1)), bits_of(run("cpu", 2))));  // otherwise the next could not be expected
      CHECK(same_bits(bits_of(one), bits_of(run("cpu,bf16", 2))));
      CHECK(same_bits(bits_of(one), bits_of(run("cpu,bf16", 3))));
    }
  }
}
