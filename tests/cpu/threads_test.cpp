// Threads of the CPU: what they compute is what one computes, whatever the batch, and however many the system gives.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "backends/cpu/threads/cores.h"
#include "backends/cpu/threads/thread_pool.h"
#include "tests/support/affinity.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

int threads_to_start = 1 << 20;  // before the system refuses

/// Work is shared out for so many threads while it lives.
struct Threads {
  explicit Threads(int n) { backend().set_threads(n); }
  ~Threads() { backend().set_threads(1); }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * size_of(a.dtype())) == 0;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

/// Goes before that of the C library: a system that refuses to start threads.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*f)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return threads_to_start-- > 0 ? create(thread, attributes, f, argument) : EAGAIN;
}

TEST_CASE("each part is done once, by no more threads than there are cores") {
  for (const auto& [threads, cores] : {std::array{1, 4}, {2, 1}, {2, 2}, {3, 8}, {5, 5}, {40, 3}}) {
    cpu::ThreadPool pool;
    pool.resize(threads, cores);
    CHECK(pool.threads() == threads);
    CHECK(pool.members() == std::min(threads, cores));
    for (const int parts : {0, 1, 2, 3, 7, 64, 1, 5}) {
      CAPTURE(threads);
      CAPTURE(cores);
      CAPTURE(parts);
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(parts));
      std::mutex lock;
      std::set<std::thread::id> who;
      std::atomic<int> nested{0};
      pool.run(parts, [&](int p) {
        ++done[static_cast<std::size_t>(p)];
        pool.run(3, [&](int) { ++nested; });  // work within a part stays on its thread
        const std::lock_guard guard(lock);
        who.insert(std::this_thread::get_id());
      });
      CHECK(std::all_of(done.begin(), done.end(), [](const auto& n) { return n == 1; }));
      CHECK(std::ssize(who) <= std::min({threads, cores, std::max(parts, 1)}));
      CHECK(nested == 3 * parts);
    }
  }
}

TEST_CASE("parts are done alone, on one core, too") {  // else results would depend on the number of cores
  for (const int cores : {1, 2}) {
    cpu::ThreadPool pool;
    pool.resize(2, cores);
    std::array<bool, 2> inside{};
    pool.run(2, [&](int p) { inside[static_cast<std::size_t>(p)] = cpu::ThreadPool::inside(); });
    CHECK(inside == std::array{true, true});
    CHECK(!cpu::ThreadPool::inside());
  }
}

TEST_CASE("several threads may call at once, each for its own work") {
  cpu::ThreadPool pool;
  pool.resize(3, 3);
  std::array<std::atomic<int>, 4> sums{};
  std::vector<std::thread> callers;
  for (std::atomic<int>& sum : sums) {
    callers.emplace_back([&] {
      for (int call = 0; call < 50; ++call) pool.run(5, [&](int p) { sum += p; });
    });
  }
  for (std::thread& t : callers) t.join();
  for (const std::atomic<int>& sum : sums) CHECK(sum == 500);
}

TEST_CASE("an error in a part comes out, whichever thread has it, and the next call works") {
  cpu::ThreadPool pool;
  pool.resize(3, 3);
  for (int bad = 0; bad < 7; ++bad) {
    CAPTURE(bad);
    CHECK(error_of([&] {
            pool.run(7, [&](int p) {
              if (p == bad) throw Error("part", fmt::format("{}", p));
            });
          }) == fmt::format("[part] {}", bad));
    std::atomic<int> sum{0};
    pool.run(7, [&](int p) { sum += p; });
    CHECK(sum == 21);
  }
  CHECK(contains(error_of([&] { pool.run(7, [](int) { throw Error("part", "all"); }); }), "all"));
}

