// Several ranks and what they tell each other, with threads in the place of processes.
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tasks/training/checksum.h"
#include "tasks/training/gradient_sum.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Messages between threads of this process.
struct Hub {
  std::mutex lock;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> on_the_way;  // from, to
  std::map<int, std::deque<std::pair<int, std::string>>> farewells;              // to; from, why
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(Hub& hub, int rank, int size) : hub_(hub), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void start(std::span<const Message> sends, std::span<const Message> receives) override {
    const std::lock_guard guard(hub_.lock);
    for (const Message& m : sends) hub_.on_the_way[{rank_, m.rank}].emplace_back(m.data, m.data + m.bytes);
    awaited_.assign(receives.begin(), receives.end());
  }
  bool done() override {
    const std::lock_guard guard(hub_.lock);
    std::erase_if(awaited_, [&](const Message& m) {
      auto& queue = hub_.on_the_way[{m.rank, rank_}];
      if (queue.empty()) return false;
      REQUIRE(queue.front().size() == m.bytes);
      std::copy(queue.front().begin(), queue.front().end(), m.data);
      queue.pop_front();
      return true;
    });
    return awaited_.empty();
  }
  void drop() override {}
  std::vector<int> awaited() const override {
    std::vector<int> ranks;
    for (const Message& m : awaited_) ranks.push_back(m.rank);
    return ranks;
  }
  void leave(const std::string& why) override {
    const std::lock_guard guard(hub_.lock);
    for (int r = 0; r < size_; ++r)
      if (r != rank_) hub_.farewells[r].emplace_back(rank_, why);
  }
  std::optional<std::pair<int, std::string>> left() override {
    const std::lock_guard guard(hub_.lock);
    auto& queue = hub_.farewells[rank_];
    if (queue.empty()) return std::nullopt;
    const auto first = queue.front();
    queue.pop_front();
    return first;
  }
  void abort(int) override { FAIL("no rank of these aborts"); }

 private:
  Hub& hub_;
  int rank_, size_;
  std::vector<Message> awaited_;
};

/// Of two ranks the first: the other one says that it leaves, and what it has sent before arrives after that, or never.
class Slow final : public Transport {
 public:
  Slow(bool leaves, bool arrives) : told_(!leaves), arrives_(arrives) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void start(std::span<const Message>, std::span<const Message>) override {}
  bool done() override { return arrives_ && told_ && ++looks_ > 3; }
  void drop() override {}
  std::vector<int> awaited() const override { return {1}; }
  void leave(const std::string&) override {}
  std::optional<std::pair<int, std::string>> left() override {
    if (std::exchange(told_, true)) return std::nullopt;
    return std::pair{1, std::string("full disk")};
  }
  void abort(int) override { FAIL("no rank of these aborts"); }

 private:
  bool told_, arrives_;
  int looks_ = 0;
};

/// Runs `body` as so many ranks, each on a thread.
template <class Body>
void as_ranks(int size, const Body& body) {
  Hub hub;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      Ranks ranks(std::make_unique<ThreadTransport>(hub, r, size));
      body(ranks);
    });
  for (std::thread& t : threads) t.join();
}

Tensors numbers(int part) {
  Stream random(5, static_cast<std::uint64_t>(part));
  Tensors all;
  for (const auto& [dtype, n] :
       {std::pair{DType::f32, 37}, {DType::f64, 3}, {DType::c64, 5}, {DType::c128, 2}, {DType::f32, 1}}) {
    std::vector<double> x;
    for (int i = 0; i < n; ++i) x.push_back((2 * random.uniform() - 1) * std::pow(10, 6 * random.uniform()));
    all.push_back(cast(Tensor::from<double>(x, {n}), dtype));
  }
  return all;
}

}  // namespace

