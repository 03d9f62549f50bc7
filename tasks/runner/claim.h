// Who works on the folder of a run. Of several workers, on one machine or on many that share a file system, one gets
// it.
#pragma once
#include <chrono>
#include <string>

#include "tasks/io/lock.h"

namespace reel {

/// A claim on a folder, for the lifetime of this object: a lock of the system on the file "worker.lock", which says who
/// has it, and whose time is renewed while its owner lives. On file systems whose locks hold on one machine only, or
/// not at all, a time that another machine renewed lately is respected, too. A worker that is killed leaves the file
/// behind: on its own machine the folder is free at once, on another one after `patience`.
class Claim {
 public:
  static constexpr std::chrono::seconds renewal{10}, patience{60};

  /// Throws Busy, which says who has the folder and since when, or Error if the file cannot be written.
  explicit Claim(const std::string& folder);
  /// Call it often: renews the time of the claim where that is due.
  void renew();

 private:
  std::string path_;
  Lock lock_;
  std::chrono::steady_clock::time_point renewed_;
};

/// Removes what a worker that was killed left; one that lives keeps it.
void clear_dead_claim(const std::string& folder);

/// True if the owner of a claim on this folder renewed it lately.
bool claimed(const std::string& folder);

}  // namespace reel
