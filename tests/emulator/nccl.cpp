// NCCL of the GPU in software. A message is a file in a folder that the ranks share, in /dev/shm
// or where REEL_EMULATOR_SHARED says.
// As with NCCL, messages are part of the stream's work, can be captured, and wait for the other ranks.
#include "backends/cuda/runtime/nccl.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "tests/emulator/device.h"

namespace reel::cuda {

namespace fs = std::filesystem;

struct NcclCommunicator {
  fs::path folder;
  int rank, size;
  std::map<int, std::size_t> sent, received;                // messages to and from each rank
  std::atomic<bool> aborted = false;                        // by any rank: its call removes the folder
  std::shared_ptr<int> messages = std::make_shared<int>();  // held by all that are in streams and graphs
};

namespace {

constexpr int wrong_argument = 4;

struct Message {
  void* data;
  std::size_t bytes;
  int rank;
  NcclComm comm;
  cudaStream_t stream;
  std::shared_ptr<int> held;
};
std::vector<Message> sends, receives;  // of the group that is open
bool grouped = false;

fs::path name_of(const NcclCommunicator& comm, int from, int to, std::size_t number) {
  return comm.folder / fmt::format("{}-{}-{}", from, to, number);
}

/// True from any rank's ncclCommAbort on. Work that is in the stream then ends at once, and moves nothing.
bool aborted(NcclCommunicator& comm) {
  std::error_code error;
  if (!fs::exists(comm.folder, error)) comm.aborted = true;
  return comm.aborted;
}

void send(const Message& m) {
  const fs::path path = name_of(*m.comm, m.comm->rank, m.rank, m.comm->sent[m.rank]++), started = path.string() + "~";
  std::ofstream(started, std::ios::binary)
      .write(static_cast<const char*>(m.data), static_cast<std::streamsize>(m.bytes));
  std::error_code error;
  fs::rename(started, path, error);
  if (error && !aborted(*m.comm)) throw fs::filesystem_error("ncclSend", started, path, error);
}
bool arrived(const Message& m) {
  std::error_code error;
  return fs::exists(name_of(*m.comm, m.rank, m.comm->rank, m.comm->received[m.rank]), error) || aborted(*m.comm);
}
void receive(const Message& m) {
  const fs::path path = name_of(*m.comm, m.rank, m.comm->rank, m.comm->received[m.rank]++);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error && aborted(*m.comm)) return;
  if (error || bytes != m.bytes) cuda_emulator::misused("ncclRecv", "the message has another size");
  std::ifstream(path, std::ios::binary).read(static_cast<char*>(m.data), static_cast<std::streamsize>(m.bytes));
  fs::remove(path);
}

/// A message may be sent or received within a group only: alone, two ranks that send first would wait for each other.
int add(std::vector<Message>& group, const Message& m, int type) {
  if (!grouped || type != nccl_bytes || m.rank < 0 || m.rank >= m.comm->size || m.rank == m.comm->rank)
    return wrong_argument;
  group.push_back(m);
  return nccl_success;
}

}  // namespace

void open_library(Nccl& table) {
  if (std::getenv("REEL_EMULATOR_NO_NCCL")) throw Error("nccl", "libnccl.so.2 was not opened: it is turned off");
  table.ncclGetVersion = [](int* version) {
    *version = 22809;
    return nccl_success;
  };
  table.ncclGetUniqueId = [](NcclId* id) {
    const char* const place = std::getenv("REEL_EMULATOR_SHARED");
    std::string folder = fmt::format("{}/reel-nccl-XXXXXX", place ? place : "/dev/shm");
    if (!mkdtemp(folder.data())) return wrong_argument;
    id->bytes = {};
    folder.copy(id->bytes.data(), folder.size());
    return nccl_success;
  };
  table.ncclCommInitRank = [](NcclComm* comm, int size, NcclId id, int rank) {
    *comm = new NcclCommunicator{id.bytes.data(), rank, size, {}, {}};
    std::ofstream((*comm)->folder / std::to_string(rank)).flush();
    for (int r = 0; r < size; ++r)
      while (!fs::exists((*comm)->folder / std::to_string(r))) usleep(100);
    return nccl_success;
  };
  table.ncclCommDestroy = [](NcclComm comm) {
    std::error_code ignored;
    fs::remove(comm->folder / std::to_string(comm->rank), ignored);
    fs::remove(comm->folder, ignored);  // the last one's call does it
    delete comm;
    return nccl_success;
  };
  table.ncclCommAbort = [](NcclComm comm) {
    comm->aborted = true;  // before the folder goes: work in the stream asks
    std::error_code ignored;
    fs::remove_all(comm->folder, ignored);
    while (comm->messages.use_count() > 1) usleep(1000);  // as NCCL waits for captured graphs
    return nccl_success;
  };
  table.ncclCommGetAsyncError = [](NcclComm, int* error) {
    *error = nccl_success;
    return nccl_success;
  };
  table.ncclGetErrorString = [](int) { return "a code of the GPU in software"; };
  table.ncclGroupStart = [] {
    grouped = true;
    return nccl_success;
  };
  table.ncclGroupEnd = [] {
    grouped = false;
    for (const Message& m : sends) cuda_emulator::submit(m.stream, [m] { send(m); });
    for (const Message& m : receives)
      cuda_emulator::submit(
          m.stream, [m] { receive(m); }, [m] { return arrived(m); });
    sends.clear(), receives.clear();
    return nccl_success;
  };
  table.ncclSend = [](const void* data, std::size_t count, int type, int rank, NcclComm comm, cudaStream_t stream) {
    return add(sends, {const_cast<void*>(data), count, rank, comm, stream, comm->messages}, type);
  };
  table.ncclRecv = [](void* data, std::size_t count, int type, int rank, NcclComm comm, cudaStream_t stream) {
    return add(receives, {data, count, rank, comm, stream, comm->messages}, type);
  };
}

}  // namespace reel::cuda
