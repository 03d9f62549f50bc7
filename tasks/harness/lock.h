// What one process at a time may have. The system takes a lock back when the process ends, in whatever way.
#pragma once
#include <chrono>
#include <string>

#include "engine/error.h"
#include "tasks/harness/files.h"

namespace reel {

/// Another process has the lock.
struct Busy : Error {
  using Error::Error;
};

/// A file that is open here and locked for all others.
class LockedFile {
 public:
  /// Makes the file where it is not there; errors call it `name`. Throws Busy when another process still has it after
  /// `patience`.
  LockedFile(const std::string& path, const std::string& name, std::chrono::milliseconds patience);
  LockedFile(LockedFile&&) = default;

  FileHandle& file() { return file_; }
  /// False where the file system knows no locks.
  bool locked() const { return locked_; }

 private:
  FileHandle file_;
  bool locked_ = true;
};

/// A place on the disk that this program alone writes to, as long as this lives. The lock's file says who that is.
class Lock {
 public:
  /// `what` names the place. Throws Error that says who has it and since when.
  Lock(const std::string& path, const std::string& what);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// False where the file system knows no locks.
  bool locked() const { return file_.locked(); }

 private:
  std::string path_;
  LockedFile file_;
};

}  // namespace reel
