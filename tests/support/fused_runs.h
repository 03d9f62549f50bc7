// Runs of elementwise calls for the tests of fused kernels: made at random, or of all functions at once, with memory of
// their own.
#pragma once
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "engine/device/backend.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"
#include "tests/support/fused_by_cpu.h"

namespace reel::test {

/// A functor with parameters under which its results are tame.
template <class F>
F sample_functor() {
  if constexpr (std::is_same_v<F, Affine>)
    return {0.7, -0.3};
  else if constexpr (std::is_same_v<F, Power>)
    return {1.5};
  else if constexpr (std::is_same_v<F, Clamp>)
    return {0.3, 0.6};
  else
    return {};
}

class FusedRunMaker {
 public:
  using Kind = FusedCall::Kind;
  static constexpr std::size_t guard = 64;  // bytes before and after each operand

  /// Operands have room for `times` values one after another, as loops want it.
  FusedRunMaker(std::int64_t rows, std::int64_t columns, std::uint64_t seed, std::int64_t times = 1)
      : rows(rows), columns(columns), times(times), engine_(seed) {}

  std::int64_t pick(std::int64_t below) { return std::uniform_int_distribution<std::int64_t>(0, below - 1)(engine_); }
  /// A new operand with memory; numbers are whole, or else in 0.1..0.9. `skip` elements off alignment.
  int add(DType dtype, std::int64_t row, std::int64_t column, bool whole = true, std::int64_t skip = 0) {
    const std::int64_t n = rows * columns * times;
    auto& block = memory_.emplace_back(static_cast<std::size_t>(n + skip) * size_of(dtype) + 2 * guard);
    std::byte* data = block.data() + (guard - reinterpret_cast<std::uintptr_t>(block.data()) % guard) % guard +
                      static_cast<std::size_t>(skip) * size_of(dtype);
    const auto number = [&] {
      return whole ? static_cast<double>(pick(7) - 3) : 0.1 + 0.8 * static_cast<double>(pick(1000)) / 1000;
    };
    dispatch(dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < n; ++i) {
        T value;
        if constexpr (is_complex_type<T>)
          value = {static_cast<typename T::value_type>(number()), static_cast<typename T::value_type>(number())};
        else if constexpr (std::is_same_v<T, bool>)
          value = pick(2) != 0;
        else
          value = static_cast<T>(number());
        std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
      }
    });
    operands.push_back({data, row, column, size_of(dtype), false});
    dtypes.push_back(dtype);
    return static_cast<int>(operands.size()) - 1;
  }
  int add_full(DType dtype, bool whole = true, std::int64_t skip = 0) { return add(dtype, columns, 1, whole, skip); }
  /// A call whose result is a new operand; a local one has one block of memory.
  int call(FusedCall c, DType result, bool local) {
    c.out = static_cast<int>(operands.size());
    if (local) {
      auto& block = memory_.emplace_back(static_cast<std::size_t>(FusedArgs::block) * 16);
      operands.push_back({block.data(), columns, 1, size_of(result), true});
      dtypes.push_back(result);
    } else {
      add_full(result);
    }
    calls.push_back(c);
    return c.out;
  }
  template <class F>
  int map(F f, int x, bool local) {
    return call({.kind = Kind::map,
                 .functor = index_of<F, UnaryFunctors>,
                 .params = f,
                 .dtype = of(x),
                 .to = of(x),
                 .in = {x, -1, -1}},
                result_dtype<F>(of(x)), local);
  }
  template <class F>
  int zip(F f, int a, int b, bool local) {
    return call({.kind = Kind::zip,
                 .functor = index_of<F, BinaryFunctors>,
                 .params = f,
                 .dtype = of(a),
                 .to = of(a),
                 .in = {a, b, -1}},
                result_dtype<F>(of(a)), local);
  }
  int select(int c, int a, int b, bool local) {
    return call({.kind = Kind::select, .dtype = of(a), .in = {c, a, b}}, of(a), local);
  }
  int cast(int x, DType to, bool local) {
    return call({.kind = Kind::cast, .dtype = of(x), .to = to, .in = {x, -1, -1}}, to, local);
  }
  int roll(int x, std::int64_t places, bool local) {
    return call(
        {.kind = Kind::roll, .functor = static_cast<int>(places), .dtype = of(x), .to = of(x), .in = {x, -1, -1}},
        of(x), local);
  }
  DType of(int operand) const { return dtypes[static_cast<std::size_t>(operand)]; }
  FusedArgs args() const { return {rows, columns, calls, operands}; }

  /// The results that are in memory, as complex numbers.
  std::vector<std::vector<std::complex<double>>> results() const {
    std::vector<std::vector<std::complex<double>>> out;
    for (const FusedCall& c : calls) {
      const FusedOperand& o = operands[static_cast<std::size_t>(c.out)];
      if (o.local) continue;
      auto& values = out.emplace_back();
      dispatch(of(c.out), [&]<class T>(std::type_identity<T>) {
        for (std::int64_t i = 0; i < rows * columns * times; ++i) {
          T v;
          std::memcpy(&v, o.data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
          if constexpr (is_complex_type<T>)
            values.emplace_back(v.real(), v.imag());
          else
            values.emplace_back(static_cast<double>(v), 0);
        }
      });
    }
    return out;
  }
  /// All memory as it is, and as it was.
  std::deque<std::vector<std::byte>> memory() const { return memory_; }
  void restore(const std::deque<std::vector<std::byte>>& was) {
    for (std::size_t i = 0; i < was.size(); ++i) std::copy(was[i].begin(), was[i].end(), memory_[i].begin());
  }
  /// What the CPU's kernel makes of it.
  std::vector<std::vector<std::complex<double>>> cpu_fallback() {
    fused_by_cpu(args());
    return results();
  }

  std::int64_t rows, columns, times;
  std::vector<FusedCall> calls;
  std::vector<FusedOperand> operands;
  std::vector<DType> dtypes;

 private:
  std::mt19937_64 engine_;
  std::deque<std::vector<std::byte>> memory_;
};