TEST_CASE("an error in a thread's part of a loop is an error") {
  const Tensor h = random({4, 3}, 1), table = random({6, 3}, 2),
               start = Tensor::from<std::int32_t>({-9, -9, -9, 0}, {4}), one = Tensor::full({4}, 1, DType::i32);
  const Step step = [&](const Tensors& s, const Tensors&) {  // the last row counts up to 6, which is in no table
    return Next{{tanh(s[0] + embedding(maximum(s[1], 0 * one), table)), s[1] + one}, {}};
  };
  const Threads pool(2);
  const std::string text = error_of([&] { scan(step, {h, start}, {}, {.length = 8}); });
  CHECK_MESSAGE(contains(text, "index 6"), text);
  CHECK_MESSAGE(contains(text, "not in 0..5"), text);
}

TEST_CASE("a system that starts fewer threads: a warning, and all parts are done") {
  const int before = warnings("threads");
  threads_to_start = 2;
  cpu::ThreadPool pool;
  pool.resize(8, 8);
  threads_to_start = 1 << 20;
  CHECK(pool.threads() == 8);
  CHECK(pool.members() == 3);
  CHECK(warnings("threads") == before + 1);
  std::atomic<int> sum{0};
  pool.run(8, [&](int p) { sum += 1 << p; });
  CHECK(sum == 255);
  pool.resize(8, 8);
  CHECK(pool.members() == 8);
}

TEST_CASE("cores: those that the process may use") {
  const int all = available_cores();
  CHECK(all >= 1);
  const OneCore core;
  CHECK(all <= CPU_COUNT(&core.before));
  CHECK(available_cores() == 1);
}

TEST_CASE("cores: control groups limit them, of version 2") {
  const TempDir dir;
  const std::filesystem::path root = dir.path;
  CHECK(cores_by_quota("0::/a/b\n", dir.path) == 0);
  write(root / "a/b/cpu.max", "max 100000\n");
  CHECK(cores_by_quota("0::/a/b\n", dir.path) == 0);
  write(root / "a/b/cpu.max", "250000 100000\n");
  CHECK(cores_by_quota("0::/a/b\n", dir.path) == 3);
  write(root / "a/cpu.max", "150000 100000\n");  // a group above
  CHECK(cores_by_quota("0::/a/b\n", dir.path) == 2);
  write(root / "cpu.max", "20000 100000\n");  // that of a container, whose path is the host's
  CHECK(cores_by_quota("0::/system/docker/0a1b\n", dir.path) == 1);
  CHECK(cores_by_quota("0::/../../elsewhere\n", dir.path) == 1);
  CHECK(cores_by_quota("nonsense\n:\n", dir.path) == 0);
}

