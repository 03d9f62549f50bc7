#include "tasks/io/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <thread>

#include "tasks/io/output.h"

namespace reel {

namespace {

using Clock = std::chrono::steady_clock;

/// True if the path still names this open file: its last owner may have renamed or removed it.
bool is_named(const FileHandle& file, const std::string& path) {
  struct stat open {
  }, named{};
  return fstat(file.get(), &open) == 0 && lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

FileHandle open_for_lock(const std::string& path, const std::string& name) {
  // a link or a pipe of this name must neither lead us elsewhere nor block
  FileHandle file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666), name, "written");
  struct stat status {};
  if (fstat(file.get(), &status) != 0) file.fail("written");
  if (!S_ISREG(status.st_mode)) throw Error(name, "cannot be written: it is not an ordinary file");
  return file;
}

/// "copying (process 71 on host) since 2026-11-22 14:05:33 +0000".
std::string owner() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{} (process {} on {}) since {:%Y-%m-%d %H:%M:%S %z}\n", program_invocation_short_name, getpid(),
                     host.data(), local);
}

/// What the owner wrote, up to the end of the line.
std::string owner_of(const std::string& path) try {
  const std::string text = read_file(path);
  return text.empty() ? "another program" : one_line(text.substr(0, std::min<std::size_t>(text.find('\n'), 400)));
} catch (const Error&) {
  return "another program";  // the owner is just ending
}

LockedFile lock_or_say(const std::string& path, const std::string& what) try {
  return {path, path, {}};
} catch (const Busy&) {
  throw Busy(what, fmt::format("is in use by {}. Hint: wait until it ends, or use another folder.", owner_of(path)));
}

}  // namespace

LockedFile::LockedFile(const std::string& path, const std::string& name, std::chrono::milliseconds patience)
    : file_(open_for_lock(path, name)) {
  const Clock::time_point end = Clock::now() + patience;
  for (;;) {
    if (flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_named(file_, path)) return;
      file_ = open_for_lock(path, name);
    } else if (errno == EWOULDBLOCK) {
      if (Clock::now() >= end) throw Busy(name, "cannot be written: another process has it");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } else if (errno != EINTR) {
      locked_ = false;
      return;
    }
  }
}

bool LockedFile::is_at(const std::string& path) const {
  errno = 0;
  return is_named(file_, path) || (errno != 0 && errno != ENOENT && errno != ENOTDIR);
}

Lock::Lock(const std::string& path, const std::string& what) : path_(path), file_(lock_or_say(path, what)) {
  FileHandle& file = file_.file();
  try {
    if (ftruncate(file.get(), 0) != 0) file.fail("written");
    file.write(owner());
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

Lock::~Lock() {
  if (held()) unlink(path_.c_str());
}

std::unique_ptr<Lock> lock_of(const std::string& path) {
  for (int tries = 100;; --tries) {
    try {
      return std::make_unique<Lock>(path + ".lock", path);
    } catch (const Busy&) {
      if (tries == 0) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace reel