/// Every function on elements of a dtype, each in a call of its own.
inline std::unique_ptr<FusedRunMaker> all_functions(DType dtype, std::int64_t rows, std::int64_t columns) {
  auto run = std::make_unique<FusedRunMaker>(rows, columns, 5);
  const int a = run->add_full(dtype, false), b = run->add_full(dtype, false);
  const auto each = [&]<class... F>(TypeList<F...>, auto&& f) { (f(std::type_identity<F>{}), ...); };
  each(UnaryFunctors{}, [&]<class F>(std::type_identity<F>) {
    if (takes<F>(dtype)) run->map(sample_functor<F>(), a, false);
  });
  each(BinaryFunctors{}, [&]<class F>(std::type_identity<F>) {
    if (takes<F>(dtype)) run->zip(sample_functor<F>(), a, b, false);
  });
  for (DType to : all_dtypes) run->cast(a, to, false);
  run->select(run->add_full(DType::boolean), a, b, false);
  run->roll(a, columns / 3, false);
  return run;
}

/// A run at random, of functions that are exact on integers, so that results can be compared to the last bit.
inline std::unique_ptr<FusedRunMaker> random_run(std::uint64_t seed, std::int64_t rows, std::int64_t columns, int calls,
                                                 std::int64_t times = 1) {
  auto made = std::make_unique<FusedRunMaker>(rows, columns, seed, times);
  FusedRunMaker& run = *made;
  std::vector<double> bound;  // by operand: no number is larger
  std::vector<char> full;
  const auto note = [&](double b, bool is_full) {
    bound.resize(run.operands.size(), b);
    full.resize(run.operands.size(), is_full);
  };
  const bool skew = run.pick(4) == 0, narrow = seed % 2 == 0;  // narrow: elements of 4 bytes at most, in packs
  std::vector<DType> types(std::begin(all_dtypes), std::end(all_dtypes));
  if (narrow) types = {DType::f32, DType::i32, DType::boolean};
  const auto any_type = [&] { return types[static_cast<std::size_t>(run.pick(std::ssize(types)))]; };
  for (DType d : types) {
    run.add_full(d, true, skew ? run.pick(3) : 0);
    note(5, true);
  }
  for (int i = 0; i < 4; ++i) {  // a row for all, a column for all, one number
    const DType d = any_type();
    const std::int64_t which = run.pick(3);
    run.add(d, which == 1 ? 1 : 0, which == 0 ? 1 : 0);
    note(5, false);
  }
  const auto any = [&](auto&& wanted) {  // an operand, late ones rather
    for (int tries = 0; tries < 200; ++tries) {
      const auto n = static_cast<std::int64_t>(run.operands.size());
      const int o = static_cast<int>(run.pick(2) ? run.pick(n) : n - 1 - run.pick(std::min<std::int64_t>(n, 4)));
      if (wanted(o)) return o;
    }
    return -1;
  };
  while (std::ssize(run.calls) < calls) {
    const bool local = std::ssize(run.calls) + 1 < calls && run.pick(5) < 3;
    const auto is_full = [&](int o) { return full[static_cast<std::size_t>(o)] != 0; };
    const auto size = [&](int o) { return bound[static_cast<std::size_t>(o)]; };
    const int x = any(is_full);
    const DType d = run.of(x);
    double most = size(x);
    switch (run.pick(5)) {
      case 0:  // map
        if (d == DType::boolean)
          run.map(Not{}, x, local);
        else if (is_complex(d))
          run.pick(2) ? run.map(Conj{}, x, local) : run.map(Neg{}, x, local);
        else if (run.pick(3) == 0)
          run.map(Relu{}, x, local);
        else if (is_floating(d) && most < 1000 && run.pick(2))
          run.map(Power{2}, x, local), most *= most;
        else if (is_floating(d) && run.pick(2))
          run.map(Clamp{-4, 9}, x, local);
        else
          run.map(Affine{2, -1}, x, local), most = 2 * most + 1;
        break;
      case 1: {  // zip
        const int a = any([&](int o) { return run.of(o) == d; }), b = any([&](int o) { return run.of(o) == d; });
        if (a < 0 || b < 0) continue;
        most = size(a) + size(b);
        const std::int64_t which = run.pick(5);
        if (d == DType::boolean)
          which < 3 ? run.zip(And{}, a, b, local) : run.zip(Xor{}, a, b, local);
        else if (which == 0 && size(a) * size(b) < 1e6)
          run.zip(Mul{}, a, b, local), most = 2 * size(a) * size(b);
        else if (which == 1)
          run.zip(Sub{}, a, b, local);
        else if (which == 2 && !is_complex(d))
          run.zip(Less{}, a, b, local);
        else if (which == 3 && is_floating(d) && !narrow)
          run.zip(MakeComplex{}, a, b, local);
        else
          run.zip(Add{}, a, b, local);
        break;
      }
      case 2: {
        const int c = any([&](int o) { return is_full(o) && run.of(o) == DType::boolean; });
        const int y = any([&](int o) { return is_full(o) && run.of(o) == d; });
        if (c < 0 || y < 0) continue;
        most = std::max(most, size(y));
        run.select(c, x, y, local);
        break;
      }
      case 3:
        run.cast(x, any_type(), local);
        break;
      default:
        run.roll(x, run.pick(columns), local);
    }
    if (most > 1e6) {  // sums of such are no more exact
      run.calls.pop_back();
      run.operands.pop_back();
      run.dtypes.pop_back();
      continue;
    }
    note(most, true);
  }
  run.operands[static_cast<std::size_t>(run.calls.back().out)].local = false;
  return made;
}

}  // namespace reel::test
