// reel_mpi.so: messages between ranks by MPI. Programs open it when mpirun or srun has started several of them.
#include <mpi.h>

#include <algorithm>
#include <array>

#include "reel/version.h"
#include "tasks/training/ranks.h"

namespace reel {

namespace {

enum Tag : int { data = 1, farewell };

void check(int status) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error("mpi", std::string(text.data(), static_cast<std::size_t>(length)));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  }
  ~MpiTransport() override { MPI_Finalize(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void start(std::span<const Message> sends, std::span<const Message> receives) override {
    requests_.clear();
    from_.clear();
    for (const Message& m : receives)
      in_pieces(m, [&](std::byte* at, int bytes) {
        check(MPI_Irecv(at, bytes, MPI_BYTE, m.rank, data, MPI_COMM_WORLD, next(m.rank)));
      });
    for (const Message& m : sends)
      in_pieces(m, [&](std::byte* at, int bytes) {
        check(MPI_Isend(at, bytes, MPI_BYTE, m.rank, data, MPI_COMM_WORLD, next(-1)));
      });
  }

  bool done() override {
    int all = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
    return all != 0;
  }

  void drop() override {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (from_[i] < 0 || requests_[i] == MPI_REQUEST_NULL) continue;  // what is being sent is left to end by itself
      MPI_Cancel(&requests_[i]);
      MPI_Request_free(&requests_[i]);
    }
  }

  std::vector<int> awaited() const override {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (from_[i] >= 0 && requests_[i] != MPI_REQUEST_NULL && (ranks.empty() || ranks.back() != from_[i]))
        ranks.push_back(from_[i]);
    return ranks;
  }

  void leave(const std::string& why) override {
    why_ = why;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(why_.data(), static_cast<int>(why_.size()), MPI_BYTE, r, farewell, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
  }

  std::optional<std::pair<int, std::string>> left() override {
    int there = 0, bytes = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, farewell, MPI_COMM_WORLD, &there, &status));
    if (!there) return std::nullopt;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes));
    std::string why(static_cast<std::size_t>(bytes), '\0');
    check(MPI_Recv(why.data(), bytes, MPI_BYTE, status.MPI_SOURCE, farewell, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return std::pair(status.MPI_SOURCE, why);
  }

  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  /// A message counts its bytes in an int.
  template <class Each>
  static void in_pieces(const Message& m, const Each& each) {
    constexpr std::size_t most = std::size_t{1} << 30;
    for (std::size_t at = 0; at < m.bytes; at += most)
      each(m.data + at, static_cast<int>(std::min(most, m.bytes - at)));
  }
  MPI_Request* next(int from) {
    from_.push_back(from);
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }

  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<int> from_;  // of each request: the rank it receives from; -1: it sends
  std::string why_;
};

}  // namespace

}  // namespace reel

extern "C" {
/// The version that a program must have.
[[gnu::visibility("default")]] const char* reel_mpi_version() { return REEL_VERSION; }
/// Joins the others; the caller owns the result. Throws Error.
[[gnu::visibility("default")]] reel::Transport* reel_mpi_join() { return new reel::MpiTransport; }
}
