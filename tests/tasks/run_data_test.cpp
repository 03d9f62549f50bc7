// The generators of the tasks: layout, statistics, and that an example depends on its stream alone.
#include <algorithm>
#include <map>

#define main copying_main
#include "tasks/copying.cpp"
#undef main
#define main adding_main
#include "tasks/adding.cpp"
#undef main

#include "tests/support/check.h"
#include "tests/support/streams.h"

using namespace reel;
using namespace reel::test;

namespace {

/// One sequence of a batch [T, B].
std::vector<int> column(const Tensor& x, std::int64_t b) {
  std::vector<int> out;
  const auto v = x.values<std::int32_t>();
  for (std::int64_t t = 0; t < x.dim(0); ++t) out.push_back(v[static_cast<std::size_t>(t * x.dim(1) + b)]);
  return out;
}

}  // namespace

TEST_CASE("copying: the layouts of reference section 1, position by position") {
  struct Case {
    std::string layout;
    std::size_t total, delimiter, repeats, recall;  // 0-based, T = 30, S = 10
    int blank, mark, low, high;
  };
  for (const Case& c : {Case{"standard", 50, 39, 1, 40, 0, 9, 1, 8}, Case{"nnrnn", 50, 39, 1, 40, 8, 9, 0, 7},
                        Case{"exprnn", 50, 40, 1, 40, 0, 9, 1, 8}, Case{"janet", 51, 40, 1, 41, 0, 9, 1, 8},
                        Case{"tcn", 50, 39, 11, 40, 0, 9, 1, 8}}) {
    CAPTURE(c.layout);
    CopyingOptions o;
    o.delay = 30, o.layout = c.layout;
    const Copying task(o, {});
    const Batch batch = task.batch(7, streams(200));
    REQUIRE(batch.x.shape() == Shape{static_cast<std::int64_t>(c.total), 200});
    std::map<int, int> counts;
    for (std::int64_t b = 0; b < 200; ++b) {
      const auto x = column(batch.x, b), y = column(batch.y, b);
      for (std::size_t t = 0; t < c.total; ++t) {
        const bool data = t < 10, marked = t >= c.delimiter && t < c.delimiter + c.repeats,
                   recall = t >= c.recall && t < c.recall + 10;
        const int symbol = x[t];
        if (data) ++counts[symbol];
        CHECK((data ? symbol >= c.low && symbol <= c.high : symbol == (marked ? c.mark : c.blank)));
        CHECK(y[t] == (recall ? x[t - c.recall] : c.blank));
      }
    }
    CHECK(counts.size() == 8);
    for (const auto& [symbol, n] : counts) CHECK(std::abs(n - 250) < 75);  // 2000 draws of 8: deviation 15
  }
}

TEST_CASE("copying: baselines of reference 0.3, Henaff's K and S, classes") {
  const auto baseline = [](std::int64_t T) {
    CopyingOptions o;
    o.delay = T;
    return Copying(o, {}).baseline();
  };
  CHECK(std::abs(baseline(100) - 0.1733) < 0.5e-4);  // half a unit of the last digit that is given
  CHECK(std::abs(baseline(200) - 0.0945) < 0.5e-4);
  CHECK(std::abs(baseline(1000) - 0.02039) < 0.5e-5);
  CopyingOptions o;
  o.symbols = 3, o.length = 4, o.delay = 5;
  const Copying task(o, {});
  CHECK(task.shape().vocabulary == 5);
  CHECK(task.batch(1, streams(2)).x.shape() == Shape{13, 2});
  o.classes = 3;
  CHECK(contains(error_of([&] { Copying(o, {}); }), "classes: "));
}

