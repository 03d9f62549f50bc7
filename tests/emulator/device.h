// A GPU in software: the CUDA runtime, driver and libraries for tests on machines without a GPU. The backend's own code
// runs on it as it is; kernels are compiled by g++ (tests/emulator/simt_emulator.h).
//
// As on a GPU, work waits in its stream and runs only when somebody waits for it; the memory of the device cannot be
// touched by the host at all, and is full of NaN when it is new. So what uses memory too late or too soon does not
// pass.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>

namespace cuda_emulator {

using Work = std::function<void()>;
using Ready = std::function<bool()>;

/// Appends to the stream, or to the graph that captures it. Work that depends on other processes waits until it is
/// `ready`, which may throw nothing.
void submit(cudaStream_t stream, Work work, Ready ready = {});
/// Aborts unless the stream is one of the thread's current GPU: a kernel is to be launched into it.
void check_current(cudaStream_t stream);
/// Is the stream's work captured, not run?
bool recorded(cudaStream_t stream);
/// Runs it now, behind all that was submitted to any stream.
void run_now(const Work& work);
/// How much of the stream's work has not run yet.
std::size_t waiting(cudaStream_t stream);
/// Lets the next calls of cudaGraphInstantiate, cudaGraphUpload or cudaGraphLaunch fail for want of memory, which
/// changes nothing else.
void let_fail(const char* call, int times);
/// The program does what no GPU would take: says so and aborts.
[[noreturn]] void misused(const char* call, const char* rule);

/// GPUs: one, or as many as REEL_EMULATOR_DEVICES says.
int devices();
/// Multiprocessors: 8, or what REEL_EMULATOR_PROCESSORS says.
int processors();
constexpr int shared_bytes = 227 * 1024, usual_shared_bytes = 48 * 1024;
constexpr unsigned most_threads = 1024;  // of a block

}  // namespace cuda_emulator