TEST_CASE("cores: control groups limit them, of version 1, and of both at once") {
  const TempDir dir;
  const std::filesystem::path root = dir.path;
  const std::string groups = "3:cpuset:/\n2:cpu,cpuacct:/x\n1:name=systemd:/\n";
  write(root / "cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  write(root / "cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  CHECK(cores_by_quota(groups, dir.path) == 0);
  write(root / "cpu,cpuacct/x/cpu.cfs_quota_us", "350000\n");
  CHECK(cores_by_quota(groups, dir.path) == 4);
  write(root / "cpu/cpu.cfs_quota_us", "200000\n");
  write(root / "cpu/cpu.cfs_period_us", "100000\n");
  CHECK(cores_by_quota(groups, dir.path) == 2);
  CHECK(cores_by_quota("2:cpuacct:/x\n", dir.path) == 0);
  write(root / "unified/cpu.max", "100000 100000\n");
  CHECK(cores_by_quota(groups + "0::/\n", dir.path) == 1);
}

TEST_CASE("products on threads are those on one, in all forms, to the last bit") {
  for (const DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    for (int flags = 0; flags < (is_complex(dtype) ? 16 : 4); ++flags) {
      const MatmulFlags f{.transpose_a = (flags & 1) != 0,
                          .transpose_b = (flags & 2) != 0,
                          .conj_a = (flags & 4) != 0,
                          .conj_b = (flags & 8) != 0};
      // 2^17 multiplications are worth a thread; more rows, more columns, long sums, parts that do not come out even.
      for (const auto& [m, k, n] :
           {std::array<std::int64_t, 3>{203, 41, 67}, {67, 41, 203}, {517, 300, 3}, {3, 300, 517}, {21, 5001, 13}}) {
        const Tensor a = random(f.transpose_a ? Shape{k, m} : Shape{m, k}, 1, dtype),
                     b = random(f.transpose_b ? Shape{n, k} : Shape{k, n}, 2, dtype);
        CAPTURE(name_of(dtype));
        CAPTURE(flags);
        CAPTURE(m);
        const Tensor expected = matmul(a, b, f);
        for (const int threads : {2, 3, 5, 16}) {
          CAPTURE(threads);
          const Threads pool(threads);
          CHECK(same_bits(matmul(a, b, f), expected));
        }
      }
    }
  }
}

TEST_CASE("batches of products on threads are those on one, to the last bit") {
  for (const DType dtype : {DType::f32, DType::c128}) {
    for (const std::int64_t B : {2, 3, 5, 7}) {
      for (int flags = 0; flags < 4; ++flags) {
        const MatmulFlags f{.transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0};
        const Tensor a = random(f.transpose_a ? Shape{B, 40, 50} : Shape{B, 50, 40}, 1, dtype),
                     b = random(f.transpose_b ? Shape{B, 70, 40} : Shape{B, 40, 70}, 2, dtype);
        CAPTURE(B);
        CAPTURE(flags);
        const Tensor expected = matmul(a, b, f);
        for (const int threads : {2, 3, 5}) {
          const Threads pool(threads);
          CHECK(same_bits(matmul(a, b, f), expected));
        }
      }
    }
  }
}

TEST_CASE("ops on elements and rows give on threads what they give on one, to the last bit") {
  const auto results = [](const Tensor& x, const Tensor& column, const Tensor& row) {
    const Tensor z = complex(x, 0.5 * x);
    return Tensors{tanh(x),
                   x * row,
                   x - column,
                   x / (2 + transpose(transpose(x))),
                   where(x > 0, x, exp(x)),
                   cast(x, DType::f32),
                   softmax(x),
                   log_softmax(x),
                   cross_entropy(x, argmax(-x, 1), {.reduction = LossReduction::none}),
                   logsumexp(x),
                   standardize(x),
                   norm(x, 1, {1}),
                   norm(x, 3, {1}),
                   sum(x, {0}),
                   sum(x, {1}),
                   max(x, {1}),
                   logcumsumexp(sort(x), 0),
                   abs(z),
                   fft(z),
                   rfft(x),
                   irfft(z)};
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [rows, columns] : {std::array<std::int64_t, 2>{7, 9001}, {3001, 25}, {5, 20003}, {1, 70001}}) {
      const Tensor x = random({rows, columns}, 1, dtype), column = random({rows, 1}, 2, dtype),
                   row = random({columns}, 3, dtype);
      const Tensors expected = results(x, column, row);
      for (const int threads : {2, 3, 5}) {
        const Threads pool(threads);
        const Tensors got = results(x, column, row);
        for (std::size_t i = 0; i < got.size(); ++i) {
          CAPTURE(rows);
          CAPTURE(threads);
          CAPTURE(i);
          CHECK(same_bits(got[i], expected[i]));
        }
      }
    }
  }
}