TEST_CASE("copying: answering blanks, then guessing, costs the baseline; accuracy counts recalled symbols only") {
  CopyingOptions o;
  o.delay = 20;
  const Copying task(o, {});
  const Batch batch = task.batch(3, streams(50));
  std::vector<double> logits(40 * 50 * 10, -100);
  for (std::size_t t = 0; t < 40; ++t) {
    for (std::size_t b = 0; b < 50; ++b) {
      double* row = &logits[(t * 50 + b) * 10];
      if (t < 30)
        row[0] = 0;
      else
        for (int k = 1; k <= 8; ++k) row[k] = 0;
    }
  }
  const Tensor guess = Tensor::from<double>(logits, {40, 50, 10});
  CHECK(task.loss(guess, batch).item() == doctest::Approx(task.baseline()));
  double right = 0;  // of equal scores the first one is taken, the symbol 1
  for (const std::int32_t y : batch.y.values<std::int32_t>()) right += y == 1 ? 1 : 0;
  CHECK(right > 0);
  CHECK(task.accuracy(guess, batch) == doctest::Approx(right / 500).epsilon(1e-14));
  CHECK(task.accuracy(one_hot(batch.y, 10), batch) == 1);
}

namespace {
/// Pearson's test: places that are drawn with equal chances, within 5 deviations.
template <class Place>
void check_even(const std::map<Place, int>& counts) {
  double total = 0, squares = 0;
  for (const auto& [place, n] : counts) total += n;
  const auto bins = static_cast<double>(counts.size());
  for (const auto& [place, n] : counts) squares += (n - total / bins) * (n - total / bins) / (total / bins);
  CHECK(squares < bins - 1 + 5 * std::sqrt(2 * (bins - 1)));
}
}  // namespace

TEST_CASE("copying with the delimiter anywhere: recall right behind it, all places as likely") {
  CopyingOptions o;
  o.delay = 30, o.vary = "place";
  const Copying task(o, {});
  const Batch batch = task.batch(7, streams(2900));
  REQUIRE(batch.x.shape() == Shape{50, 2900});
  std::map<std::size_t, int> places;
  for (std::int64_t b = 0; b < 2900; ++b) {
    const auto x = column(batch.x, b), y = column(batch.y, b);
    const auto mark = static_cast<std::size_t>(std::find(x.begin(), x.end(), 9) - x.begin());
    ++places[mark];
    for (std::size_t t = 0; t < 50; ++t) {
      CHECK((t < 10 ? x[t] >= 1 && x[t] <= 8 : x[t] == (t == mark ? 9 : 0)));
      CHECK(y[t] == (t > mark && t <= mark + 10 ? x[t - mark - 1] : 0));
    }
  }
  CHECK(places.begin()->first == 11);  // 0-based, as the oRNN code: 11 to T + 9
  CHECK(places.rbegin()->first == 39);
  CHECK(places.size() == 29);
  check_even(places);
  std::map<std::int32_t, int> symbols;
  for (const std::int32_t s : slice(batch.x, 0, 0, 10).values<std::int32_t>()) ++symbols[s];
  CHECK(symbols.size() == 8);
  check_even(symbols);
  CHECK(task.accuracy(one_hot(batch.y, 10), batch) == 1);
  CHECK(task.accuracy(one_hot(Tensor::zeros({50, 2900}, DType::i32), 10), batch) == 0);
}

TEST_CASE("copying of labels that are drawn apart: as likely, at the same places, and as often right as by chance") {
  CopyingOptions o;
  o.delay = 5, o.recall = "random";
  const Copying task(o, {});
  const Batch batch = task.batch(7, streams(2000));
  std::map<std::int32_t, int> labels;
  int same = 0;
  for (std::int64_t b = 0; b < 2000; ++b) {
    const auto x = column(batch.x, b), y = column(batch.y, b);
    for (std::size_t t = 0; t < 25; ++t) {
      CHECK((y[t] == 0) == (t < 15));
      if (t < 15) continue;
      ++labels[y[t]];
      same += x[t - 15] == y[t];
    }
  }
  CHECK(labels.size() == 8);
  check_even(labels);
  CHECK(std::abs(same / 20000.0 - 0.125) < 5 * std::sqrt(0.125 * 0.875 / 20000));
}

