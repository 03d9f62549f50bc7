// Compiled fusion groups compute what the interpreter does, to the last bit; and what becomes of their files.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "backends/cpu/codegen/compiled_groups.h"
#include "backends/cpu/codegen/group_source.h"
#include "backends/cpu/kernels/piece.h"
#include "tests/support/check.h"
#include "tests/support/fused_runs.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;
using cpu::GroupCompiler, cpu::GroupFunction, cpu::group_source;
namespace fs = std::filesystem;

namespace {

using Values = std::vector<std::vector<std::complex<double>>>;

#if defined(REEL_ADDRESS_SANITIZER) || defined(REEL_THREAD_SANITIZER)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// The same bits, or NaN both times. Under sanitizers less is inlined, and what is not inlined is not contracted, so
/// that there the functors themselves round otherwise; such a function is never used, and only has to be near.
bool alike(const Values& a, const Values& b) {
  const auto same = [](double x, double y) {
    if (sanitized && std::abs(x - y) <= 1e-3 * std::max(1.0, std::abs(y))) return true;
    return (x == y && std::signbit(x) == std::signbit(y)) || (std::isnan(x) && std::isnan(y));
  };
  const auto same_values = [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const auto& u, const auto& v) {
      return same(u.real(), v.real()) && same(u.imag(), v.imag());
    });
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_values);
}

/// A group of one precision at random, with every kind of operand, rolls, complex numbers and conditions.
class Group {
 public:
  Group(std::uint64_t seed, DType dtype, std::int64_t rows, std::int64_t columns, int calls)
      : run_(rows, columns, seed) {
    const auto number = [&](std::int64_t row, std::int64_t column, std::int64_t skip = 0) {
      operands_.push_back(run_.add(dtype, row, column, false, skip));
    };
    number(columns, 1, run_.pick(3));
    number(columns, 1);
    number(0, 1);
    number(1, 0);
    number(0, 0);
    if (2 * columns <= FusedArgs::block) add_repeated(dtype);
    const DType z = complex_of(dtype);
    std::vector<int> complexes{run_.add(z, columns, 1, false, run_.pick(3)), run_.add(z, columns, 1, false)},
        conditions;
    const bool rolls = columns <= FusedArgs::block && run_.pick(2) == 0;  // a block must hold whole rows
    if (!rolls) conditions.push_back(run_.add(DType::boolean, columns, 1));
    const int z_row = run_.add(z, 0, 1, false), z_one = run_.add(z, 0, 0, false);
    const std::size_t broadcast = operands_.size();  // from 2 to here: arguments of zip alone
    for (int i = 0; i < calls; ++i) {
      const auto any = [&](bool full) {
        while (true) {
          const auto o = static_cast<std::size_t>(run_.pick(std::ssize(operands_)));
          if (!full || o < 2 || o >= broadcast) return operands_[o];
        }
      };
      const bool local = run_.pick(2) == 0 && i + 1 < calls;
      const auto zip = [&](auto f) { operands_.push_back(run_.zip(f, any(true), any(false), local)); };
      const auto map = [&](auto f) { operands_.push_back(run_.map(f, any(true), local)); };
      const auto any_complex = [&](bool full) {
        const std::int64_t n = std::ssize(complexes), which = run_.pick(full ? n : n + 2);
        return which == n ? z_row : which > n ? z_one : complexes[static_cast<std::size_t>(which)];
      };
      const auto complex_zip = [&](auto f) {
        complexes.push_back(run_.zip(f, any_complex(true), any_complex(false), local));
      };
      switch (run_.pick(rolls ? 24 : 23)) {
        case 0:
          zip(Add{});
          break;
        case 1:
          zip(Mul{});
          break;
        case 2:
          zip(Sub{});
          break;
        case 3:
          zip(TanhBackward{});
          break;
        case 4:
          zip(SigmoidBackward{});
          break;
        case 5:
          zip(Maximum{});
          break;
        case 6:
          map(Tanh{});
          break;
        case 7:
          map(Sigmoid{});
          break;
        case 8:
          map(Relu{});
          break;
        case 9:
          map(Affine{0.7, -0.3});
          break;
        case 10:
          map(Exp{});
          break;
        case 11:
          complexes.push_back(run_.zip(MakeComplex{}, any(true), any(true), local));
          break;
        case 12:
          complex_zip(Mul{});
          break;
        case 13:
          complex_zip(Div{});
          break;
        case 14:
          complex_zip(Add{});
          break;
        case 15:
          complex_zip(Sub{});
          break;
        case 16:
          complexes.push_back(run_.map(Sign{}, any_complex(true), local));
          break;
        case 17:
          complexes.push_back(run_.map(Affine{0.7, -0.3}, any_complex(true), local));
          break;
        case 18:
          operands_.push_back(run_.map(Abs{}, any_complex(true), local));
          break;
        case 19:
          operands_.push_back(run_.cast(any_complex(true), dtype, local));
          break;
        case 20:
          complexes.push_back(run_.cast(any(true), z, local));
          break;
        case 21:
        case 22: {  // a condition, and what it selects
          const int c = run_.pick(2) ? run_.zip(Less{}, any(true), any(false), true)
                                     : run_.zip(Equal{}, any_complex(true), any_complex(false), true);
          conditions.push_back(run_.map(Not{}, c, local || rolls));
          const int chosen = conditions[static_cast<std::size_t>(run_.pick(std::ssize(conditions)))];
          if (run_.pick(2))
            operands_.push_back(run_.select(chosen, any(true), any(true), local));
          else
            complexes.push_back(run_.select(chosen, any_complex(true), any_complex(true), local));
          break;
        }
        default:
          operands_.push_back(run_.roll(any(true), run_.pick(columns), local));
      }
    }
  }

