// Row chains: which calls become one, that the function gives the bits of its calls, and what it keeps to itself.
#include "backends/cpu/codegen/row_chains.h"

#include <cstring>

#include "backends/cpu/codegen/equal_bits.h"
#include "backends/cpu/codegen/group_compiler.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;
using cpu::GroupCompiler, cpu::RowChain, cpu::RowChainFunction, cpu::row_chains;

namespace {

enum Buffer { indices, table, state, scratch, weights, sums, other, buffers };

/// Loops over rows of `columns` numbers, and memory for them.
struct Loops {
  std::int64_t rows = 5, columns = 37, steps = 6, symbols = 7;
  DType dtype = DType::f32;
  LoweredLoop loop = {};

  std::int64_t row() const { return columns * static_cast<std::int64_t>(size_of(dtype)); }
  std::int64_t value() const { return rows * row(); }
  Operand now() const { return {state, 0, value(), false}; }
  Operand next() const { return {state, value(), value(), false}; }
  Operand in_scratch(std::int64_t k) const { return {scratch, k * (value() + 192), 0, false}; }
  Operand symbols_now() const { return {indices, 0, rows * 4, false}; }

  void gather(const Operand& to, Buffer from = table) {
    loop.calls.push_back({KernelCall::of<Kernel::gather_rows>(RowsArgs{dtype, 1, rows, symbols, columns, {}, {}, {}}),
                          {symbols_now(), {from}, to}});
  }
  void add_rows(const Operand& from, Buffer to = sums) {
    loop.calls.push_back({KernelCall::of<Kernel::segment_sum>(RowsArgs{dtype, 1, rows, symbols, columns, {}, {}, {}}),
                          {symbols_now(), from, {to}}});
  }
  /// Adds the sum of x's rows, or of its products with y, to a row.
  void sum(const Operand& x, const Operand& y, const Operand& to) {
    loop.calls.push_back({KernelCall::of<Kernel::sum_rows>(SumRowsArgs{dtype, rows, columns, {}, {}, {}}), {x, y, to}});
  }
  /// Copies n columns of each row.
  void copy(const Operand& from, std::int64_t row_from, const Operand& to, std::int64_t row_to, std::int64_t n) {
    CopyArgs args{dtype, {}, {}, {}};
    args.loop.push(rows, {row_from, row_to});
    args.loop.push(n, {1, 1});
    loop.calls.push_back({KernelCall::of<Kernel::copy>(args), {from, to}});
  }
  void rotate(const Operand& from, const Operand& to, std::int64_t distance, bool exchange = false) {
    const std::int64_t last = 1 + (columns - 1) / (2 * distance) * 2 * distance;
    RotateArgs args{dtype, rows, columns, 1, last, distance, {}, {}, {}, {}};
    const std::byte some{};
    if (!exchange) args.c = args.s = &some;
    loop.calls.push_back(
        {KernelCall::of<Kernel::rotate>(args),
         {from, exchange ? Operand{} : Operand{weights}, exchange ? Operand{} : Operand{weights, row()}, to}});
  }
  /// to = a + b, or a + b rolled by `shift`; of real numbers then clamped.
  void add(const Operand& a, const Operand& b, const Operand& to, std::int64_t shift = 0, std::int64_t of_rows = 0) {
    FusedArgs group{of_rows > 0 ? of_rows : rows, columns, {}, {}};
    std::vector<Operand> operands;
    const auto operand = [&](const Operand& at, bool local) {
      group.operands.push_back({nullptr, columns, 1, size_of(dtype), local});
      operands.push_back(at);
      return static_cast<int>(operands.size()) - 1;
    };
    const auto call = [&](FusedCall::Kind kind, int functor, Params params, int x, int y, int out) {
      FusedCall c{kind, functor, params, dtype, dtype};
      c.in[0] = x, c.in[1] = y, c.out = out;
      group.calls.push_back(c);
      return out;
    };
    const int x = operand(a, false);
    int y = operand(b, false);
    if (shift > 0) y = call(FusedCall::Kind::roll, static_cast<int>(shift), {}, y, -1, operand({other, 1 << 16}, true));
    const bool clamps = !is_complex(dtype);
    const int sum = call(FusedCall::Kind::zip, index_of<Add, BinaryFunctors>, Add{}, x, y,
                         clamps ? operand({other, 1 << 17}, true) : operand(to, false));
    if (clamps) call(FusedCall::Kind::map, index_of<Clamp, UnaryFunctors>, Clamp{-3, 4}, sum, -1, operand(to, false));
    backend("cpu").resolve(group);
    loop.calls.push_back({KernelCall::of<Kernel::fused>(group), operands});
  }

