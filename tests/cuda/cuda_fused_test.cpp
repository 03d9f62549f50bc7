// Kernels that are generated for runs of elementwise calls. Their text is compiled for the host, too, and held against
// the CPU's kernel; NVRTC compiles it for a GPU that need not be there.
#include <fstream>
#include <map>

#include "backends/cuda/codegen/fused_source.h"
#include "backends/cuda/codegen/kernel_compiler.h"
#include "tasks/io/files.h"
#include "tests/emulator/host_kernels.h"
#include "tests/support/check.h"
#include "tests/support/fused_runs.h"
#include "tests/support/temp_dir.h"

using namespace reel;
namespace gpu = reel::cuda;
using namespace reel::test;

namespace {

constexpr int hopper = 90;

using Run = std::unique_ptr<FusedRunMaker>;

gpu::KernelSource source_of(const FusedRunMaker& run, const std::string& name = "fused") {
  const FusedArgs args = run.args();
  return gpu::fused_source(args, gpu::lay_out(args), name);
}
std::string text_of(const FusedRunMaker& run) { return source_of(run).text; }
HostKernels host_kernels(const std::vector<Run>& runs) {
  std::vector<std::string> texts;
  for (const Run& run : runs) texts.push_back(source_of(*run, HostKernels::name(texts.size())).text);
  return HostKernels(texts);
}
void launch(const HostKernels& kernels, std::size_t i, const FusedRunMaker& run) {
  kernels.call(i, gpu::fused_arguments(run.args(), gpu::lay_out(run.args())).data(), 3, 64);
}
std::string key_of(const FusedRunMaker& run) { return gpu::fused_key(run.args(), gpu::lay_out(run.args())); }

const std::vector<std::pair<std::int64_t, std::int64_t>> sizes{{1, 1},     {3, 7},    {5, 1},    {1, 900},
                                                               {40, 1024}, {33, 999}, {20, 2048}};

std::vector<Run> random_runs(int rounds) {
  std::vector<Run> runs;
  for (int i = 0; i < rounds; ++i) {
    for (const auto& [rows, columns] : sizes)
      runs.push_back(random_run(static_cast<std::uint64_t>(100 * i) + runs.size(), rows, columns, 2 + i * 4));
  }
  return runs;
}

}  // namespace

TEST_CASE("runs at random: the generated kernel computes what the CPU's does, to the last bit") {
  if (!HostKernels::available()) return;
  const std::vector<Run> runs = random_runs(6);
  const HostKernels kernels = host_kernels(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto wanted = runs[i]->cpu_fallback();
    for (const FusedCall& c : runs[i]->calls) {  // so that nothing is right because it was there
      const FusedOperand& o = runs[i]->operands[static_cast<std::size_t>(c.out)];
      if (!o.local)
        std::memset(o.data, 1, static_cast<std::size_t>(runs[i]->rows * runs[i]->columns) * o.element_bytes);
    }
    launch(kernels, i, *runs[i]);
    CHECK_MESSAGE((runs[i]->results() == wanted), text_of(*runs[i]));
  }
}

TEST_CASE("every function on every dtype: the generated kernel against the CPU's") {
  if (!HostKernels::available()) return;
  std::vector<Run> runs;
  for (DType d : all_dtypes) runs.push_back(all_functions(d, 3, 50));
  const HostKernels kernels = host_kernels(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(name_of(all_dtypes[i]));
    const auto wanted = runs[i]->cpu_fallback();
    launch(kernels, i, *runs[i]);
    const auto got = runs[i]->results();
    const double tolerance = real_of(all_dtypes[i]) == DType::f32 ? 1e-5 : 1e-13;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      double worst = 0;
      for (std::size_t e = 0; e < wanted[k].size(); ++e)
        worst = std::max(worst, std::abs(got[k][e] - wanted[k][e]) / std::max(1.0, std::abs(wanted[k][e])));
      CHECK_MESSAGE(worst < tolerance, fmt::format("call {}, functor {}", k, runs[i]->calls[k].functor));
    }
  }
}

TEST_CASE("NVRTC compiles the kernels, of every function and every dtype, for a GPU that is not here") {
  gpu::KernelCompiler compiler(hopper, "");
  REQUIRE(compiler.available());
  const auto compile = [&](const FusedRunMaker& run) {
    const std::string code = compiler.compile(source_of(run));
    CHECK(code.substr(1, 3) == "ELF");
    CHECK(contains(code, "fused"));
  };
  for (DType d : all_dtypes) {
    compile(*all_functions(d, 3, 50));
    if (!is_complex(d)) compile(*all_functions(d, 100, 1024));  // in packs
  }
  for (const Run& run : random_runs(2)) compile(*run);
  CHECK(error_of([&] {
          compiler.compile({"none", "this is no kernel"});
        }).find("NVRTC does not take") != std::string::npos);
}

TEST_CASE("a GPU newer than NVRTC gets PTX of the newest that NVRTC knows; one that is too old a warning") {
  gpu::KernelCompiler newer(9990, "");
  REQUIRE(newer.available());
  const std::string code = newer.compile(source_of(*all_functions(DType::f32, 3, 50)));
  CHECK(contains(code, ".target sm_"));
  CHECK(contains(code, ".entry fused"));
  const int before = warnings("cuda");
  gpu::KernelCompiler older(11, "");
  CHECK(!older.available());
  CHECK(!older.available());
  CHECK(warnings("cuda") == before + 1);
}

