#include "tasks/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "tasks/io/lock.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_with_errno(const std::string& path, const char* doing) {
  throw Error(path, fmt::format("cannot be {}: {}", doing, std::strerror(errno)));
}

[[noreturn]] void fail_with(int error, const std::string& path, const char* doing) {
  errno = error;
  fail_with_errno(path, doing);
}

/// The name under which write_atomically writes a file, in the same folder: ".NAME.tmp".
std::string temporary_name(const std::string& name) {
  constexpr std::size_t most_letters = 200;
  return fmt::format(".{}.tmp", name.substr(0, most_letters));
}

/// NAME of ".NAME.tmp", as far as it is there; empty for other names.
std::string_view final_name(std::string_view name) {
  constexpr std::string_view ending = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(ending) || name.size() <= ending.size() + 1) return "";
  return name.substr(1, name.size() - 1 - ending.size());
}

using Status = struct stat;

/// The status of the file that symbolic links lead to; nothing if there is none.
std::optional<Status> status_of(const std::string& path) {
  Status status{};
  return stat(path.c_str(), &status) == 0 ? std::optional(status) : std::nullopt;
}

std::optional<Status> status_of(int handle) {
  Status status{};
  return fstat(handle, &status) == 0 ? std::optional(status) : std::nullopt;
}

bool same(const std::optional<Status>& a, const std::optional<Status>& b) {
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/// Follows symbolic links; the target need not exist.
std::string followed(const std::string& path) {
  constexpr int most = 40;  // the kernel's limit
  std::string at = path;
  for (int links = 0; links < most; ++links) {
    std::error_code none;
    const fs::path next = fs::read_symlink(at, none);
    if (none) return at;
    at = (fs::path(at).parent_path() / next).string();
  }
  fail_with(ELOOP, path, "written");
}

/// Waits until the file is on disk; pipes and devices do not support this.
void sync(const FileHandle& file) {
  if (fsync(file.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) file.fail("written");
}

/// A new name in a folder survives a power cut only once the folder itself is on disk.
void sync_folder(const fs::path& folder) {
  if (access(folder.c_str(), R_OK) != 0) return;  // a folder that is writable but not readable cannot be synced
  sync(FileHandle(folder, O_RDONLY | O_DIRECTORY, "written"));
}

/// Writes in place to a file that cannot be replaced.
void write_through(const std::string& path, std::string_view bytes) {
  FileHandle file(path, O_WRONLY | O_TRUNC, "written");
  file.write(bytes);
  file.close();
}

/// Gives the new file the owner and permissions of the one it replaces, as far as we are allowed to.
void keep_permissions(const FileHandle& file, const Status& before) {
  const auto now = status_of(file.get());
  if (now && (now->st_uid != before.st_uid || now->st_gid != before.st_gid) &&
      fchown(file.get(), before.st_uid, before.st_gid) != 0)
    return;
  (void)!fchmod(file.get(), before.st_mode & 07777);
}

/// Our own output if the path leads there, as /dev/stdout does; else null.
FILE* own_stream(const std::optional<Status>& before) {
  for (FILE* stream : {stdout, stderr})
    if (before && same(before, status_of(fileno(stream)))) return stream;
  return nullptr;
}

fs::path folder_of(const std::string& target) {
  const fs::path parent = fs::path(target).parent_path();
  return parent.empty() ? "." : parent;
}

/// True if the file is replaced, false if it is written to directly, as a device is. Throws Error if it is a folder or
/// must not be written.
bool is_replaced(const std::string& path, const std::string& target, const std::optional<Status>& before) {
  if (fs::path(target).filename().empty() || (before && S_ISDIR(before->st_mode))) fail_with(EISDIR, path, "written");
  // links in /proc may lead to something without a name
  if (before && (!S_ISREG(before->st_mode) || !same(before, status_of(target)))) return false;
  if (before && faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) fail_with_errno(path, "written");
  return true;
}

}  // namespace

FileHandle::FileHandle(const std::string& path, int flags, const char* doing)
    : FileHandle(open(path.c_str(), flags | O_CLOEXEC, 0666), path, doing) {}

FileHandle::FileHandle(int handle, std::string path, const char* doing) : path_(std::move(path)), handle_(handle) {
  if (handle_ < 0) fail(doing);
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, -1)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(handle_, other.handle_);
  return *this;
}

