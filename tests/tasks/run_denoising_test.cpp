// The generator of the denoising problem: layouts of reference section 4, places, collisions, baselines.
#define main denoising_main
#include "tasks/denoising.cpp"
#undef main

#include "tests/support/check.h"
#include "tests/support/streams.h"

using namespace reel;
using namespace reel::test;

namespace {

Denoising make(const std::string& layout, std::int64_t T, const std::string& loss = "all") {
  DenoisingOptions o;
  o.layout = layout, o.delay = T, o.loss = loss;
  return Denoising(o, {});
}

}  // namespace

TEST_CASE("denoising: symbols in noise, a delimiter, recall in their order") {
  struct Case {
    std::string layout;
    std::int64_t total, delimiter;
  };
  constexpr std::int64_t B = 2000;
  for (const Case& c : {Case{"clean", 50, 39}, Case{"nru", 41, 30}}) {
    CAPTURE(c.layout);
    const Denoising task = make(c.layout, 30);
    CHECK(task.shape().vocabulary == 10);
    CHECK(task.shape().outputs == 9);
    const Batch batch = task.batch(7, streams(B));
    REQUIRE(batch.x.shape() == Shape{c.total, B});
    const auto x = batch.x.values<std::int32_t>(), y = batch.y.values<std::int32_t>();
    std::vector<int> at(static_cast<std::size_t>(c.total)), drawn(9);
    for (std::int64_t b = 0; b < B; ++b) {
      std::vector<std::int32_t> seen, wanted;
      for (std::int64_t t = 0; t < c.total; ++t) {
        const auto i = static_cast<std::size_t>(t * B + b);
        if (t == c.delimiter) {
          CHECK(x[i] == 9);
        } else if (x[i] != 0) {
          seen.push_back(x[i]);
          ++at[static_cast<std::size_t>(t)];
          ++drawn.at(static_cast<std::size_t>(x[i]));
        }
        if (t < c.total - 10) CHECK(y[i] == 0);
        if (t >= c.total - 10) wanted.push_back(y[i]);
      }
      CHECK(seen == wanted);
    }
    // Every place before the delimiter is as likely as another, and so is every symbol: within 5 deviations.
    for (std::int64_t t = 0; t < c.total; ++t) {
      const double p = t < c.delimiter ? 10.0 / static_cast<double>(c.delimiter) : 0;
      CHECK(std::abs(at[static_cast<std::size_t>(t)] - p * B) <= 5 * std::sqrt(B * p * (1 - p)));
    }
    for (std::size_t s = 1; s <= 8; ++s) CHECK(std::abs(drawn[s] - 2500) < 5 * std::sqrt(20000 * 7.0 / 64));
  }
}

TEST_CASE("denoising: the generator of the GORU code loses symbols and feeds the delimiter as zeros") {
  constexpr std::int64_t B = 4000, T = 200;
  const Denoising task = make("goru", T);
  CHECK(task.shape().vocabulary == 0);
  CHECK(task.shape().inputs == 10);
  CHECK(task.shape().outputs == 10);
  const Batch batch = task.batch(3, streams(B));
  REQUIRE(batch.x.shape() == Shape{T + 20, B, 10});
  const auto x = batch.x.values<float>();
  const auto y = batch.y.values<std::int32_t>();
  std::int64_t lost = 0, collided = 0, highest = 0;
  for (std::int64_t b = 0; b < B; ++b) {
    std::int64_t seen = 0;
    bool in_order = true;  // while nothing is lost
    for (std::int64_t t = 0; t < T + 20; ++t) {
      const auto row = std::span(x).subspan(static_cast<std::size_t>((t * B + b) * 10), 10);
      const auto ones = std::count(row.begin(), row.end(), 1.0F);
      CHECK(ones == (t == T + 9 ? 0 : 1));
      if (ones == 1 && row[0] == 0) {
        const auto wanted = y[static_cast<std::size_t>((T + 10 + seen) * B + b)];
        in_order = in_order && row[static_cast<std::size_t>(wanted)] == 1;
        ++seen;
      }
      highest = std::max<std::int64_t>(highest, y[static_cast<std::size_t>(t * B + b)]);
    }
    CHECK((seen < 10 || in_order));
    lost += 10 - seen;
    collided += seen < 10;
  }
  CHECK(highest == 9);
  // Reference section 4: a collision in 0.196 of the sequences, 0.213 symbols lost in each.
  CHECK(std::abs(static_cast<double>(collided) / B - 0.196) < 5 * std::sqrt(0.196 * 0.804 / B));
  CHECK(std::abs(static_cast<double>(lost) / B - 0.213) < 5 * 0.5 / std::sqrt(B));
}

TEST_CASE("denoising: baselines of reference 0.3; what they stand for costs as much") {
  CHECK(std::abs(make("goru", 200).baseline() - 0.0999) < 0.5e-4);  // half a unit of the last digit that is given
  CHECK(std::abs(make("goru", 500).baseline() - 0.0423) < 0.5e-4);
  CHECK(std::abs(make("nru", 100, "recall").baseline() - 2.079) < 0.5e-3);
  for (const std::string loss : {"all", "recall"}) {
    const Denoising task = make("clean", 20, loss);
    const Batch batch = task.batch(5, streams(30));
    std::vector<double> logits(40 * 30 * 9, -100);
    for (std::size_t i = 0; i < 40 * 30; ++i) {
      for (std::size_t k = 0; k < 9; ++k) logits[i * 9 + k] = (i < 30 * 30) == (k == 0) ? 0 : -100;
    }
    const Tensor guess = Tensor::from<double>(logits, {40, 30, 9});
    CHECK(task.loss(guess, batch).item() == doctest::Approx(task.baseline()));
    double right = 0;  // of equal scores the first one is taken, the symbol 1
    for (const std::int32_t y : batch.y.values<std::int32_t>()) right += y == 1 ? 1 : 0;
    CHECK(right > 0);
    CHECK(task.accuracy(guess, batch) == doctest::Approx(right / 300).epsilon(1e-14));
    CHECK(task.accuracy(one_hot(batch.y, 9), batch) == 1);
  }
}

TEST_CASE("denoising: symbols that do not fit are refused, unless they may share a place") {
  DenoisingOptions o;
  o.layout = "nru", o.delay = 5;
  CHECK(contains(error_of([&] { Denoising(o, {}); }), "10 symbols do not fit into 5 steps"));
  o.layout = "goru";
  CHECK(Denoising(o, {}).batch(1, streams(2)).y.shape() == Shape{25, 2});
}