TEST_CASE("layouts: packs of 16 bytes where addresses and columns allow") {
  FusedRunMaker run(64, 1024, 1);
  const int x = run.add_full(DType::f32);
  run.map(Tanh{}, run.zip(Add{}, x, x, true), false);
  CHECK(gpu::lay_out(run.args()).per == 4);
  CHECK(gpu::lay_out(run.args()).rows == 1);  // one long row
  CHECK(contains(text_of(run), "AlignedVector<float, 4>"));
  CHECK(!contains(text_of(run), "column = "));  // no division to find it
  const int row = run.add(DType::f32, 0, 1), column = run.add(DType::f32, 1, 0);
  run.zip(Mul{}, run.zip(Mul{}, x, row, true), column, false);
  CHECK(gpu::lay_out(run.args()).per == 4);
  CHECK(gpu::lay_out(run.args()).rows == 64);
  CHECK(contains(text_of(run), "[row]"));
  run.add_full(DType::f64);
  CHECK(gpu::lay_out(run.args()).per == 2);
  run.add_full(DType::f64, true, 1);  // 8 bytes off
  CHECK(gpu::lay_out(run.args()).per == 1);
  FusedRunMaker little(20, 128, 1);
  little.map(Tanh{}, little.add_full(DType::f32), false);
  CHECK(gpu::lay_out(little.args()).per == 1);
  FusedRunMaker many(3, 1, 1);
  many.map(Tanh{}, many.add_full(DType::f32), false);
  many.rows = std::int64_t{1} << 31;
  CHECK(gpu::lay_out(many.args()).wide);
}

TEST_CASE("numbers are arguments: another value takes the same kernel; exponents and rolls are text") {
  const auto affine = [](double scale) {
    auto run = std::make_unique<FusedRunMaker>(20, 128, 1);
    run->map(Affine{scale, 1}, run->add_full(DType::f32), false);
    return run;
  };
  const auto a = affine(2), b = affine(3);
  CHECK(key_of(*a) == key_of(*b));
  CHECK(text_of(*a) == text_of(*b));
  const auto numbers = [](const FusedRunMaker& run) {
    return gpu::fused_arguments(run.args(), gpu::lay_out(run.args()));
  };
  REQUIRE(numbers(*a).size() == 6);  // two sizes, two addresses, two numbers
  double scale = 0;
  std::memcpy(&scale, &numbers(*b)[4], sizeof(scale));
  CHECK(scale == 3);
  const auto power = [](double exponent, std::int64_t places) {
    auto run = std::make_unique<FusedRunMaker>(20, 128, 1);
    run->map(Power{exponent}, run->roll(run->add_full(DType::f32), places, true), false);
    return run;
  };
  CHECK(key_of(*power(2, 1)) == key_of(*power(2, 1)));
  CHECK(key_of(*power(2, 1)) != key_of(*power(3, 1)));
  CHECK(key_of(*power(2, 1)) != key_of(*power(2, 2)));
  CHECK(contains(text_of(*power(2.5, 1)), "0x1.4p+1"));
}

TEST_CASE("exponents that are infinite or NaN: as the CPU has them") {
  std::vector<Run> runs;
  for (const double exponent : {double(INFINITY), -double(INFINITY), double(NAN), -1e300}) {
    auto run = std::make_unique<FusedRunMaker>(3, 50, 1);
    run->map(Power{exponent}, run->zip(Add{}, run->add_full(DType::f64, false), run->add_full(DType::f64, false), true),
             false);
    runs.push_back(std::move(run));
  }
  gpu::KernelCompiler compiler(hopper, "");
  for (const Run& run : runs) CHECK(compiler.compile(source_of(*run)).substr(1, 3) == "ELF");
  if (!HostKernels::available()) return;
  const HostKernels kernels = host_kernels(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(i);
    const auto wanted = runs[i]->cpu_fallback();
    launch(kernels, i, *runs[i]);
    const auto got = runs[i]->results();
    CHECK(std::equal(got[0].begin(), got[0].end(), wanted[0].begin(), [](const auto& x, const auto& y) {
      return x == y || (std::isnan(x.real()) && std::isnan(y.real()));
    }));
  }
}

TEST_CASE("equal keys have equal texts") {
  std::map<std::string, std::string> texts;
  for (const Run& run : random_runs(5)) {
    const auto [place, is_new] = texts.emplace(key_of(*run), text_of(*run));
    CHECK((is_new || place->second == text_of(*run)));
  }
  CHECK(texts.size() > 25);
}

TEST_CASE("machine code is kept in files, and a damaged file is no harm") {
  const TempDir folder;
  const gpu::KernelSource source{"seven", "extern \"C\" __global__ void seven(int* x) { *x = 7; }"};
  gpu::KernelCompiler first(hopper, folder / "kernels"), second(hopper, folder / "kernels");
  const std::string code = first.compile(source);
  CHECK(first.compiled() == 1);
  CHECK(second.compile(source) == code);
  CHECK(second.compiled() == 0);
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(folder / "kernels")) files.push_back(f.path());
  REQUIRE(files.size() == 1);  // no draft is left
  const std::string whole = read_file(files[0]);
  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), std::string(), whole + "x",
                                     whole.substr(0, whole.size() - 5) + "12345", std::string("reel kernel\n")}) {
    std::ofstream(files[0], std::ios::binary) << damaged;
    gpu::KernelCompiler again(hopper, folder / "kernels");
    CHECK(again.compile(source) == code);
    CHECK(again.compiled() == 1);
    CHECK(read_file(files[0]) == whole);
  }
  gpu::KernelCompiler nowhere(hopper, "/proc/nothing/kernels");
  CHECK(nowhere.compile(source) == code);
  gpu::KernelCompiler older(80, folder / "kernels");
  CHECK(older.compile(source) != code);
}
