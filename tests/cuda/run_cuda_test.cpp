// What can be said of the CUDA backend without a GPU: names of devices, errors, the toolkit's libraries, the table of
// kernels; and that programs that have the backend run where there is none.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "backends/cuda/kernels/kernel_table.h"
#include "backends/cuda/runtime/device_options.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/runtime/nccl.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

using namespace reel;
using namespace reel::test;
namespace gpu = reel::cuda;

namespace {

bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(REEL_SOURCE_DIR "/") + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("names of devices") {
  CHECK(gpu::parse_device("").name() == "cuda");
  CHECK(gpu::parse_device(":0").name() == "cuda");
  CHECK(gpu::parse_device(":12").index == 12);
  CHECK(gpu::parse_device(":1,sync,tf32").name() == "cuda:1,sync,tf32");
  CHECK(gpu::parse_device(",bf16").precision == gpu::Precision::bf16);
  CHECK(gpu::parse_device(",sync").sync);
  CHECK(gpu::parse_device(",steps").by_step);
  CHECK(gpu::parse_device(",loops,sync").name() == "cuda,sync,loops");
  CHECK(gpu::parse_device(",fma").fma);
  CHECK(gpu::parse_device(",fma,loops").name() == "cuda,loops,fma");
  CHECK(gpu::parse_device(",bf16,steps").name() == "cuda,steps,bf16");
  for (const char* bad : {":", ":x", ":-1", ":1:2", ",", ",fast", ",sync:1", ":99999999999999999999"}) {
    const std::string text = error_of([&] { gpu::parse_device(bad); });
    CAPTURE(text);
    CHECK(contains(text, "\"cuda" + std::string(bad) + "\" is not understood"));
    CHECK(contains(text, "cuda:1 for the second GPU"));
  }
  CHECK(contains(error_of([] { gpu::parse_device(",loops,sync,steps"); }),
                 "\"cuda,loops,sync,steps\": ,steps and ,loops"));
}

TEST_CASE("every kernel of a backend is in the table, once") {
  std::map<std::string, int> rows;
  for (const gpu::KernelRow& row : gpu::kernel_table) ++rows[std::string(row.name)];
#define REEL_NAME(name, Args) #name,
#define REEL_OTHER_NAME(result, name, Args) #name,
  const std::vector<std::string> kernels{REEL_KERNELS(REEL_NAME) REEL_OTHER_KERNELS(REEL_OTHER_NAME)};
  for (const std::string& name : kernels) {
    CAPTURE(name);
    CHECK(rows[name] == 1);
  }
  CHECK(kernels.size() == std::size(gpu::kernel_table));
}

TEST_CASE("the table says of each kernel what its code does") {
  std::string code;
  for (const char* file : {"linalg_dispatch_solve", "linalg_dispatch_factor", "linalg_dispatch_spectral"})
    code += text_of(fmt::format("backends/cuda/linalg/{}.cpp", file));
  for (const gpu::KernelRow& row : gpu::kernel_table) {
    const std::string name(row.name);
    CAPTURE(name);
    const bool checked = row.how == gpu::How::checked || row.how == gpu::How::noted;
    const bool on_host = row.how == gpu::How::cpu_fallback;
    CHECK(contains(code, "&Backend::" + name + ",") == (checked || on_host));
    CHECK(contains(code, fmt::format("run_on_host(\"{0}\", &Backend::{0},", name)) == on_host);
    CHECK(contains(code, "cusolver_" + name + "(") == checked);
  }
}

TEST_CASE("all functions of the toolkit's libraries are found") {
  gpu::Cublas blas;
  gpu::Cusolver solver;
  gpu::Cufft fft;
  const auto missing = [](auto& library) { return error_of([&] { gpu::open_library(library); }); };
  CHECK(missing(blas) == "");  // all three are told if all are missing
  CHECK(missing(solver) == "");
  CHECK(missing(fft) == "");
  CHECK(static_cast<bool>(blas.cublasGemmStridedBatchedEx_64));
  CHECK(static_cast<bool>(blas.cublasSetWorkspace_v2));
  CHECK(static_cast<bool>(solver.cusolverDnXsyevd));
  CHECK(static_cast<bool>(fft.cufftExecZ2D));
}

TEST_CASE("NCCL is declared as its header declares it, and its functions are found, where there is one") {
#ifdef NCCL_VERSION_CODE
  static_assert(sizeof(ncclUniqueId) == sizeof(gpu::NcclId) && sizeof(ncclResult_t) == sizeof(int));
  static_assert(sizeof(ncclDataType_t) == sizeof(int) && ncclUint8 == gpu::nccl_bytes);
  static_assert(ncclSuccess == gpu::nccl_success && ncclInProgress == gpu::nccl_in_progress);
  static_assert(NCCL_VERSION(2, 9, 0) == gpu::nccl_oldest);
  // Parameters: pointers, integers and enumerations of the same sizes.
  static_assert(std::is_same_v<decltype(ncclSend),
                               ncclResult_t(const void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(ncclRecv),
                               ncclResult_t(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(ncclCommInitRank), ncclResult_t(ncclComm_t*, int, ncclUniqueId, int)>);
  static_assert(std::is_same_v<decltype(ncclCommGetAsyncError), ncclResult_t(ncclComm_t, ncclResult_t*)>);
#endif
  gpu::Nccl nccl;
  try {
    gpu::open_library(nccl);
  } catch (const Error& e) {
    MESSAGE("skipped: ", e.what());
    CHECK_MESSAGE(contains(e.what(), "[nccl] libnccl.so.2 was not opened: "), e.what());
    return;
  }
  int version = 0;
  CHECK(nccl.ncclGetVersion(&version) == gpu::nccl_success);
  CHECK(version >= gpu::nccl_oldest);
  CHECK(std::string(nccl.ncclGetErrorString(gpu::nccl_success)) == "no error");
}

TEST_CASE("indices out of range in words, as the CPU says them") {
  const auto slot = [](std::uint64_t place, std::int32_t index) {
    return static_cast<gpu::FaultSlot>(place << 32 | static_cast<std::uint32_t>(index));
  };
  CHECK(gpu::fault_text({"gather_rows", 5}, slot(3, 7)) == "index 7 at place 3 is not in 0..4");
  CHECK(gpu::fault_text({"gather_rows", 5}, slot(0, -1)) == "index -1 at place 0 is not in 0..4");
  CHECK(gpu::fault_text({"gather_rows", 0}, slot(2, 0)) == "index 0 at place 2, but there is nothing to look up");
  CHECK(gpu::fault_text({"lookup", -1}, slot(2, 9)) == "index 9 at place 2 is out of range");
  CHECK(slot(3, -1) < slot(4, 0));  // of two the first place is kept, whatever the index
}

TEST_CASE("a program with this backend starts, and computes on the CPU, whether there is a GPU or not") {
  const TempDir dir;
  const Result cpu =
      run("copying", {"--steps", "2", "--hidden", "8", "--batch", "2", "--quiet", "--out", dir / "r"}, dir.path);
  CHECK_MESSAGE(cpu.code == 0, cpu.err);
  const Result help = run("copying", {"--help"}, dir.path);
  CHECK(contains(help.out, "device to compute on: cpu, cuda"));
}

TEST_CASE("--device cuda without a GPU exits with 2 and says so; a name that is not understood does, too") {
  const TempDir dir;
  for (const char* program : {"copying", "apply"}) {
    const Result wrong = run(program, {"--device", "cuda,fast"}, dir.path);
    CHECK(wrong.code == 2);
    CHECK_MESSAGE(contains(wrong.err, "\"cuda,fast\" is not understood"), wrong.err);
    if (has_gpu()) {
      MESSAGE("skipped: there is a GPU here");
      continue;
    }
    const Result r = run(program, {"--device", "cuda:1"}, dir.path);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, "--device"), r.err);
    CHECK_MESSAGE(contains(r.err, "no NVIDIA GPU can be used here"), r.err);
    CHECK_MESSAGE(contains(r.err, "Hint: --device cpu"), r.err);
  }
}

TEST_CASE("--precision tf32 is for GPUs") {
  const TempDir dir;
  const Result cpu = run("copying", {"--precision", "tf32"}, dir.path);
  CHECK(cpu.code == 2);
  CHECK_MESSAGE(contains(cpu.err, "--precision tf32: on cpu products of f32 are f32 or bf16. Hint: "), cpu.err);
  CHECK(run("copying", {"--device", "cuda", "--precision", "f16"}, dir.path).code == 2);
  for (const char* other : {"f32", "bf16"}) {
    const Result two = run("copying", {"--device", "cuda,tf32,fma", "--precision", other}, dir.path);
    CHECK(two.code == 2);
    CHECK_MESSAGE(
        contains(two.err, fmt::format("--precision {}: --device cuda,tf32,fma is for products in tf32. Hint: ", other)),
        two.err);
  }
  if (has_gpu()) return;
  const Result gpu = run("copying", {"--device", "cuda", "--precision", "bf16"}, dir.path);
  CHECK(gpu.code == 2);
  CHECK_MESSAGE(contains(gpu.err, "\"cuda,bf16\": no NVIDIA GPU"), gpu.err);
}

TEST_CASE("a test program asked for a device that is not there says that it is skipped") {
  if (has_gpu()) {
    MESSAGE("skipped: there is a GPU here");
    return;
  }
  const TempDir dir;
  const Result r = run("tape_test", {"--device", "cuda"}, dir.path);
  CHECK(r.code == 77);
  CHECK_MESSAGE(contains(r.out, "skipped: "), r.out);
}
