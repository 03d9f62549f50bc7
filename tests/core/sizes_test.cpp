// Sizes that no memory holds and no integer counts: refused in words, before anything is asked for.
#include <sys/stat.h>

#include <fstream>
#include <future>
#include <limits>

#include "backends/cpu/memory_limit.h"
#include "backends/shared/allocator.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max(), half = std::int64_t{1} << 62;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("a shape has at most 2^58 elements, of extents that are not 0") {
  CHECK(Shape{std::int64_t{1} << 58}.numel() == std::int64_t{1} << 58);
  CHECK(Shape{std::int64_t{1} << 29, std::int64_t{1} << 29}.numel() == std::int64_t{1} << 58);
  CHECK(Shape{0, std::int64_t{1} << 58}.numel() == 0);
  const auto refused = [](const auto& make, const std::string& shape) {
    CHECK(error_of(make) == "[tensor] a tensor has at most 2^58 elements, got shape " + shape);
  };
  refused([] { Shape{(std::int64_t{1} << 58) + 1}; }, "(288230376151711745,)");
  refused([] { Shape{1 << 30, 1 << 30}; }, "(1073741824, 1073741824)");
  refused([] { Shape{half, half, 4}; }, "(4611686018427387904, 4611686018427387904, 4)");  // wraps around to 0
  refused([] { Shape{0, largest, 2}; }, "(0, 9223372036854775807, 2)");
  refused([] { Shape{2, 3}.insert(1, largest); }, "(2, 9223372036854775807, 3)");
  refused([] { Shape({2, 3}).set(0, half); }, "(4611686018427387904, 3)");
  refused([] { broadcast({1 << 30, 1}, {1, 1 << 30}); }, "(1073741824, 1073741824)");
  CHECK(error_of([] { Shape({2, 3}).set(0, -1); }) == "[tensor] the extent of an axis is 0 or more, got -1 for axis 0");
}

TEST_CASE("ops refuse results that cannot be counted") {
  const Tensor x = Tensor::zeros({2, 3});
  const auto says = [](const auto& make, const std::string& op) {
    const std::string text = error_of(make);
    CHECK_MESSAGE(contains(text, "[" + op + "] a tensor has at most 2^58 elements"), text);
  };
  says([&] { reshape(x, {half, 4, -1}); }, "reshape");
  says([&] { pad(x, 0, largest, largest); }, "pad");
  says([&] { tile(x, {half, half}); }, "tile");
  says([&] { repeat(x, largest); }, "repeat");
  says([&] { overlap_add(x, largest); }, "overlap_add");
  CHECK(!error_of([&] { split_with_sizes(x, {largest, largest, 5}, 1); }).empty());  // adds up to 3 around the end
}

TEST_CASE("a tensor that the machine has no memory for is refused before it is asked for") {
  const MemoryLimit limit = backend("cpu").memory_limit();
  CHECK(limit.bytes < std::size_t{1} << 50);
  const std::size_t calls = backend("cpu").memory().system_calls;
  const std::string text = error_of([] { Tensor::zeros({1 << 29, 1 << 29}); });
  CHECK_MESSAGE(contains(text, "[memory] no room for f32 (536870912, 536870912): 1.15 EB are needed beside "), text);
  CHECK_MESSAGE(contains(text, limit.text), text);
  CHECK(backend("cpu").memory().system_calls == calls);
  CHECK(Tensor::zeros({2}).numel() == 2);
}

TEST_CASE("what needs more memory than there is says so") {
  CHECK(memory_text(999) == "999 bytes");
  CHECK(memory_text(1234) == "1.23 kB");
  CHECK(memory_text(999.9e9) == "1 TB");
  const Backend& cpu = backend("cpu");
  cpu.require_memory("test", "a few", 1000, "none");
  const std::string text = error_of([&] { cpu.require_memory("test", "many of them", 4e15, "fewer"); });
  CHECK(text == fmt::format("[test] many of them need 4 PB, {}. Hint: fewer", cpu.memory_limit().text));
}

TEST_CASE("limits of control groups, of both versions") {
  const TempDir dir;
  for (const char* folder : {"/a", "/a/b", "/memory", "/memory/c"}) mkdir((dir.path + folder).c_str(), 0755);
  const auto limit = [&](const std::string& groups) { return cpu::group_limit(groups, dir.path); };
  CHECK(!limit("0::/a/b\n"));
  write(dir.path + "/a/b/memory.max", "max\n");
  CHECK(!limit("0::/a/b\n"));
  write(dir.path + "/a/memory.max", "5000\n");  // the group around it
  CHECK(limit("0::/a/b\n") == 5000);
  write(dir.path + "/a/b/memory.max", "3000\n");
  CHECK(limit("0::/a/b\n") == 3000);
  CHECK(limit("1:cpu:/\n0::/a\n") == 5000);
  write(dir.path + "/memory/c/memory.limit_in_bytes", "700\n");
  CHECK(limit("7:cpuset:/c\n4:hugetlb,memory:/c\n") == 700);
  CHECK(!limit("4:cpu:/c\n"));
  CHECK(!limit("nonsense\n::\n"));
}

