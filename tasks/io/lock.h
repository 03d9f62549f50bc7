// Locks that only one process at a time can hold. The system releases a lock when its process ends, however it ends.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "engine/core/error.h"
#include "tasks/io/files.h"

namespace reel {

/// Another process has the lock.
struct Busy : Error {
  using Error::Error;
};

/// A file that is open here and locked for all other processes.
class LockedFile {
 public:
  /// Creates the file if it does not exist; errors call it `name`. Throws Busy if another process still holds the lock
  /// after `patience`.
  LockedFile(const std::string& path, const std::string& name, std::chrono::milliseconds patience);
  LockedFile(LockedFile&&) = default;

  FileHandle& file() { return file_; }
  /// False if the file system does not support locks.
  bool locked() const { return locked_; }
  /// True if this file is still the one of that path, or if that cannot be looked up.
  bool is_at(const std::string& path) const;

 private:
  FileHandle file_;
  bool locked_ = true;
};

/// Gives this program exclusive write access to a location on disk, for the lifetime of this object. The lock file says
/// who holds it.
class Lock {
 public:
  /// `what` names the location. Throws Busy that says who holds it and since when.
  Lock(const std::string& path, const std::string& what);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// False if the file system does not support locks.
  bool locked() const { return file_.locked(); }
  /// False if the location has been moved, removed or replaced, so that another program may have it.
  bool held() const { return !locked() || file_.is_at(path_); }

 private:
  std::string path_;
  LockedFile file_;
};

/// Waits until no other program changes this file, and keeps others from it; throws Busy after ten seconds.
std::unique_ptr<Lock> lock_of(const std::string& path);

}  // namespace reel
