// The processes that share one run, called ranks, and what they tell each other. Each call of Ranks that sends
// something is made by all ranks, in the same order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/shared/device_link.h"
#include "engine/core/error.h"

namespace reel {

/// How bytes go from one process to another.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Starts to send and to receive all of these; their memory is in use until done(). Messages from one rank to another
  /// arrive in the order in which they were sent.
  virtual void start(std::span<const Message> sends, std::span<const Message> receives) = 0;
  /// True when all that was started is over.
  virtual bool done() = 0;
  /// Gives up what was started, so that its memory is free.
  virtual void drop() = 0;
  /// The ranks of which a message has not arrived.
  virtual std::vector<int> awaited() const = 0;
  /// Tells all others that this rank leaves the run; they may be anywhere.
  virtual void leave(const std::string& why) = 0;
  /// A rank that has left and why, once for each.
  virtual std::optional<std::pair<int, std::string>> left() = 0;
  /// Ends all ranks at once.
  virtual void abort(int code) = 0;
};

/// Another rank has left the run; rank() is which.
class RankLeft : public Error {
 public:
  explicit RankLeft(int rank) : Error("ranks", fmt::format("rank {} has left the run", rank)), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

class Ranks {
 public:
  /// This process alone.
  Ranks() = default;
  explicit Ranks(std::unique_ptr<Transport> transport);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }
  /// The rank that does the work `number`, counted from 0.
  int of(std::int64_t number) const { return static_cast<int>(number % size_); }
  bool mine(std::int64_t number) const { return of(number) == rank_; }

  /// How many seconds a rank waits for the others before it takes them for hung; 0: for ever.
  void set_patience(double seconds) { patience_ = seconds; }
  /// What the ranks do now, for the error: "in step 7".
  void set_place(std::string place) { place_ = std::move(place); }

  /// Sends and receives all of these. Throws Error naming the ranks that do not answer, or RankLeft.
  void exchange(std::span<const Message> sends, std::span<const Message> receives);
  /// Messages between the devices of the ranks from here on, without the host.
  void set_link(std::unique_ptr<DeviceLink> link) { link_ = std::move(link); }
  /// Null: the host sends what devices have computed.
  DeviceLink* link() const { return link_.get(); }
  /// Waits until this rank's device has done what needs the others. Throws as exchange() does.
  void wait_for_devices();
  /// The texts of all ranks, on each of them.
  std::vector<std::string> gather(const std::string& mine);
  /// Of values in groups of `width`, group k of rank of(k) goes to all others.
  void share(std::span<double> values, std::size_t width = 1);
  /// True if it is true on any rank.
  bool any(bool here);

  /// For a rank that cannot go on: tells all others, and waits for half a minute until they leave as well. Returns why
  /// each has left, "" if only because another one did; no value for a rank that did not answer.
  std::vector<std::optional<std::string>> leave(const std::string& why);
  /// After leave(): true if nothing is under way that another rank would have to answer.
  bool settled() const { return settled_; }
  /// Ends all ranks at once.
  [[noreturn]] void abort(int code);

 private:
  /// Waits for what other ranks send until `done`, a rank has left, or patience ends. True: done; else who has left.
  bool answered(const std::function<bool()>& done, std::optional<int>& left);
  /// Calls `ready` until it is true, or for so many seconds (0: for ever); false if they are over.
  static bool wait(const std::function<bool()>& ready, double seconds);

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DeviceLink> link_;
  int rank_ = 0, size_ = 1;
  double patience_ = 0;
  std::string place_ = "at the start";
  bool settled_ = true;
  std::vector<std::optional<std::string>> gone_;  // why, of each rank that has left
  std::vector<int> late_;                         // ranks that did not answer
};

}  // namespace reel