  /// Memory for a run: numbers at random, symbols.
  std::vector<std::vector<std::byte>> memory() const {
    const auto bytes = [&](std::int64_t n) { return std::vector<std::byte>(static_cast<std::size_t>(n)); };
    std::vector<std::vector<std::byte>> out{bytes(steps * rows * 4),
                                            bytes(symbols * row()),
                                            bytes((steps + 1) * value()),
                                            bytes(8 * (value() + 192)),
                                            bytes(2 * row()),
                                            bytes(symbols * row()),
                                            bytes(1 << 18)};
    Stream random(3, 1);
    for (std::size_t b = table; b < other; ++b) {
      dispatch_floating(real_of(dtype), [&]<class T>(std::type_identity<T>) {
        for (std::size_t i = 0; i < out[b].size() / sizeof(T); ++i)
          reinterpret_cast<T*>(out[b].data())[i] = static_cast<T>(2 * random.uniform() - 1);
      });
    }
    for (std::int64_t i = 0; i < steps * rows; ++i)
      reinterpret_cast<std::int32_t*>(out[indices].data())[i] = static_cast<std::int32_t>(random.below(symbols));
    return out;
  }
  std::vector<RowChain> chains() {
    loop.steps = steps;
    loop.scratch = scratch;
    return row_chains(loop);
  }
};

void run(const std::vector<LoopCall>& calls, std::int64_t steps, std::vector<std::vector<std::byte>>& memory) {
  std::vector<std::byte*> places;
  for (auto& m : memory) places.push_back(m.data());
  run_calls(backend("cpu"), calls, steps, places);
}

/// The functions of chains, which are compiled together.
std::vector<RowChainFunction> compiled(const std::vector<RowChain>& chains) {
  const TempDir folder;
  std::vector<std::string> texts;
  for (const RowChain& chain : chains) texts.push_back(chain.text);
  std::vector<RowChainFunction> out;
  for (const auto f : GroupCompiler(folder / "cache").compile(texts))
    out.push_back(reinterpret_cast<RowChainFunction>(reinterpret_cast<void (*)()>(f)));
  REQUIRE(out.size() == chains.size());
  return out;
}

/// Runs each loop by its calls and by its only chain's function, which must be all of it, and compares the memory.
void check_same(std::vector<Loops>& all, std::size_t states, bool keeps_scratch = true) {
  std::vector<RowChain> chains;
  for (Loops& loops : all) {
    const std::vector<RowChain> found = loops.chains();
    REQUIRE(found.size() == 1);
    CHECK(found[0].first == 0);
    CHECK(found[0].end == loops.loop.calls.size());
    CHECK(found[0].states.size() == states);
    chains.push_back(found[0]);
  }
  const std::vector<RowChainFunction> functions = compiled(chains);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Loops& loops = all[i];
    CAPTURE(i);
    CAPTURE(name_of(loops.dtype));
    CAPTURE(loops.columns);
    CHECK(same_bits(backend("cpu"), loops.loop, chains[i], functions[i]));
    const auto start = loops.memory();
    auto wanted = start, got = start;
    run(loops.loop.calls, loops.steps, wanted);
    run({compiled_call(chains[i], functions[i])}, loops.steps, got);
    for (const Buffer b : {state, sums}) {
      CAPTURE(b);
      CHECK(wanted[b] != start[b]);
      CHECK(cpu::equal_values(loops.dtype, wanted[b].data(), got[b].data(), std::ssize(got[b])));
    }
    CHECK((got[scratch] == start[scratch]) == keeps_scratch);  // what nobody else reads is not written
  }
}

}  // namespace

TEST_CASE("a chain gives the bits of its calls") {
  std::vector<Loops> all;
  for (const DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    for (const std::int64_t columns : {8, 37, 128}) {
      for (const std::int64_t distance : {1, 2, 8}) {
        if (columns <= 2 * distance) continue;
        Loops& loops = all.emplace_back(Loops{.columns = columns, .dtype = dtype});
        loops.gather(loops.in_scratch(0));
        loops.rotate(loops.now(), loops.in_scratch(1), distance);
        loops.rotate(loops.in_scratch(1), loops.in_scratch(2), distance, true);
        loops.add(loops.in_scratch(2), loops.in_scratch(0), loops.next());
        loops.add_rows(loops.next());
      }
    }
  }
  check_same(all, 0);
}

TEST_CASE("sums of rows, and of products, that are added to one row") {
  std::vector<Loops> all;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t columns : {8, 37, 128}) {
      Loops& loops = all.emplace_back(Loops{.columns = columns, .dtype = dtype});
      loops.gather(loops.in_scratch(0));
      loops.add(loops.now(), loops.in_scratch(0), loops.next());
      loops.sum(loops.next(), {}, {sums});
      loops.sum(loops.in_scratch(0), loops.now(), {sums, loops.row()});
    }
  }
  check_same(all, 0);
  // Two sums in one row: their order matters. Complex products are no chain's.
  Loops two{.columns = 32}, complex{.columns = 32, .dtype = DType::c64};
  two.sum(two.now(), {}, {sums});
  two.sum(two.next(), {}, {sums});
  complex.sum(complex.now(), {}, {sums});
  complex.sum(complex.now(), complex.next(), {sums, complex.row()});
  CHECK(two.chains().empty());
  CHECK(complex.chains().empty());
}

