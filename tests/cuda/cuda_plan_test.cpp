// How the CUDA backend lays work out over threads: plain functions, looked at without a GPU.
#include <map>
#include <set>

#include "backends/cuda/kernels/plan.h"
#include "backends/cuda/kernels/reduce_parts.h"
#include "backends/cuda/kernels/reduce_plan.h"
#include "backends/cuda/kernels/transpose.h"
#include "ops/functors/philox.h"
#include "tests/support/check.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

/// Where the operands have each place of a loop, one after another: what for_each_run says.
template <std::size_t N>
std::vector<std::array<std::int64_t, N>> places(const StridedLoop<N>& loop) {
  std::vector<std::array<std::int64_t, N>> out;
  loop.for_each_run([&](const typename StridedLoop<N>::Offsets& first) {
    for (std::int64_t i = 0; i < loop.inner_dim(); ++i) {
      auto at = first;
      for (std::size_t k = 0; k < N; ++k) at[k] += i * loop.inner_stride()[k];
      out.push_back(at);
    }
  });
  return out;
}

/// The same by the walk that kernels make.
template <std::size_t N>
std::vector<std::array<std::int64_t, N>> walked(const StridedLoop<N>& loop) {
  constexpr int n = static_cast<int>(N);
  const gpu::OffsetCalculator<n> walk(loop);
  std::vector<std::array<std::int64_t, N>> out;
  for (std::int64_t i = 0; i < loop.numel(); ++i) {
    std::int64_t at[n];
    walk.offsets(static_cast<std::uint32_t>(i), at);
    std::array<std::int64_t, N> place;
    std::copy_n(at, n, place.begin());
    out.push_back(place);
  }
  return out;
}

StridedLoop<2> loop2(std::initializer_list<std::array<std::int64_t, 3>> axes) {  // extent, stride of in, stride of out
  StridedLoop<2> loop;
  for (const auto& [dim, in, out] : axes) loop.push(dim, {in, out});
  return loop;
}