TEST_CASE("what each rank says, all ranks hear, in the order of the ranks") {
  for (const int size : {1, 2, 5}) {
    as_ranks(size, [&](Ranks& ranks) {
      std::vector<std::string> wanted;
      for (int r = 0; r < size; ++r) wanted.push_back(std::string(static_cast<std::size_t>(3 * r), 'a'));
      CHECK(ranks.gather(wanted[static_cast<std::size_t>(ranks.rank())]) == wanted);
      std::vector<double> values(14);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (ranks.mine(static_cast<std::int64_t>(i / 2))) values[i] = static_cast<double>(i * i);
      ranks.share(values, 2);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<double>(i * i));
      CHECK_FALSE(ranks.any(false));
      CHECK(ranks.any(ranks.rank() == size - 1));
    });
  }
}

TEST_CASE("gradients of parts are added in the order of the parts, on any number of ranks") {
  for (const int size : {2, 3, 4, 7}) {
    for (const int parts : {7, 8, 12}) {
      Tensors wanted = numbers(0);
      for (int k = 1; k < parts; ++k)
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] + numbers(k)[i];
      as_ranks(size, [&](Ranks& ranks) {
        GradientSum sum(ranks, backend("cpu"));
        for (int again = 0; again < 2; ++again) {
          sum.clear();
          for (int first = 0; first < parts; first += size) {
            const int k = first + ranks.rank();
            sum.add(k < parts ? numbers(k) : Tensors{}, wanted, std::min(size, parts - first));
          }
          Tensors out;
          for (const Tensor& x : wanted) out.push_back(Tensor::empty(x.spec()));
          sum.write(out);
          for (std::size_t i = 0; i < out.size(); ++i) {
            CHECK(elements(out[i]) == elements(wanted[i]));
            CHECK(out[i].version() == 1);
          }
        }
      });
    }
  }
}

TEST_CASE("a rank that does not answer is named, and one that leaves is heard") {
  as_ranks(3, [](Ranks& ranks) {
    if (ranks.rank() == 1) return;
    ranks.set_patience(0.2);
    ranks.set_place("after step 7");
    std::string said;
    try {
      ranks.gather("");
    } catch (const Error& e) {
      said = e.what();
    }
    CHECK_MESSAGE(contains(said, "rank 1 did not answer for 0.2 s, after step 7"), said);
    CHECK_FALSE(ranks.settled());
  });
  as_ranks(3, [](Ranks& ranks) {
    const bool bad = ranks.rank() == 2;
    if (!bad) {
      try {
        ranks.gather("");
        FAIL("the gather did not end");
      } catch (const RankLeft& e) {
        CHECK(e.rank() == 2);
      }
    }
    const auto why = ranks.leave(bad ? "no memory" : "");
    CHECK(why == std::vector<std::optional<std::string>>{"", "", "no memory"});
  });
}

TEST_CASE("what a rank has sent before it left arrives, also after its farewell") {
  Ranks ranks(std::make_unique<Slow>(true, true));
  ranks.exchange({}, {});
  CHECK(ranks.settled());
  Ranks silent(std::make_unique<Slow>(true, false));
  CHECK_THROWS_AS(silent.exchange({}, {}), RankLeft);
}

TEST_CASE("who leaves does not wait for a rank that has not answered") {
  Ranks ranks(std::make_unique<Slow>(false, false));
  ranks.set_patience(0.01);
  CHECK_THROWS_AS(ranks.exchange({}, {}), Error);
  const auto start = std::chrono::steady_clock::now();
  CHECK(ranks.leave("late") == std::vector<std::optional<std::string>>{"late", std::nullopt});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
}

TEST_CASE("the checksum that ranks compare: CRC-32 of all bytes, one tensor after the other") {
  // zlib.crc32(struct.pack("<3f", 1, 2, 3) + struct.pack("<d", 4)) in Python
  CHECK(checksum({Tensor::from<float>({1, 2, 3}, {3}), Tensor(), Tensor::from<double>({4}, {})}) == "9f752393");
  CHECK(checksum({}) == "00000000");
}