TEST_CASE("copying --reset-every: full batches go on where the one before ended, but for every so many") {
  const auto of = [](std::int64_t every, std::uint64_t first, int count) {
    CopyingOptions o;
    o.reset_every = every;
    Setup setup;
    setup.examples.batch = 4;
    std::vector<std::uint64_t> which;
    for (int i = 0; i < count; ++i) which.push_back(first + static_cast<std::uint64_t>(i));
    return Copying(o, setup).continues(which);
  };
  for (std::uint64_t b = 0; b < 12; ++b) {
    CHECK_FALSE(of(1, 4 * b, 4));
    CHECK(of(2, 4 * b, 4) == (b % 2 != 0));
    CHECK(of(5, 4 * b, 4) == (b % 5 != 0));
  }
  for (const std::int64_t every : {2, 3, 5, 10}) {  // the first batch of a validation begins a chain
    CopyingOptions o;
    o.reset_every = every;
    Setup setup;
    setup.examples.batch = 10, setup.examples.valid_size = 200;
    const Copying task(o, setup);
    const auto batches = Examples(setup.examples, 1, task.parts()).valid();
    for (std::size_t b = 0; b < batches.size(); ++b)
      CHECK(task.continues(batches[b]) == (static_cast<std::int64_t>(b) % every != 0));
  }
  CHECK_FALSE(of(5, 4, 3));  // the last batch of a validation set may be smaller
  CopyingOptions o;
  o.reset_every = 2;
  Setup fixed;
  fixed.examples.examples = 100;
  CHECK(contains(error_of([&] { Copying(o, fixed); }), "reset-every: states are carried between fresh sequences only"));
}

TEST_CASE("copying with a delay for each batch: 1 to T, and the baseline is the mean over these") {
  CopyingOptions o;
  o.delay = 20, o.vary = "batch";
  const Copying task(o, {});
  std::map<std::int64_t, int> lengths;
  double all = 0, total = 0;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    const Batch batch = task.batch(1, {2 * k, 2 * k + 1});
    const std::int64_t N = batch.x.dim(0), delay = N - 20;
    ++lengths[delay];
    CHECK(column(batch.x, 0)[static_cast<std::size_t>(delay + 9)] == 9);
    CHECK(column(batch.y, 1)[static_cast<std::size_t>(delay + 10)] == column(batch.x, 1)[0]);
    const double weight = sum(batch.weight).item();
    CHECK(weight == doctest::Approx(2));
    all += weight * 10 * std::log(8) / static_cast<double>(N);
    total += weight;
  }
  CHECK(lengths.size() == 20);
  check_even(lengths);
  double mean = 0, squares = 0;  // of what a batch costs, over the lengths there are
  for (const auto& [delay, n] : lengths) {
    const double cost = 10 * std::log(8) / static_cast<double>(delay + 20);
    mean += cost / 20;
    squares += cost * cost / 20;
  }
  CHECK(task.baseline() == doctest::Approx(mean).epsilon(1e-14));
  CHECK(std::abs(all / total - mean) < 5 * std::sqrt((squares - mean * mean) / 2000));  // 5 deviations: 0.02
  o.layout = "janet";
  CHECK(contains(error_of([&] { Copying(o, {}); }), "vary: batch is of --layout standard, got janet"));
}

TEST_CASE("adding: two marks where the rule says, the target is their sum") {
  for (const std::string rule : {"halves", "scornn", "anywhere", "ornn", "nnrnn"}) {
    for (std::int64_t T : {7, 20}) {
      CAPTURE(rule);
      CAPTURE(T);
      AddingOptions o;
      o.length = T, o.markers = rule;
      const Adding task(o, {});
      const Batch batch = task.batch(5, streams(3000));
      const auto x = batch.x.values<float>(), y = batch.y.values<float>();
      std::vector<int> marks(static_cast<std::size_t>(T), 0);
      double mean_value = 0;
      for (std::size_t b = 0; b < 3000; ++b) {
        float sum = 0;
        std::vector<std::int64_t> at;
        for (std::int64_t t = 0; t < T; ++t) {
          const std::size_t i = (static_cast<std::size_t>(t) * 3000 + b) * 2;
          CHECK((x[i] >= 0 && x[i] < 1));
          mean_value += x[i];
          if (x[i + 1] == 0) continue;
          CHECK(x[i + 1] == 1);
          at.push_back(t);
          sum += x[i];
          ++marks[static_cast<std::size_t>(t)];
        }
        REQUIRE(at.size() == 2);
        CHECK(y[b] == sum);
        const std::int64_t half = T / 2, f = (T - 1) / 2;
        if (rule == "halves") CHECK((at[0] < half && at[1] >= half && at[1] < 2 * half));
        if (rule == "scornn") CHECK((at[0] < f && at[1] >= f));
        if (rule == "nnrnn") CHECK((at[0] < half && at[1] >= (T + 1) / 2));
      }
      const double count = 3000 * static_cast<double>(T);
      CHECK(std::abs(mean_value / count - 0.5) < 5 * std::sqrt(1 / (12 * count)));  // 5 deviations of such a mean
      const bool last_never = (rule == "halves") && T % 2 == 1;                     // as the SRNN and uRNN code
      CHECK((marks.back() == 0) == last_never);
      for (std::int64_t t = 0; t + 1 < T; ++t) {
        const bool middle = rule == "nnrnn" && T % 2 == 1 && t == T / 2;  // between the halves
        CHECK((marks[static_cast<std::size_t>(t)] == 0) == middle);
      }
    }
  }
}

