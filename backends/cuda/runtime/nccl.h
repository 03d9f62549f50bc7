// NCCL, opened with dlopen when several ranks compute on GPUs. The declarations are our own, so that Reel is compiled
// without its header; run_cuda_test compares them with that header where there is one.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

namespace reel::cuda {

struct NcclId {
  std::array<char, 128> bytes;
};
using NcclComm = struct NcclCommunicator*;
constexpr int nccl_success = 0, nccl_in_progress = 7;  // of ncclResult_t
constexpr int nccl_bytes = 1;                          // of ncclDataType_t: ncclUint8
constexpr int nccl_oldest = 20900;                     // its graphs may be captured

struct Nccl {
  int (*ncclGetVersion)(int* version) = nullptr;
  int (*ncclGetUniqueId)(NcclId* id) = nullptr;
  int (*ncclCommInitRank)(NcclComm* comm, int size, NcclId id, int rank) = nullptr;
  int (*ncclCommDestroy)(NcclComm comm) = nullptr;
  int (*ncclCommAbort)(NcclComm comm) = nullptr;
  int (*ncclCommGetAsyncError)(NcclComm comm, int* error) = nullptr;
  const char* (*ncclGetErrorString)(int code) = nullptr;
  int (*ncclGroupStart)() = nullptr;
  int (*ncclGroupEnd)() = nullptr;
  int (*ncclSend)(const void* data, std::size_t count, int type, int rank, NcclComm comm,
                  cudaStream_t stream) = nullptr;
  int (*ncclRecv)(void* data, std::size_t count, int type, int rank, NcclComm comm, cudaStream_t stream) = nullptr;
};
// clang-format off
#define REEL_NCCL(X)                                                                                    \
  X(ncclGetVersion) X(ncclGetUniqueId) X(ncclCommInitRank) X(ncclCommDestroy) X(ncclCommAbort)          \
  X(ncclCommGetAsyncError) X(ncclGetErrorString) X(ncclGroupStart) X(ncclGroupEnd) X(ncclSend) X(ncclRecv)
// clang-format on

/// Fills the table; throws Error that says what is missing.
void open_library(Nccl& table);

}  // namespace reel::cuda
