// The GPU in software finds what it is there to find: memory that is used too soon, too late or not at all by right,
// and threads that do not wait for each other.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "tests/emulator/launch.h"
#include "tests/support/sanitizers.h"

namespace {

constexpr std::size_t n = 256, bytes = n * sizeof(int);

/// A stream, some memory of the device, and of the host.
struct Setup {
  cudaStream_t stream = nullptr;
  int *there = nullptr, *here = nullptr;

  Setup() {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void**>(&there), bytes);
    cudaMallocHost(reinterpret_cast<void**>(&here), bytes);
    std::fill_n(here, n, 1);
  }
  ~Setup() {
    cudaStreamDestroy(stream);
    cudaFree(there);
    cudaFreeHost(here);
  }
  cudaError_t up() const { return cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, stream); }
  cudaError_t down() const { return cudaMemcpyAsync(here, there, bytes, cudaMemcpyDeviceToHost, stream); }
  cudaError_t wait() const { return cudaStreamSynchronize(stream); }
  template <class F, class... A>
  void launch(F kernel, A... arguments) const {
    cuda_emulator::Launch(1, n, 0, stream).of(kernel)(arguments...);
  }
};

/// The signal that ends a process which does this, or the code that it ends with; 0: nothing happens.
template <class F>
int ended_by(F f) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);  // doctest has its own
    std::signal(SIGABRT, SIG_DFL);
    std::freopen("/dev/null", "w", stderr);
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

const auto add_one = [](int* x) { x[threadIdx.x] += 1; };

}  // namespace

TEST_CASE("the host cannot touch the device's memory; kernels can") {
  const Setup s;
  CHECK(ended_by([&] { s.there[0] = 1; }) == SIGSEGV);
  CHECK(s.up() == cudaSuccess);
  s.launch(add_one, s.there);
  CHECK(s.down() == cudaSuccess);
  CHECK(s.wait() == cudaSuccess);
  CHECK(s.here[n - 1] == 2);
  CHECK(ended_by([&] { s.there[0] = 1; }) == SIGSEGV);
}

TEST_CASE("work waits until somebody waits for it") {
  const Setup s;
  s.up();
  s.launch(add_one, s.there);
  s.here[0] = 10;  // too soon: the copy has not been made
  s.down();
  CHECK(s.here[1] == 1);
  s.wait();
  CHECK(s.here[0] == 11);
  CHECK(s.here[1] == 2);
}

