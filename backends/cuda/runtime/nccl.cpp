#include "backends/cuda/runtime/nccl.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/cuda/cuda.h"
#include "backends/shared/device_link.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

const Nccl& nccl() {
  static const Nccl table = [] {
    Nccl made;
    open_library(made);
    return made;
  }();
  return table;
}

void check_nccl(int code, const char* what) {
  if (code == nccl_success) return;
  throw Error("nccl", fmt::format("{}: {}. Hint: NCCL_DEBUG=WARN in the environment makes NCCL say more", what,
                                  nccl().ncclGetErrorString(code)));
}

class NcclLink final : public DeviceLink {
 public:
  NcclLink(Cuda& device, const std::string& id, int rank, int size) : device_(device) {
    device.stream_of_work();  // makes the device current
    NcclId shared{};
    REEL_ASSERT(id.size() == shared.bytes.size());
    std::copy(id.begin(), id.end(), shared.bytes.begin());
    check_nccl(nccl().ncclCommInitRank(&comm_, size, shared, rank), "ncclCommInitRank");
  }
  ~NcclLink() override {  // errors are ignored: the run is over
    if (comm_) nccl().ncclCommDestroy(comm_);
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    const cudaStream_t stream = device_.stream_of_work();
    check_nccl(nccl().ncclGroupStart(), "ncclGroupStart");
    int code = nccl_success;
    const auto note = [&](int one) { code = code == nccl_success ? one : code; };
    for (const Message& m : receives)
      if (m.bytes > 0) note(nccl().ncclRecv(m.data, m.bytes, nccl_bytes, m.rank, comm_, stream));
    for (const Message& m : sends)
      if (m.bytes > 0) note(nccl().ncclSend(m.data, m.bytes, nccl_bytes, m.rank, comm_, stream));
    const int ended = nccl().ncclGroupEnd();
    check_nccl(code, "ncclSend, ncclRecv");
    check_nccl(ended, "ncclGroupEnd");
  }

  bool done() override {
    const cudaError_t state = cudaStreamQuery(device_.stream_of_work());
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
    cudaGetLastError();  // a later launch would report it
    int broken = nccl_success;
    check_nccl(nccl().ncclCommGetAsyncError(comm_, &broken), "ncclCommGetAsyncError");
    if (broken != nccl_in_progress) check_nccl(broken, "a message between GPUs");
    return false;
  }

  /// Ends all messages at once. The call returns only when the last captured graph with messages is gone, whose owner
  /// may be this thread.
  void abort() override {
    if (comm_) std::thread([comm = std::exchange(comm_, nullptr)] { nccl().ncclCommAbort(comm); }).detach();
  }

 private:
  Cuda& device_;
  NcclComm comm_ = nullptr;
};

int count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

std::string identity(Backend& device) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), dynamic_cast<Cuda&>(device).index()),
        "cudaDeviceGetPCIBusId");
  return text.data();
}

std::string version() {
  int number = 0;
  check_nccl(nccl().ncclGetVersion(&number), "ncclGetVersion");
  const std::string text = fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  if (number < nccl_oldest) throw Error("nccl", fmt::format("version 2.9 or later is needed, and this is {}", text));
  return text;
}

std::string make_id() {
  NcclId id{};
  check_nccl(nccl().ncclGetUniqueId(&id), "ncclGetUniqueId");
  return {id.bytes.begin(), id.bytes.end()};
}

std::unique_ptr<DeviceLink> join(Backend& device, const std::string& id, int rank, int size) {
  return std::make_unique<NcclLink>(dynamic_cast<Cuda&>(device), id, rank, size);
}

[[maybe_unused]] const bool registered = register_device_links("cuda", {count, identity, version, make_id, join});

}  // namespace

}  // namespace reel::cuda
