#include "tasks/harness/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "engine/error.h"

namespace reel {

namespace {
[[noreturn]] void fail_with_errno(const std::string& path, const char* doing) {
  throw Error(path, fmt::format("cannot be {}: {}", doing, std::strerror(errno)));
}
}  // namespace

FileHandle::FileHandle(const std::string& path, int flags, const char* doing)
    : path_(path), handle_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (handle_ < 0) fail(doing);
}

FileHandle::~FileHandle() { close(handle_); }

void FileHandle::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      fail("written");
  }
  if (fsync(handle_) != 0) fail("written");
}

void FileHandle::fail(const char* doing) const { fail_with_errno(path_, doing); }

std::string read_file(const std::string& path) {
  const FileHandle file(path, O_RDONLY, "read");
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t n = read(file.get(), block, sizeof block);
    if (n > 0)
      bytes.append(block, static_cast<std::size_t>(n));
    else if (n == 0)
      return bytes;
    else if (errno != EINTR)
      file.fail("read");
  }
}

void write_atomically(const std::string& path, std::string_view bytes) {
  const std::filesystem::path target(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  // one name for all attempts: what a kill -9 leaves behind, the next write takes away
  const std::string temporary = folder / fmt::format(".{}.tmp", target.filename().string());
  try {
    FileHandle file(temporary, O_WRONLY | O_CREAT | O_TRUNC, "written");
    file.write(bytes);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail_with_errno(path, "written");
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  const FileHandle directory(folder, O_RDONLY | O_DIRECTORY, "opened");
  fsync(directory.get());  // some file systems cannot do this for a folder; the file itself is on the disk
}

}  // namespace reel