TEST_CASE("sums of rows of complex numbers") {
  std::vector<Loops> all;
  for (const DType dtype : {DType::c64, DType::c128}) {
    for (const std::int64_t columns : {8, 37}) {
      Loops& loops = all.emplace_back(Loops{.columns = columns, .dtype = dtype});
      loops.add(loops.now(), loops.now(), loops.next());
      loops.sum(loops.next(), {}, {sums});
    }
  }
  check_same(all, 0);
}

TEST_CASE("sums of rows of integers are unsigned, so that they wrap around") {
  for (const bool one : {false, true}) {
    Loops loops{.columns = 32, .dtype = DType::i32};
    loops.gather(loops.in_scratch(0));
    one ? loops.sum(loops.in_scratch(0), {}, {sums}) : loops.add_rows(loops.in_scratch(0));
    const auto chains = loops.chains();
    REQUIRE(chains.size() == 1);
    CHECK(contains(chains[0].text, "reinterpret_cast<std::uint32_t*>"));
    compiled(chains);
  }
}

TEST_CASE("parts of rows that are copied") {
  std::vector<Loops> all, apart;
  for (const DType dtype : {DType::f32, DType::c128}) {
    for (const std::int64_t half : {8, 37}) {
      const std::int64_t right = half * static_cast<std::int64_t>(size_of(dtype));
      // The halves of a state change places; of one, a half goes through rows of its own.
      Loops& loops = all.emplace_back(Loops{.columns = 2 * half, .dtype = dtype});
      const Operand turned = loops.in_scratch(0);
      Operand now_right = loops.now(), turned_right = turned;
      now_right.offset += right, turned_right.offset += right;
      loops.copy(loops.now(), 2 * half, loops.in_scratch(1), half, half);
      loops.copy(loops.in_scratch(1), half, turned_right, 2 * half, half);
      loops.copy(now_right, 2 * half, turned, 2 * half, half);
      loops.add(turned, loops.now(), loops.next());
      loops.sum(loops.next(), {}, {sums});
    }
  }
  check_same(all, 0, false);
  // Copies alone are no chain, nor is one that a later row of another call would overwrite.
  Loops alone{.columns = 16}, late{.columns = 16};
  alone.copy(alone.now(), 16, alone.in_scratch(0), 8, 8);
  alone.copy(alone.in_scratch(0), 8, alone.in_scratch(1), 16, 8);
  late.copy(late.now(), 16, late.in_scratch(0), 8, 8);
  late.add(late.in_scratch(0), late.now(), late.next());
  CHECK(alone.chains().empty());
  CHECK(late.chains().empty());
}

TEST_CASE("a large state stays in the cache, and all its values are saved") {
  std::vector<Loops> all;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const bool back : {false, true}) {
      const std::int64_t steps = 32000 / static_cast<std::int64_t>(size_of(dtype));
      Loops& loops = all.emplace_back(Loops{.columns = 128, .steps = steps, .dtype = dtype});
      const std::int64_t value = loops.value(), end = loops.steps * value;
      const Operand now = back ? Operand{state, end, -value, false} : loops.now();
      const Operand next = back ? Operand{state, end - value, -value, false} : loops.next();
      loops.gather(loops.in_scratch(0));
      loops.add(loops.in_scratch(0), now, next, 3);
      loops.add_rows(next);
    }
  }
  check_same(all, 1);
  // Not if another call reads it.
  Loops& read = all[0];
  read.loop.calls.push_back({KernelCall::of<Kernel::gemm>(GemmArgs{}), {read.next(), {weights}, {other}}});
  const auto chains = read.chains();
  REQUIRE(chains.size() == 1);
  CHECK(chains[0].states.empty());
}

TEST_CASE("a value that another call reads is in memory") {
  Loops loops{.columns = 32};
  loops.gather(loops.in_scratch(0));
  loops.add(loops.in_scratch(0), loops.now(), loops.next());
  const std::size_t own = loops.chains()[0].operands.size();
  loops.loop.calls.push_back({KernelCall::of<Kernel::gemm>(GemmArgs{}), {loops.in_scratch(0), {weights}, {other}}});
  CHECK(loops.chains()[0].operands.size() == own + 1);
}