TEST_CASE("loops on threads: values, gradients and theirs, for batches that shards do not divide; the same bits") {
  struct Loop {
    const char* name;
    std::function<Next(const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w)> step;
    Shape row, V;  // of the state; a parameter
    bool V_for_each_row = false;
  };
  const std::vector<Loop> loops{
      {"products",
       [](const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w) {
         return Next{{tanh(matmul(h, V) + x * w)}, {h}};
       },
       {8},
       {8, 8}},
      {"a matrix for each row",
       [](const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w) {
         return Next{{tanh(matmul(h, V) + matmul(h, matmul(transpose(h), x)) * w)}, {}};
       },
       {2, 8},
       {8, 8},
       true},
      {"a matrix for all, rows of several axes",
       [](const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w) {
         return Next{{tanh(matmul(h, V) + x * w)}, {sum(h, {1})}};
       },
       {2, 8},
       {8, 8}},
      {"transforms",
       [](const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w) {
         return Next{{tanh(irfft(rfft(h) * V) + x * w)}, {real(fft(h))}};
       },
       {8},
       {5}},
      {"rows",
       [](const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w) {
         return Next{{standardize(roll(h, 1) * V) + softmax(x) * logsumexp(h, {-1}, true) * w}, {}};
       },
       {8},
       {8}},
      {"lookups",
       [](const Tensor& h, const Tensor& x, const Tensor& V, const Tensor& w) {
         const Tensor symbols = argmax(slice(x, 1, 0, 5), 1);
         return Next{{tanh(h * w + embedding(symbols, V))}, {symbols}};
       },
       {8},
       {5, 8}}};
  for (const Loop& loop : loops) {
    for (const std::int64_t B : {1, 3, 13, 83}) {
      CAPTURE(loop.name);
      CAPTURE(B);
      const Shape state = loop.row.insert(0, B);
      const Tensor h = random(state, 1), xs = random(state.insert(0, 6), 2),
                   V = random(loop.V_for_each_row ? loop.V.insert(0, B) : loop.V, 3), w = random({8}, 4);
      const Step step = [&](const Tensors& s, const Tensors& x) { return loop.step(s[0], x[0], V, w); };
      const auto all = [&](bool scanned) {
        Tape tape;
        const ScanResult r = scanned ? scan(step, {h}, {xs}) : unroll(step, {h}, {xs});
        const Tensor loss = sum(square(r.last[0]));
        Tensors out = grad({loss}, Tensors{h, V, w, xs}, {.create_graph = true});
        const Tensors second = grad({sum(square(out[1])) + sum(square(out[3]))}, Tensors{h, V, w, xs});
        out.insert(out.end(), second.begin(), second.end());
        out.push_back(r.last[0]);
        out.insert(out.end(), r.ys.begin(), r.ys.end());
        return out;
      };
      const Tensors expected = all(false);
      const Tensors one = all(true);
      for (const int threads : {1, 2, 3, 5}) {
        CAPTURE(threads);
        const Threads pool(threads);
        const Tensors got = all(true);
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          CAPTURE(i);
          CHECK(difference(got[i], expected[i]) < 1e-12);
          CHECK(same_bits(got[i], one[i]));
        }
      }
    }
  }
}

TEST_CASE("large products within a loop's shards: the same bits on one thread, which could cut them, and on two") {
  const Tensor h = random({40, 2100}, 1, DType::f32), V = 0.02 * random({2100, 64}, 2, DType::f32),
               U = 0.2 * random({64, 2100}, 3, DType::f32);
  const Step step = [&](const Tensors& s, const Tensors&) { return Next{{tanh(matmul(matmul(s[0], V), U))}, {}}; };
  const auto results = [&] {
    Tape tape;
    const Tensor last = scan(step, {h}, {}, {.length = 3}).last[0];
    Tensors out = grad({sum(square(last))}, Tensors{h, V, U});
    out.push_back(last);
    return out;
  };
  const Tensors expected = results();
  for (const int threads : {2, 3}) {
    const Threads pool(threads);
    const Tensors got = results();
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
  }
}

TEST_CASE("more shards than rows: as many as rows") {
  struct Shards {
    explicit Shards(int n) { backend().set_shards(n); }
    ~Shards() { backend().set_shards(0); }
  };
  const Tensor h = random({3, 4}, 1), V = random({4, 4}, 2);
  const Step step = [&](const Tensors& s, const Tensors&) { return Next{{tanh(matmul(s[0], V))}, {}}; };
  const auto results = [&] {
    Tape tape;
    const Tensor last = scan(step, {h}, {}, {.length = 5}).last[0];
    Tensors out = grad({sum(square(last))}, Tensors{h, V});
    out.push_back(last);
    return out;
  };
  Tensors expected;
  {
    const Shards each(3);
    expected = results();
  }
  const Shards many(8);
  const Tensors got = results();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
}