  std::string text() const { return group_source(run_.args()); }
  /// Do the interpreter and the function make the same of the same memory?
  bool same(GroupFunction f) {
    const auto start = run_.memory();
    FusedArgs args = run_.args();
    backend("cpu").resolve(args);
    backend("cpu").fused(args);
    const auto wanted = run_.results();
    run_.restore(start);
    const bool changes = run_.results() != wanted;
    f(run_.args());
    return changes && alike(run_.results(), wanted);
  }

 private:
  /// A row, repeated for a block, as loops have their biases.
  void add_repeated(DType dtype) {
    const int row = run_.add(dtype, 0, 1, false);
    const FusedOperand from = run_.operands[static_cast<std::size_t>(row)];
    const auto bytes = static_cast<std::size_t>(run_.columns) * from.element_bytes;
    repeated_.resize(static_cast<std::size_t>(FusedArgs::block / run_.columns) * bytes);
    for (std::size_t at = 0; at < repeated_.size(); at += bytes)
      std::copy_n(from.data, bytes, repeated_.begin() + static_cast<std::ptrdiff_t>(at));
    run_.operands[static_cast<std::size_t>(row)] = {repeated_.data(), run_.columns, 1, from.element_bytes, true};
    operands_.push_back(row);
  }

  FusedRunMaker run_;
  std::vector<int> operands_;
  std::vector<std::byte> repeated_;
};

/// Gives the first two operands numbers at the edges, each of the first beside each of the second.
void put_edges(const FusedRunMaker& run) {
  dispatch_floating(run.of(0), [&]<class T>(std::type_identity<T>) {
    constexpr T most = std::numeric_limits<T>::max(), inf = std::numeric_limits<T>::infinity();
    const T edges[] = {0, T(-0.0), 1, inf, -inf, T(NAN), most / 2, -most / 2, 1 / most, std::log(most) - T(0.1)};
    constexpr auto n = static_cast<std::int64_t>(std::size(edges));
    for (std::int64_t i = 0; i < run.rows * run.columns; ++i) {
      std::memcpy(run.operands[0].data + i * sizeof(T), &edges[i % n], sizeof(T));
      std::memcpy(run.operands[1].data + i * sizeof(T), &edges[i / n % n], sizeof(T));
    }
  });
}

std::vector<std::string> simple_texts() {
  FusedRunMaker run(2, 32, 1);
  run.map(Tanh{}, run.add_full(DType::f32, false), false);
  return {group_source(run.args())};
}

}  // namespace