TEST_CASE("memory is the device's or the host's, and all of one block") {
  const Setup s;
  CHECK(cudaMemcpyAsync(s.there + 1, s.here, bytes, cudaMemcpyHostToDevice, s.stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(s.here, s.there, bytes, cudaMemcpyHostToDevice, s.stream) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(s.there, 0, bytes + 1, s.stream) == cudaErrorInvalidValue);
  CHECK(cudaFree(s.there + 1) == cudaErrorInvalidValue);
  void* much = nullptr;
  CHECK(cudaMalloc(&much, std::size_t{1} << 40) == cudaErrorMemoryAllocation);
}

TEST_CASE("the code of the last call that failed stays until it is asked for, as on a GPU") {
  const Setup s;
  CHECK(cudaMemsetAsync(s.there, 0, bytes + 1, s.stream) == cudaErrorInvalidValue);
  CHECK(s.up() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

#ifdef REEL_ADDRESS_SANITIZER
TEST_CASE("what lies behind a block, and what was given back, is nobody's") {
  const Setup s;
  const auto touch = [&](int* x) {
    s.launch([](int* p) { *p = 1; }, x);
    s.wait();
  };
  CHECK(ended_by([&] { touch(s.there + n - 1); }) == 0);
  CHECK(ended_by([&] { touch(s.there + n); }) != 0);
  int* other = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&other), bytes);
  cudaFree(other);
  CHECK(ended_by([&] { touch(other); }) != 0);
}
#endif

TEST_CASE("a graph is captured, not run, and runs each time it is launched") {
  const Setup s;
  s.up();
  CHECK(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  s.launch(add_one, s.there);
  CHECK(s.wait() == cudaErrorStreamCaptureUnsupported);
  std::vector<int> pageable(n);
  CHECK(cudaMemcpyAsync(s.there, pageable.data(), bytes, cudaMemcpyHostToDevice, s.stream) ==
        cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(s.stream, &graph) == cudaSuccess);
  cudaGraphExec_t run = nullptr;
  CHECK(cudaGraphInstantiateWithFlags(&run, graph, 0) == cudaSuccess);
  cudaGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(run, s.stream) == cudaSuccess);
  s.down();
  s.wait();
  cudaGraphExecDestroy(run);
  CHECK(s.here[0] == 4);
}

TEST_CASE("a wait that is missing shows, one that not all come to ends the program") {
  const Setup s;
  // Each adds its neighbour, who must not have written before.
  const auto shifted = [&](bool waits) {
    std::fill_n(s.here, n, 1);
    s.up();
    s.launch(
        [](int* x, bool waits) {
          const int neighbour = x[(threadIdx.x + 1) % n];
          if (waits) __syncthreads();
          x[threadIdx.x] += neighbour;
        },
        s.there, waits);
    s.down();
    s.wait();
    return std::count(s.here, s.here + n, 2);
  };
  for (int i = 0; i < 2; ++i) {  // forwards and backwards
    CHECK(shifted(true) == n);
    CHECK(shifted(false) < static_cast<std::ptrdiff_t>(n));
  }
  CHECK(ended_by([&] {
          s.launch([](int*) { threadIdx.x < 32 ? __syncthreads() : void(); }, s.there);
          s.wait();
        }) == SIGABRT);
}

TEST_CASE("no grid without blocks, no block of more than 1024 threads") {
  const Setup s;
  const auto nothing = [](int*) {};
  CHECK(ended_by([&] { cuda_emulator::Launch(0, 32, 0, s.stream).of(nothing)(s.there); }) == SIGABRT);
  CHECK(ended_by([&] { cuda_emulator::Launch(1, 1025, 0, s.stream).of(nothing)(s.there); }) == SIGABRT);
}

TEST_CASE("threads of a warp give each other numbers, and votes; threads of a block find out if it is so for any") {
  const Setup s;
  const auto found = [&](auto kernel) {
    s.launch(kernel, s.there);
    s.down();
    s.wait();
    return std::vector<int>(s.here, s.here + n);
  };
  const auto lane = [](std::size_t i) { return static_cast<int>(i % 32); };
  const auto thread = [] { return static_cast<int>(threadIdx.x); };
  const auto down = found([=](int*x) { x[threadIdx.x] = __shfl_down_sync(~0U, thread(), 5); }),
             up = found([=](int*x) { x[threadIdx.x] = __shfl_up_sync(~0U, thread(), 5); }),
             across = found([=](int*x) { x[threadIdx.x] = __shfl_xor_sync(~0U, thread(), 6); }),
             first = found([=](int*x) { x[threadIdx.x] = __shfl_sync(~0U, thread(), 0); }),
             votes = found([=](int*x) { x[threadIdx.x] = __popc(__ballot_sync(~0U, thread() % 64 < 40)); }),
             any = found([=](int*x) {
               x[threadIdx.x] = __syncthreads_or(thread() == 77) + 2 * __syncthreads_or(thread() == 1000);
             });
  for (std::size_t i = 0; i < n; ++i) {
    const int me = static_cast<int>(i);
    CHECK(down[i] == (lane(i) + 5 < 32 ? me + 5 : me));
    CHECK(up[i] == (lane(i) >= 5 ? me - 5 : me));
    CHECK(across[i] == (me ^ 6));
    CHECK(first[i] == me - lane(i));
    CHECK(votes[i] == (i % 64 < 32 ? 32 : 8));
    CHECK(any[i] == 1);
  }
}