/// All elements of in that the blocks and threads of reduce.cu's kernel read for each element of out, by the plan.
std::map<std::int64_t, std::multiset<std::int64_t>> read_by(const gpu::ReducePlan& p) {
  std::map<std::int64_t, std::multiset<std::int64_t>> out;
  const std::int64_t groups = (p.results + p.across - 1) / p.across;
  for (std::int64_t b = 0; b < groups * p.splits; ++b) {
    for (int t = 0; t < gpu::threads_per_block; ++t) {
      const int lane = p.rows ? t % p.down : t / p.across, column = p.rows ? t / p.down : t % p.across;
      const std::int64_t split = b / groups, o = b % groups * p.across + column;
      if (o >= p.results) continue;
      std::int64_t at[2], skip[1];
      p.kept.offsets(static_cast<std::uint32_t>(o), at);
      const std::int64_t last = std::min(p.count, (split + 1) * p.per_split);
      for (std::int64_t r = split * p.per_split + lane; r < last; r += p.down) {
        p.reduced.offsets(static_cast<std::uint32_t>(r), skip);
        out[at[1]].insert(at[0] + skip[0]);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("arrays shared out by chunks: each element once") {
  Stream random(4, 4);
  for (int round = 0; round < 20; ++round) {
    gpu::Chunks chunks;
    std::vector<std::int64_t> lengths;
    const auto arrays = round == 0 ? gpu::Chunks::most : 1 + random.below(gpu::Chunks::most);
    for (std::int64_t k = 0; k < arrays; ++k) {
      const std::int64_t whole = random.below(4) * gpu::Chunks::size;  // with arrays of no elements, and whole chunks
      lengths.push_back(random.below(3) == 0 ? whole : whole + random.below(gpu::Chunks::size));
      chunks.push(lengths.back());
    }
    std::vector<std::int64_t> seen(lengths.size());
    for (std::int64_t c = 0; c < chunks.count(); ++c) {
      const int k = chunks.array(c);
      std::int64_t& next = seen[static_cast<std::size_t>(k)];
      CHECK(chunks.first(c, k) == next);  // in order, and without a gap
      CHECK(next < lengths[static_cast<std::size_t>(k)]);
      next = std::min(next + gpu::Chunks::size, lengths[static_cast<std::size_t>(k)]);
    }
    CHECK(seen == lengths);
  }
  CHECK(gpu::Chunks().count() == 0);
}

TEST_CASE("division by a product is division") {
  for (std::uint32_t d : {1U, 2U, 3U, 5U, 7U, 10U, 31U, 32U, 33U, 641U, 784U, 65535U, 65536U, 1000003U, 0x3fffffffU,
                          0x40000000U, 0x7ffffffeU, 0x7fffffffU}) {
    const gpu::FastDivmod by(d);
    for (std::uint64_t n = 0; n < 0x80000000ULL; n = n * 17 / 16 + 1) {
      const auto at = static_cast<std::uint32_t>(n);
      REQUIRE(by.divide(at) == at / d);
    }
    for (std::uint64_t k = 1; k * d < 0x80000000ULL && k < 2000; ++k) {  // both sides of multiples
      const auto at = static_cast<std::uint32_t>(k * d);
      REQUIRE(by.divide(at) == k);
      REQUIRE(by.divide(at - 1) == k - 1);
    }
    CHECK(by.divide(0x7fffffffU) == 0x7fffffffU / d);
  }
}

TEST_CASE("kernels walk a loop as the CPU does") {
  for (const StridedLoop<2>& loop :
       {loop2({}), loop2({{7, 1, 1}}), loop2({{3, 20, 5}, {5, 4, 1}}), loop2({{2, 0, 12}, {3, 1, 4}, {4, 3, 1}}),
        loop2({{6, -1, 1}}), loop2({{2, 100, 0}, {3, -7, 11}, {4, 2, 0}, {5, 9, 3}})})
    CHECK(walked(loop) == places(loop));
}

TEST_CASE("large loops are taken in parts") {
  const StridedLoop<2> loop = loop2({{5, 1000, 0}, {3, 31, 70}, {7, 4, 10}, {2, 1, 1}});
  for (std::int64_t limit : {1, 2, 3, 14, 15, 42, 43, 100, 1000}) {
    CAPTURE(limit);
    std::vector<std::array<std::int64_t, 2>> got;
    gpu::each_part(
        loop,
        [&](const StridedLoop<2>& part, const StridedLoop<2>::Offsets& first) {
          CHECK(part.numel() <= limit);
          for (auto at : places(part)) got.push_back({at[0] + first[0], at[1] + first[1]});
        },
        limit);
    CHECK(got == places(loop));
  }
  gpu::each_part(loop2({{0, 1, 1}}),
                 [](const StridedLoop<2>&, const StridedLoop<2>::Offsets&) { FAIL("a part of nothing"); });
}

TEST_CASE("packs are made where neighbours lie side by side") {
  constexpr bool may_repeat[] = {true, false};
  const auto packs = [&](const StridedLoop<2>& loop) {
    StridedLoop<2> packed = loop;
    if (!gpu::vectorize(packed, 4, may_repeat)) return false;
    std::vector<std::array<std::int64_t, 2>> got;
    for (const auto& at : places(packed)) {
      for (std::int64_t k = 0; k < 4; ++k) got.push_back({at[0] + (loop.inner_stride()[0] ? k : 0), at[1] + k});
    }
    CHECK(got == places(loop));
    return true;
  };
  CHECK(packs(loop2({{16, 1, 1}})));
  CHECK(packs(loop2({{3, 0, 8}, {8, 1, 1}})));
  CHECK(packs(loop2({{3, 5, 8}, {8, 0, 1}})));  // a column that is the same along rows
  CHECK_FALSE(packs(loop2({{15, 1, 1}})));
  CHECK_FALSE(packs(loop2({{3, 5, 8}, {8, 1, 1}})));  // rows that begin within a pack
  CHECK_FALSE(packs(loop2({{8, 2, 1}})));
  CHECK_FALSE(packs(loop2({{8, 1, 0}})));
  CHECK_FALSE(packs(loop2({})));
}

TEST_CASE("transposes are found, and say what they move") {
  const StridedLoop<2> swap = loop2({{40, 1, 50}, {50, 40, 1}}),
                       batch = loop2({{3, 2000, 2000}, {40, 1, 50}, {50, 40, 1}}),
                       far = loop2({{40, 1, 150}, {3, 2000, 50}, {50, 40, 1}});
  for (const StridedLoop<2>& loop : {swap, batch, far}) {
    const auto t = gpu::as_transpose(loop);
    REQUIRE(t);
    std::multiset<std::array<std::int64_t, 2>> got, wanted;
    for (std::int64_t p = 0; p < t->places; ++p) {
      std::int64_t at[2];
      t->walk.offsets(static_cast<std::uint32_t>(p), at);
      for (std::int64_t r = 0; r < t->rows; ++r) {
        for (std::int64_t c = 0; c < t->columns; ++c)
          got.insert({at[0] + c * t->in_column + r, at[1] + r * t->out_row + c});
      }
    }
    for (const auto& at : places(loop)) wanted.insert(at);
    CHECK(got == wanted);
  }
  CHECK_FALSE(gpu::as_transpose(loop2({{40, 50, 1}, {50, 1, 40}})));  // side by side in the input: nothing to gain
  CHECK_FALSE(gpu::as_transpose(loop2({{4, 1, 50}, {50, 4, 1}})));    // too narrow for tiles
}

TEST_CASE("every element is read once for its result, whatever is reduced") {
  for (const StridedLoop<2>& loop : {
           loop2({}), loop2({{1000, 1, 0}}),                      // all of it
           loop2({{1 << 20, 1, 0}}),                              // by more than one block
           loop2({{300, 7, 1}, {7, 1, 0}}),                       // short rows
           loop2({{20, 3000, 1}, {3000, 1, 0}}),                  // long rows
           loop2({{3000, 20, 0}, {20, 1, 1}}),                    // columns
           loop2({{5000, 100, 0}, {100, 1, 1}}),                  // columns in parts
           loop2({{4, 60, 15}, {4, 15, 0}, {15, 1, 1}}),          // an axis in the middle
           loop2({{6, 60, 0}, {4, 15, 1}, {5, 3, 0}, {3, 1, 4}})  // two, and out in another order
       }) {
    const gpu::ReducePlan plan = gpu::plan_reduction(loop);
    CHECK(plan.across * plan.down == gpu::threads_per_block);
    CHECK(plan.splits * plan.per_split >= plan.count);
    CHECK((plan.splits - 1) * plan.per_split < plan.count);
    std::map<std::int64_t, std::multiset<std::int64_t>> wanted;
    for (const auto& at : places(loop)) wanted[at[1]].insert(at[0]);
    CHECK(read_by(plan) == wanted);
    if (plan.splits == 1) continue;
    const gpu::ReducePlan second = gpu::plan_second_stage(plan);
    CHECK(second.splits == 1);
    std::map<std::int64_t, std::size_t> parts;
    for (const auto& [o, elements] : read_by(second)) parts[o] = elements.size();
    for (const auto& [o, elements] : wanted) CHECK(parts[o] == static_cast<std::size_t>(plan.splits));
  }
}

TEST_CASE("what is too large for a kernel's indices is reduced in parts, to the same results") {
  for (const StridedLoop<2>& loop : {
           loop2({{30, 1, 0}}),                                   // all of it
           loop2({{6, 5, 1}, {5, 1, 0}}),                         // rows
           loop2({{5, 6, 0}, {6, 1, 1}}),                         // columns
           loop2({{6, 60, 0}, {4, 15, 1}, {5, 3, 0}, {3, 1, 4}})  // two axes, and out in another order
       }) {
    const gpu::ReduceAxes whole(loop);
    const std::int64_t results = whole.kept.numel(), count = whole.reduced.numel();
    const auto numbers = floor(uniform({results * count}, -9, 9, 3, 1, DType::f64)).values<double>();
    const auto sums = [&](std::int64_t limit, int& calls) {
      std::vector<double> out(static_cast<std::size_t>(results), 1000);
      const auto room = [](std::size_t bytes) { return StoragePtr(backend().allocate(bytes)); };
      const std::function<void(const ReduceArgs&)> reduce = [&](const ReduceArgs& a) {
        if (gpu::reduce_in_parts(a, room, reduce, limit)) return;
        ++calls;
        const gpu::ReduceAxes axes(a.loop);
        CHECK(axes.kept.numel() <= limit);
        CHECK(axes.reduced.numel() <= limit);
        auto* const to = static_cast<double*>(a.out);
        for (const auto& at : places(a.loop)) to[at[1]] = 0;
        for (const auto& at : places(a.loop)) to[at[1]] += static_cast<const double*>(a.in)[at[0]];
      };
      reduce({Reduction::sum, DType::f64, loop, results, numbers.data(), out.data()});
      return out;
    };
    int once = 0;
    const auto wanted = sums(1000, once);
    CHECK(once == 1);
    for (const std::int64_t limit : {2, 3, 4, 5, 7, 12}) {
      CAPTURE(limit);
      int calls = 0;
      CHECK(sums(limit, calls) == wanted);
      CHECK((calls > 1) == (std::max(results, count) > limit));
    }
  }
}

TEST_CASE("sums are laid out by sizes alone") {  // so that every GPU and every run adds in the same order
  const StridedLoop<2> loop = loop2({{1 << 22, 1, 0}});
  const gpu::ReducePlan plan = gpu::plan_reduction(loop);
  CHECK(plan.splits == 512);
  CHECK(plan.per_split == 8192);
}
