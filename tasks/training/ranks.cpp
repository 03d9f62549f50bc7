#include "tasks/training/ranks.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace reel {

namespace {
using Clock = std::chrono::steady_clock;

constexpr double farewell = 30;           // seconds for which a rank that leaves waits for the others
constexpr std::chrono::seconds grace{1};  // for what a rank has sent before it left, perhaps for the same reason

template <class T>
std::byte* bytes_of(T* data) {
  return reinterpret_cast<std::byte*>(data);
}
}  // namespace

Ranks::Ranks(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      rank_(transport_->rank()),
      size_(transport_->size()),
      gone_(static_cast<std::size_t>(size_)) {}

Ranks::~Ranks() = default;

bool Ranks::wait(const std::function<bool()>& ready, double seconds) {
  const Clock::time_point start = Clock::now();
  for (std::int64_t look = 0; !ready(); ++look) {
    if (look < 1000) continue;  // most answers come within microseconds
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > 0 && waited > seconds) return false;
    if (waited < 1e-3)
      sched_yield();  // another rank may have to run on this core
    else
      std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.1 ? 20 : 1000));
  }
  return true;
}

bool Ranks::answered(const std::function<bool()>& done, std::optional<int>& left) {
  settled_ = false;
  Clock::time_point heard;
  const auto ready = [&] {
    if (done()) return true;
    if (const auto notice = transport_->left()) {
      if (!left) left = notice->first, heard = Clock::now();
      gone_[static_cast<std::size_t>(notice->first)] = notice->second;
    }
    return left && Clock::now() - heard > grace;
  };
  settled_ = wait(ready, patience_) && done();
  return settled_;
}

void Ranks::exchange(std::span<const Message> sends, std::span<const Message> receives) {
  if (!transport_) return;
  transport_->start(sends, receives);
  std::optional<int> left;
  if (answered([&] { return transport_->done(); }, left)) return;
  const std::vector<int> late = transport_->awaited();
  transport_->drop();
  if (left) throw RankLeft(*left);
  late_ = late;
  throw Error("ranks",
              fmt::format("rank{} {} did not answer for {:g} s, {}; it hangs, or needs longer. Hint: look at it, "
                          "or wait longer with --rank-patience",
                          late.size() == 1 ? "" : "s", fmt::join(late, ", "), patience_, place_));
}

void Ranks::wait_for_devices() {
  std::optional<int> left;
  try {
    if (answered([&] { return link_->done(); }, left)) return;
  } catch (const Error&) {
    link_->abort();
    throw;
  }
  link_->abort();
  if (left) throw RankLeft(*left);
  throw Error("ranks",
              fmt::format("the GPU of rank {} waited for those of other ranks for {:g} s, {}; one of them hangs, "
                          "or needs longer. Hint: look at them, or wait longer with --rank-patience",
                          rank_, patience_, place_));
}

std::vector<std::string> Ranks::gather(const std::string& mine) {
  std::vector<std::string> all(static_cast<std::size_t>(size_));
  all[static_cast<std::size_t>(rank_)] = mine;
  std::vector<std::uint64_t> sizes(all.size());
  std::uint64_t own = mine.size();
  const auto each = [&](auto data) {
    std::vector<Message> messages;
    for (int r = 0; r < size_; ++r)
      if (r != rank_) messages.push_back(data(r));
    return messages;
  };
  exchange(each([&](int r) {
             return Message{r, bytes_of(&own), sizeof own};
           }),
           each([&](int r) {
             return Message{r, bytes_of(&sizes[static_cast<std::size_t>(r)]), sizeof own};
           }));
  std::string copy = mine;
  exchange(each([&](int r) {
             return Message{r, bytes_of(copy.data()), copy.size()};
           }),
           each([&](int r) {
             const auto i = static_cast<std::size_t>(r);
             all[i].resize(sizes[i]);
             return Message{r, bytes_of(all[i].data()), all[i].size()};
           }));
  return all;
}

void Ranks::share(std::span<double> values, std::size_t width) {
  if (size_ == 1) return;
  std::vector<std::vector<double>> of_rank(static_cast<std::size_t>(size_));
  const auto rank_of = [&](std::size_t i) {
    return static_cast<std::size_t>(of(static_cast<std::int64_t>(i / width)));
  };
  for (std::size_t i = 0; i < values.size(); ++i) of_rank[rank_of(i)].push_back(values[i]);
  std::vector<Message> sends, receives;
  auto& own = of_rank[static_cast<std::size_t>(rank_)];
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    auto& theirs = of_rank[static_cast<std::size_t>(r)];
    sends.push_back({r, bytes_of(own.data()), own.size() * sizeof(double)});
    receives.push_back({r, bytes_of(theirs.data()), theirs.size() * sizeof(double)});
  }
  exchange(sends, receives);
  std::vector<std::size_t> read(of_rank.size(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = of_rank[rank_of(i)][read[rank_of(i)]++];
}

bool Ranks::any(bool here) {
  if (size_ == 1) return here;
  std::vector<double> each(static_cast<std::size_t>(size_), here ? 1 : 0);
  share(each);
  return std::any_of(each.begin(), each.end(), [](double yes) { return yes > 0; });
}

std::vector<std::optional<std::string>> Ranks::leave(const std::string& why) {
  gone_[static_cast<std::size_t>(rank_)] = why;
  transport_->leave(why);
  const auto all_gone = [&] {
    while (const auto notice = transport_->left()) gone_[static_cast<std::size_t>(notice->first)] = notice->second;
    for (std::size_t r = 0; r < gone_.size(); ++r)
      if (!gone_[r] && std::find(late_.begin(), late_.end(), static_cast<int>(r)) == late_.end()) return false;
    return true;
  };
  wait(all_gone, farewell);
  return gone_;
}

void Ranks::abort(int code) {
  transport_->abort(code);
  std::_Exit(code);
}

}  // namespace reel