TEST_CASE("an allocator gives its cache back, and then nothing, where its limit is") {
  std::size_t asked = 0;
  CachingAllocator allocator(
      [&](std::size_t bytes) {
        ++asked;
        return std::malloc(bytes);
      },
      [](void* block, std::size_t) { std::free(block); }, false, 10000);
  CHECK(allocator.allocate(largest) == nullptr);
  CHECK(allocator.allocate(10001) == nullptr);
  CHECK(asked == 0);
  void* const a = allocator.allocate(4096);
  allocator.release(a, 4096);
  void* const b = allocator.allocate(8000);  // with what is cached it would be too much
  REQUIRE(b != nullptr);
  CHECK(asked == 2);
  CHECK(allocator.use().cached_bytes == 0);
  CHECK(allocator.allocate(4096) == nullptr);
  allocator.release(b, 8000);
  void* const c = allocator.allocate(4096);
  CHECK(c != nullptr);
  allocator.release(c, 4096);
}

TEST_CASE("an allocator gives cached blocks while another thread waits for the system") {
  std::promise<void> asks, served;
  bool slow = false, in_time = false;
  CachingAllocator allocator(
      [&](std::size_t bytes) {
        if (slow) asks.set_value(), in_time = served.get_future().wait_for(60s) == std::future_status::ready;
        return std::malloc(bytes);
      },
      [](void* block, std::size_t) { std::free(block); });
  void* const a = allocator.allocate(64);
  allocator.release(a, 64);
  slow = true;
  auto other = std::async(std::launch::async, [&] { return allocator.allocate(4096); });
  asks.get_future().wait();
  CHECK(allocator.allocate(64) == a);
  CHECK(allocator.use().system_calls == 2);
  served.set_value();
  void* const b = other.get();
  CHECK(in_time);
  CHECK(b != nullptr);
  allocator.release(a, 64);
  allocator.release(b, 4096);
}

TEST_CASE("elements and axes that are not there") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK(x.at(1).shape() == Shape{3});
  for (const std::int64_t t : {-1, 2, 5})
    CHECK(contains(error_of([&] { x.at(t); }), fmt::format("[at] there is no element {} along the first axis", t)));
  CHECK(contains(error_of([] { Tensor::zeros({}).at(0); }), "the shape is ()"));
  CHECK(x.dim(-2) == 2);
  for (const int axis : {-3, 2, 5}) CHECK(contains(error_of([&] { x.dim(axis); }), fmt::format("axis {}", axis)));
  const Tensor twelve = Tensor::zeros({4, 3});
  CHECK(twelve.view({2, 3}, 6).shape() == Shape{2, 3});
  CHECK(error_of([&] { twelve.view({100}); }) == "[view] (100,) from element 0 on is not within f32 (4, 3)");
  CHECK(error_of([&] { twelve.view({2, 3}, 7); }) == "[view] (2, 3) from element 7 on is not within f32 (4, 3)");
  CHECK(error_of([&] { twelve.view({3}, -1); }) == "[view] (3,) from element -1 on is not within f32 (4, 3)");
  CHECK(
      contains(error_of([&] { twelve.view({1}, largest); }), "[view] (1,) from element 9223372036854775807 on is not"));
  CHECK(error_of([] { Tensor::empty({DType::f32, Shape{2}}); }) == "[empty] f32 (2,) has no backend. Hint: &backend()");
}

TEST_CASE("a step that is traced has no values to write into, and none for the stream of a dropout") {
  const Tensor h = Tensor::zeros({2, 3}), xs = Tensor::zeros({4, 2, 3}), seen = Tensor::zeros({2, 3});
  const auto said = [&](const std::function<Tensor(const Tensor&)>& f) {
    return error_of([&] {
      scan([&](const Tensors& s, const Tensors& x) { return Next{{f(s[0] + x[0])}, {}}; }, {h}, {xs});
    });
  };
  CHECK(
      contains(said([&](const Tensor& n) { return Tensor(seen).assign(n), n; }), "[assign] this tensor has no value"));
  CHECK(
      contains(said([&](const Tensor& n) { return Tensor(n).assign(seen), n; }), "[assign] this tensor has no value"));
  CHECK(contains(said([&](const Tensor& n) { return Tensor(n).mark_changed(), n; }), "[mark_changed] this tensor has"));
  CHECK(contains(said([&](const Tensor& n) { return dropout(n, 0.5, 3, 4, cast(sum(n), DType::f64)); }),
                 "[dropout] the offset has no value"));
}
