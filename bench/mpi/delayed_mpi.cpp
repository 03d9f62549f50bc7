// A slower network for measurements: LD_PRELOAD=build/lib/delayed_mpi.so holds messages of MPI back as long as a
// network with REEL_DELAY_US microseconds of latency and REEL_DELAY_GBIT gigabits a second would, where each rank has a
// link of its own. It replaces MPI_Isend and MPI_Testall, by which ranks exchange.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atof(text) : 0;
}

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

struct Send {
  Clock::time_point due;
  const void* data;
  int count;
  MPI_Datatype type;
  int to, tag;
  MPI_Comm comm;
};

std::deque<Send> held;
std::vector<MPI_Request> sent;
Clock::time_point link_free;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                                                     MPI_Comm comm, MPI_Request* request) {
  static const double latency = 1e-6 * number_in("REEL_DELAY_US"), gigabits = number_in("REEL_DELAY_GBIT");
  constexpr int data_tag = 1;  // of mpi_transport.cpp; farewells are not held
  if (tag != data_tag) return PMPI_Isend(data, count, type, to, tag, comm, request);
  link_free = std::max(link_free, Clock::now()) + seconds(gigabits > 0 ? 8e-9 * count / gigabits : 0);
  held.push_back({link_free + seconds(latency), data, count, type, to, tag, comm});
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

__attribute__((visibility("default"))) int MPI_Testall(int count, MPI_Request* requests, int* all,
                                                       MPI_Status* statuses) {
  while (!held.empty() && held.front().due <= Clock::now()) {
    const Send s = held.front();
    held.pop_front();
    const int code = PMPI_Isend(s.data, s.count, s.type, s.to, s.tag, s.comm, &sent.emplace_back());
    if (code != MPI_SUCCESS) return code;
  }
  int mine = 0, theirs = 0;
  const int code = PMPI_Testall(static_cast<int>(sent.size()), sent.data(), &mine, MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS) return code;
  if (mine) sent.clear();
  const int other = PMPI_Testall(count, requests, &theirs, statuses);
  *all = mine && theirs && held.empty();
  return other;
}
}
