// The kernel of reductions, run on the host by threads that wait for each other, against the CPU's, to the last bit:
// all kinds and dtypes of rows, columns and parts of both, of views that begin anywhere.
#include "backends/cuda/kernels/reduce_plan.h"
#include "tests/emulator/host_kernels.h"
#include "tests/support/check.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

struct Arguments {
  gpu::ReducePlan plan;
  bool gathers, aligned;
  const void* in;
  void *parts, *out;
};

/// A dtype as the kernel sees it, and how many elements of it make 16 bytes.
struct Type {
  DType dtype;
  const char *name, *wide;
  int per;
};
constexpr Type types[] = {{DType::f32, "float", "double", 4},
                          {DType::f64, "double", "double", 2},
                          {DType::c64, "DeviceComplex<float>", "DeviceComplex<double>", 2},
                          {DType::i32, "std::uint32_t", "std::uint32_t", 4},
                          {DType::boolean, "std::uint8_t", "std::uint8_t", 16}};

/// Kernels of a type: for rows, for all else, and the second stage.
std::vector<std::string> texts_of(const Type& type, std::size_t first) {
  std::vector<std::string> out;
  const bool sums = type.dtype != DType::boolean;
  const std::string number = sums ? type.wide : type.name;
  for (int k = 0; k < 3; ++k) {
    const std::string name = HostKernels::name(first + out.size());
    out.push_back(fmt::format(
        "#include \"backends/cuda/kernels/reduce_kernel.h\"\nusing namespace reel::cuda;\n"
        "struct {0}_Arguments {{ ReducePlan plan; bool gathers, aligned; const {1}* in; {2}* parts; {3}* out; }};\n"
        "void {0}({0}_Arguments a) {{\n"
        "  reduce<{4}, {5}>(a.plan, a.gathers, a.aligned, a.in, a.parts, a.out);\n}}\n",
        name, k == 2 ? number : type.name, number, type.name, sums ? "SumOp" : "MaxOp", k == 0 ? type.per : 1));
  }
  return out;
}

}  // namespace

TEST_CASE("reductions: the kernel is the CPU's, to the last bit") {
  if (!HostKernels::available()) return;
  std::vector<std::string> texts;
  for (const Type& type : types) {
    for (const std::string& text : texts_of(type, texts.size())) texts.push_back(text);
  }
  const HostKernels kernels(texts);
  struct Axis {
    std::int64_t n, in, out;  // extent; steps in the argument and in the result
  };
  const std::vector<std::vector<Axis>> loops{
      {{1000, 1, 0}},                         // all
      {{70000, 1, 0}},                        // of many, in parts
      {{5, 1024, 1}, {1024, 1, 0}},           // rows
      {{3, 40000, 1}, {40000, 1, 0}},         // long ones, in parts
      {{2500, 37, 1}, {37, 1, 0}},            // many, a warp for each, that begin anywhere
      {{2100, 256, 1}, {256, 1, 0}},          // and at vectors
      {{300, 48, 0}, {48, 1, 1}},             // columns
      {{9, 60, 10}, {6, 10, 0}, {10, 1, 1}},  // an axis between
      {{7, 60, 0}, {6, 10, 1}, {10, 1, 0}},   // two, with one between
      {{40, 1, 1}, {1, 1, 0}},                // nothing to add
  };
  int parts = 0, aligned = 0, warps = 0;
  for (std::size_t k = 0; k < std::size(types); ++k) {
    const Type& type = types[k];
    const std::size_t bytes = size_of(type.dtype);
    for (const auto& axes : loops) {
      for (const std::int64_t skip : {0, 1}) {
        StridedLoop<2> loop;
        std::int64_t size = 1, results = 1;
        for (const Axis& a : axes) {
          loop.push(a.n, {a.in, a.out});
          size += (a.n - 1) * a.in;
          if (a.out > 0) results *= a.n;
        }
        CAPTURE(type.name);
        CAPTURE(axes.size());
        CAPTURE(axes[0].n);
        CAPTURE(skip);
        const Tensor numbers = floor(uniform({size + skip}, -9, 9, 3, 1, DType::f64));  // whole, so that sums are exact
        const Tensor in =
            type.dtype == DType::c64 ? cast(complex(numbers, flip(numbers)), DType::c64) : cast(numbers, type.dtype);
        const auto* const first = static_cast<const std::byte*>(in.data()) + static_cast<std::size_t>(skip) * bytes;
        Tensor wanted = Tensor::empty({type.dtype, {results}, &backend()}), got = Tensor::empty(wanted.spec());
        const Reduction kind = type.dtype == DType::boolean ? Reduction::max : Reduction::sum;
        backend("cpu").reduce({kind, type.dtype, loop, results, first, const_cast<void*>(wanted.data())});
        const gpu::ReducePlan plan = gpu::plan_reduction(loop);
        const bool rows = plan.in_rows();
        std::vector<std::complex<double>> room(static_cast<std::size_t>(plan.results * plan.splits));
        Arguments a{plan, false, false, first, room.data(), const_cast<void*>(got.data())};
        if (rows) {
          const auto place = reinterpret_cast<std::uintptr_t>(first);
          a.aligned = place % 16 == 0 && plan.is_aligned(static_cast<const char*>(nullptr), type.per);
          aligned += a.aligned;
        }
        const std::int64_t blocks = (plan.results + plan.across - 1) / plan.across * plan.splits;
        kernels.call(3 * k + (rows ? 0 : 1), &a, std::min<std::int64_t>(blocks, 64), gpu::threads_per_block);
        warps += plan.rows && plan.down <= 32 && plan.results > 2048;
        if (plan.splits > 1) {
          ++parts;
          const gpu::ReducePlan second = gpu::plan_second_stage(plan);
          const Arguments b{second, true, false, room.data(), room.data(), const_cast<void*>(got.data())};
          kernels.call(3 * k + 2, &b, (second.results + second.across - 1) / second.across, gpu::threads_per_block);
        }
        CHECK(elements(got) == elements(wanted));
      }
    }
  }
  CHECK(parts > 10);
  CHECK(aligned > 5);
  CHECK(warps > 10);
}