TEST_CASE("groups at random: a compiled group gives the interpreter's bits") {
  const TempDir folder;
  GroupCompiler compiler(folder / "cache");
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::string> texts;
  std::uint64_t seed = 0;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t columns : {1, 2, 7, 16, 17, 33, 128, 500, 1031}) {
      for (const int calls : {1, 5, 14, 40}) {
        ++seed;
        auto group = std::make_unique<Group>(seed, dtype, seed % 5 == 0 ? 40 : 1 + static_cast<std::int64_t>(seed % 7),
                                             columns, calls);
        if (std::string text = group->text(); !text.empty()) {
          texts.push_back(std::move(text));
          groups.push_back(std::move(group));
        }
      }
    }
  }
  CHECK(groups.size() > 40);
  const std::vector<GroupFunction> functions = compiler.compile(texts);
  REQUIRE(functions.size() == texts.size());
  for (std::size_t i = 0; i < groups.size(); ++i) CHECK_MESSAGE(groups[i]->same(functions[i]), texts[i]);
}

TEST_CASE("all functions") {
  const TempDir folder;
  GroupCompiler compiler(folder / "cache");
  for (const DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    const auto all = all_functions(dtype, 3, 37);
    // One group for each function: what the compiler does not see together it cannot contract.
    std::vector<std::string> texts;
    std::vector<FusedArgs> args;
    for (const FusedCall& call : all->calls) {
      const FusedArgs one{all->rows, all->columns, {call}, all->operands};
      if (std::string text = group_source(one); !text.empty()) {
        texts.push_back(std::move(text));
        args.push_back(one);
      }
    }
    CHECK(texts.size() > (is_complex(dtype) ? 12 : 40));
    const std::vector<GroupFunction> functions = compiler.compile(texts);
    REQUIRE(functions.size() == texts.size());
    for (const bool edges : {false, true}) {
      CAPTURE(edges);
      if (edges && (is_complex(dtype) || sanitized)) continue;  // sanitized: rounding decides what remains of 1e38
      if (edges) put_edges(*all);
      const auto start = all->memory();
      const auto wanted = all->cpu_fallback();
      all->restore(start);
      for (std::size_t i = 0; i < args.size(); ++i) functions[i](args[i]);
      std::size_t same = 0, k = 0;
      const auto got = all->results();
      for (const FusedCall& call : all->calls) {
        const FusedArgs one{all->rows, all->columns, {call}, all->operands};
        if (!group_source(one).empty()) {
          CAPTURE(call.functor);
          CHECK(alike({got[k]}, {wanted[k]}));
          ++same;
        }
        ++k;
      }
      CHECK(same == texts.size());
    }
  }
}

TEST_CASE("zeros have the interpreter's signs, and exponents may be infinite or NaN") {
  const TempDir folder;
  GroupCompiler compiler(folder / "cache");
  FusedRunMaker run(3, 20, 1);
  const int x = run.add_full(DType::f32, false), z = run.cast(x, DType::c64, true);  // imaginary parts are 0
  run.map(Conj{}, z, false);
  run.map(Neg{}, z, false);
  run.zip(Mul{}, run.map(Conj{}, z, true), z, false);
  for (const double exponent : {double(INFINITY), double(NAN)}) run.map(Power{exponent}, x, false);
  const std::vector<GroupFunction> functions = compiler.compile({group_source(run.args())});
  REQUIRE(functions.size() == 1);
  const auto start = run.memory();
  const auto wanted = run.cpu_fallback();
  run.restore(start);
  functions[0](run.args());
  CHECK(std::signbit(wanted[0][0].imag()));
  CHECK(alike(run.results(), wanted));
}