TEST_CASE("adding: the mean squared error of the answer 1 is the baseline") {
  constexpr std::uint64_t count = 200000;
  for (const std::string rule : {"halves", "scornn", "anywhere", "ornn", "nnrnn"}) {
    CAPTURE(rule);
    AddingOptions o;
    o.length = 4, o.markers = rule;
    const Adding task(o, {});
    double squares = 0;
    for (const float y : task.batch(5, streams(count)).y.values<float>())
      squares += (static_cast<double>(y) - 1) * (static_cast<double>(y) - 1) / count;
    // Of (y - 1)^2 the mean is 1/6 and the mean square 1/15: 5 deviations are 1.3 % of the mean.
    CHECK(std::abs(squares - task.baseline()) < 5 * std::sqrt((1.0 / 15 - 1.0 / 36) / count));
  }
  const Adding task({}, {});
  CHECK(task.baseline() == 1.0 / 6);
  const Batch batch = task.batch(1, streams(4));
  const Tensor off = Tensor::from<float>({0.03F, -0.03F, 0.05F, -0.05F}, {4, 1});
  CHECK(task.accuracy(batch.y + off, batch) == 0.5);  // right is what is less than 0.04 off
}

TEST_CASE("an example is its stream's, whatever the batch; other seeds give others") {
  const Copying copying({}, {});
  const Tensor all = copying.batch(1, streams(6)).x;
  CHECK(column(copying.batch(1, {4}).x, 0) == column(all, 4));
  CHECK(column(copying.batch(2, {4}).x, 0) != column(all, 4));
}

TEST_CASE("fresh examples never repeat; a fixed set is gone through whole, in new orders or the same one") {
  Examples fresh({.batch = 3}, 1);
  CHECK(fresh.train(0) == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(fresh.train(7) == std::vector<std::uint64_t>{21, 22, 23});
  Examples fixed({.batch = 2, .examples = 4, .shuffle = false}, 1);
  CHECK(fixed.train(3) == std::vector<std::uint64_t>{2, 3});
  Examples shuffled({.batch = 5, .examples = 50}, 1);
  std::vector<std::vector<std::uint64_t>> passes;
  for (std::int64_t pass = 0; pass < 2; ++pass) {
    passes.emplace_back();
    for (std::int64_t k = 0; k < 10; ++k) {
      const auto part = shuffled.train(pass * 10 + k);
      passes.back().insert(passes.back().end(), part.begin(), part.end());
    }
  }
  CHECK(passes[0] != passes[1]);
  for (auto& p : passes) {
    std::sort(p.begin(), p.end());
    CHECK(p == streams(50));
  }
  Examples again({.batch = 5, .examples = 50}, 1);  // a resumed run starts in the middle
  CHECK(again.train(13) == shuffled.train(13));
  const auto valid = Examples({.batch = 3, .valid_size = 7}, 1).valid();
  REQUIRE(valid.size() == 3);
  CHECK(valid[2].size() == 1);
  CHECK(valid[0][0] > 1000000);
}