FileHandle::~FileHandle() {
  if (handle_ >= 0) ::close(handle_);
}

void FileHandle::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
    if (written > 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (written == 0)
      fail_with(ENOSPC, path_, "written");
    else if (errno != EINTR)
      fail("written");
  }
  sync(*this);
}

void FileHandle::close() {
  if (::close(std::exchange(handle_, -1)) != 0 && errno != EINTR) fail("written");
}

void FileHandle::fail(const char* doing) const { fail_with_errno(path_, doing); }

std::string read_file(const std::string& path, std::uint64_t limit) {
  const FileHandle file(path, O_RDONLY, "read");
  struct stat status {};
  if (fstat(file.get(), &status) != 0) file.fail("read");
  if (!S_ISREG(status.st_mode)) limit = std::min(limit, std::uint64_t{1} << 28);
  const auto check = [&](std::uint64_t size) {
    if (size > limit) throw Error(path, fmt::format("cannot be read: it has more than {} bytes", limit));
  };
  std::string bytes;
  if (S_ISREG(status.st_mode)) {
    check(static_cast<std::uint64_t>(status.st_size));
    bytes.reserve(static_cast<std::size_t>(status.st_size));
  }
  char block[1 << 16];
  for (;;) {
    const ssize_t n = read(file.get(), block, sizeof block);
    if (n > 0) {
      bytes.append(block, static_cast<std::size_t>(n));
      check(bytes.size());
    } else if (n == 0) {
      return bytes;
    } else if (errno != EINTR) {
      file.fail("read");
    }
  }
}

std::string read_end(const std::string& path, std::uint64_t most) {
  const FileHandle file(path, O_RDONLY, "read");
  const off_t size = lseek(file.get(), 0, SEEK_END);
  if (size < 0) file.fail("read");
  std::string bytes(std::min(most, static_cast<std::uint64_t>(size)), '\0');
  const off_t start = size - static_cast<off_t>(bytes.size());
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = pread(file.get(), &bytes[done], bytes.size() - done, start + static_cast<off_t>(done));
    if (n > 0)
      done += static_cast<std::size_t>(n);
    else if (n == 0)
      bytes.resize(done);  // it has become shorter
    else if (errno != EINTR)
      file.fail("read");
  }
  return bytes;
}

void write_atomically(const std::string& path, std::string_view bytes) {
  const auto before = status_of(path);
  if (FILE* const stream = own_stream(before)) {  // append to it
    std::fflush(stream);
    return FileHandle(fcntl(fileno(stream), F_DUPFD_CLOEXEC, 0), path, "written").write(bytes);
  }
  const std::string target = followed(path);
  if (!is_replaced(path, target, before)) return write_through(path, bytes);
  const fs::path name = fs::path(target).filename(), folder = folder_of(target);

  // All attempts use one temporary name, so the next write cleans up after a kill -9. Other writers of this file wait
  // for their turn.
  const std::string temporary = folder / temporary_name(name.string());
  LockedFile lock(temporary, path, std::chrono::seconds(10));
  try {
    FileHandle& file = lock.file();
    if (ftruncate(file.get(), 0) != 0) file.fail("written");
    if (before) keep_permissions(file, *before);
    file.write(bytes);
    if (std::rename(temporary.c_str(), target.c_str()) != 0) fail_with_errno(path, "written");
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  lock.file().close();  // from here on the temporary name may be another writer's
  sync_folder(folder);
}

void require_writable(const std::string& path) {
  const auto before = status_of(path);
  if (own_stream(before)) return;
  const std::string target = followed(path);
  if (!is_replaced(path, target, before)) return;
  if (faccessat(AT_FDCWD, folder_of(target).c_str(), W_OK | X_OK, AT_EACCESS) != 0) fail_with_errno(path, "written");
}

void remove_unfinished(const std::string& folder, const std::function<bool(std::string_view)>& ours) {
  std::vector<std::string> left;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    const std::string name = at->path().filename();
    if (const std::string_view of = final_name(name); !of.empty() && ours(of)) left.push_back(at->path());
  }
  for (const std::string& path : left) try {
      const LockedFile file(path, path, {});
      if (file.locked()) unlink(path.c_str());
    } catch (const Error&) {
      continue;  // a running program is writing it, or it is not a file of ours
    }
}

}  // namespace reel