TEST_CASE("compiled once; damaged, shortened and foreign files are compiled anew") {
  const TempDir folder;
  const std::string cache = folder / "cache";
  const auto compiled = [&] {
    GroupCompiler compiler(cache);
    CHECK(compiler.compile(simple_texts()).size() == 1);
    return compiler.compiled();
  };
  CHECK(GroupCompiler(cache).cached(simple_texts()).empty());
  CHECK(compiled() == 1);
  CHECK(GroupCompiler(cache).cached(simple_texts()).size() == 1);
  CHECK(compiled() == 0);
  const std::string file = fs::directory_iterator(cache)->path();
  const auto rewrite = [&](auto&& change) {
    std::ifstream in(file, std::ios::binary);
    std::string all(std::istreambuf_iterator<char>(in), {});
    change(all);
    std::ofstream(file, std::ios::binary) << all;
  };
  rewrite([](std::string& s) { s[s.size() / 2] = static_cast<char>(s[s.size() / 2] ^ 1); });
  CHECK(compiled() == 1);
  rewrite([](std::string& s) { s.resize(s.size() - 100); });
  CHECK(compiled() == 1);
  rewrite([](std::string& s) { s = "not ours"; });
  CHECK(compiled() == 1);
  rewrite([](std::string& s) { s.clear(); });
  CHECK(compiled() == 1);
  CHECK(compiled() == 0);
}

TEST_CASE("without a compiler there is nothing; without a cache there are functions") {
  const TempDir folder;
  CHECK(GroupCompiler(folder / "cache", folder / "no-such-compiler").compile(simple_texts()).empty());
  CHECK(GroupCompiler(folder / "cache", "/bin/false").compile(simple_texts()).empty());
  CHECK(GroupCompiler("/proc/1/none").compile(simple_texts()).size() == 1);
  CHECK(GroupCompiler("").compile(simple_texts()).size() == 1);
  GroupCompiler stopped(folder / "cache");
  stopped.stop();
  CHECK(stopped.compile(simple_texts()).empty());
}

TEST_CASE("the oldest files go when the cache is full") {
  const TempDir folder;
  const KernelFiles all(folder / "cache"), files(folder / "cache", 1000);
  for (int i = 0; i < 8; ++i) {
    all.write(fmt::format("{}.so", i), std::string(200, static_cast<char>('a' + i)));
    fs::last_write_time(folder / fmt::format("cache/{}.so", i),
                        fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  files.write("last.so", std::string(200, 'z'));
  CHECK(files.read("last.so") == std::string(200, 'z'));
  CHECK(files.read("0.so").empty());
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder / "cache")) bytes += entry.file_size();
  CHECK(bytes <= 1000);
}

TEST_CASE("a loop's groups take over when they are compiled, and only with the interpreter's bits") {
  const TempDir folder;
  setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  const auto run = all_functions(DType::f32, 4, 40);
  FusedArgs args{run->rows, run->columns, {run->calls[0]}, run->operands};
  backend("cpu").resolve(args);
  /// Does the group have a function after a loop of so many steps?
  const auto takes = [&](const char* mode, const cpu::CompiledGroups::Interpreter& interpreter, std::int64_t steps,
                         int seconds) {
    setenv("REEL_COMPILE", mode, 1);
    cpu::CompiledGroups groups(interpreter);
    cpu::CompiledGroup* const group = groups.find(args);
    REQUIRE((group != nullptr) == (mode != std::string("off")));
    args.compiled = group;
    LoweredLoop loop{steps, {}, {{KernelCall::of<Kernel::fused>(args), {}}}};
    groups.runs(backend("cpu"), loop);
    for (int i = 0; group && !group->function && i < 100 * seconds; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return group && group->function;
  };
  const auto wrong = [](const FusedArgs& a) {
    cpu::interpret(a);
    *reinterpret_cast<float*>(a.operands[static_cast<std::size_t>(a.calls[0].out)].data) += 1;
  };
  CHECK(!takes("off", cpu::interpret, 1 << 30, 0));
  CHECK(!takes("", cpu::interpret, 10, 0));
  CHECK(!takes("", cpu::interpret, 1 << 20, 0));  // it is looked up, and not there
  CHECK(takes("", cpu::interpret, 1 << 30, 60));  // compiled on another thread
  CHECK(takes("", cpu::interpret, 1 << 20, 0));   // found
  CHECK(takes("wait", cpu::interpret, 1, 0));
  CHECK(!takes("wait", wrong, 1, 0));
  CHECK(!takes("", wrong, 1 << 30, 1));
  unsetenv("REEL_COMPILE");
  CHECK_THROWS_AS(takes("on", cpu::interpret, 1, 0), Error);
  unsetenv("REEL_COMPILE");
}