TEST_CASE("a part of a value that another call reads is in memory") {
  Loops loops{.columns = 16};
  Operand right = loops.in_scratch(0);
  right.offset += 8 * 4;
  loops.add(loops.now(), loops.now(), loops.in_scratch(1));
  loops.copy(loops.in_scratch(1), 16, right, 16, 8);
  loops.add(loops.in_scratch(0), loops.now(), loops.next(), 0, 1);  // one row: not of the chain
  const auto chains = loops.chains();
  REQUIRE(chains.size() == 1);
  CHECK(chains[0].end == 2);
  CHECK(std::ranges::find(chains[0].operands, right) != chains[0].operands.end());
}

TEST_CASE("what keeps calls apart") {
  const auto chains = [](auto&& calls) {
    Loops loops{.columns = 32};
    calls(loops);
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (const RowChain& c : loops.chains()) out.emplace_back(c.first, c.end);
    return out;
  };
  using Ends = std::vector<std::pair<std::size_t, std::size_t>>;
  CHECK(chains([](Loops& l) { l.gather(l.in_scratch(0)); }) == Ends{});
  // A call reads the row behind the one that an earlier call writes.
  CHECK(chains([](Loops& l) {
          Operand row_behind = l.in_scratch(0);
          row_behind.offset += l.row();
          l.gather(l.in_scratch(0));
          l.add(row_behind, l.now(), l.next());
        }) == Ends{});
  // Two sums in one table: their order matters.
  CHECK(chains([](Loops& l) {
          l.add_rows(l.now());
          l.add_rows(l.next());
        }) == Ends{});
  CHECK(chains([](Loops& l) {
          l.add_rows(l.now());
          l.add_rows(l.next(), other);
        }) == Ends{{0, 2}});
  // A table that has just been added to.
  CHECK(chains([](Loops& l) {
          l.add_rows(l.now());
          l.gather(l.in_scratch(0), sums);
        }) == Ends{});
  // Another number of rows; a call of another kind between.
  CHECK(chains([](Loops& l) {
          l.gather(l.in_scratch(0));
          l.add(l.in_scratch(1), l.in_scratch(2), l.in_scratch(3), 0, 4);
        }) == Ends{});
  CHECK(chains([](Loops& l) {
          l.gather(l.in_scratch(0));
          l.add(l.in_scratch(0), l.now(), l.in_scratch(1));
          l.loop.calls.push_back({KernelCall::of<Kernel::gemm>(GemmArgs{}), {{other}, {weights}, {other}}});
          l.rotate(l.in_scratch(1), l.in_scratch(2), 4);
          l.add(l.in_scratch(2), l.now(), l.next());
          l.add_rows(l.next());
        }) == Ends{{0, 2}, {3, 6}});
  // A double-buffered state moves on; one whose steps differ from another's is left alone.
  CHECK(chains([](Loops& l) {
          const Operand before{state, 0, l.value(), true}, after{state, l.value(), -l.value(), true};
          l.gather(l.in_scratch(0));
          l.add(l.in_scratch(0), before, after);
        }) == Ends{{0, 2}});
  CHECK(chains([](Loops& l) {
          l.gather({state, 0, 2 * l.value(), false});
          l.add(l.in_scratch(0), l.now(), l.in_scratch(1));
        }) == Ends{});
}

TEST_CASE("a bad index is an error, as in the interpreter") {
  Loops loops{.columns = 32};
  loops.gather(loops.in_scratch(0));
  loops.add(loops.in_scratch(0), loops.now(), loops.next());
  loops.loop.calls[0].op = "embedding";
  const RowChain chain = loops.chains()[0];
  const LoopCall call = compiled_call(chain, compiled({chain})[0]);
  for (const std::int32_t bad : {-1, 7}) {
    auto memory = loops.memory();
    reinterpret_cast<std::int32_t*>(memory[indices].data())[8] = bad;
    const auto message = [&](const std::vector<LoopCall>& calls) {
      try {
        run(calls, loops.steps, memory);
      } catch (const LoopError& e) {
        return fmt::format("{} {} {}", e.op, e.step, e.what());
      }
      return std::string();
    };
    const std::string wanted = message(loops.loop.calls);
    CHECK(wanted.starts_with(fmt::format("embedding {} ", 8 / loops.rows)));
    CHECK(message({call}) == wanted);
  }
  RowsArgs empty = *loops.loop.calls[0].kernel.as<Kernel::gather_rows>();  // every index is bad
  empty.rows = 0;
  loops.loop.calls[0].kernel = KernelCall::of<Kernel::gather_rows>(empty);
  CHECK(loops.chains().empty());
}

TEST_CASE("a function with other bits is noticed") {
  Loops loops{.columns = 32};
  loops.gather(loops.in_scratch(0));
  loops.add(loops.in_scratch(0), loops.now(), loops.next());
  const RowChain chain = loops.chains()[0];
  const RowChainFunction nothing = [](const cpu::RowChainArgs&) {};
  CHECK(!same_bits(backend("cpu"), loops.loop, chain, nothing));
}
