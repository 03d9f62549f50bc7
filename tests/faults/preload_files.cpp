// Calls on files below the root.
#include "tests/faults/preload_files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace reel::faults;

namespace {

// Open files that count. Others, and those with larger numbers, do not.
std::atomic<bool> counted[4096];

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

/// A call that has a path, by its number in the kernel.
template <class... A>
int by_path(Kind kind, const char* path, int directory, long number, A... arguments) {
  const Action action = below_root(path, directory) ? called(kind, path) : Action::none;
  return instead(action, -1, [&] { return static_cast<int>(syscall(number, arguments...)); });
}

/// A call that has an open file.
template <class R = int, class... A>
R by_file(Kind kind, int file, long number, A... arguments) {
  return instead(called_on(kind, file), R(-1), [&] { return static_cast<R>(syscall(number, file, arguments...)); });
}

int open_any(const char* path, int directory, int flags, mode_t mode) {
  const bool counts = below_root(path, directory);
  const Kind kind = flags & O_CREAT ? Kind::create : Kind::open;
  const int file = by_path(kind, path, directory, SYS_openat, directory, path, flags, mode);
  if (file >= 0 && file < 4096) counted[file] = counts;
  return file;
}

int close_any(int file) {
  const Action action = called_on(Kind::close, file);
  if (file >= 0 && file < 4096) counted[file] = false;
  if (action == Action::fail) syscall(SYS_close, file);  // as Linux does: the file is closed all the same
  return instead(action, -1, [&] { return static_cast<int>(syscall(SYS_close, file)); });
}

/// read or write, or either at an offset: also half of what was asked for.
template <class... A>
ssize_t transfer(Kind kind, long number, int file, const void* buffer, std::size_t size, A... offset) {
  const Action action = called_on(kind, file);
  const std::size_t part = action == Action::half && size > 1 ? size / 2 : size;
  return instead(action, ssize_t(-1), [&] { return syscall(number, file, buffer, part, offset...); });
}

}  // namespace

Action reel::faults::called_on(Kind kind, int file) {
  if (file < 0 || file >= 4096 || !counted[file]) return Action::none;
  char path[120] = "", link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  syscall(SYS_readlink, link, path, sizeof path - 1);
  return called(kind, path);
}

extern "C" {

int openat(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_any(path, directory, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_any(path, AT_FDCWD, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char* path, int flags, ...) __attribute__((alias("openat")));
int __open_2(const char* path, int flags) { return open_any(path, AT_FDCWD, flags, 0); }
int __open64_2(const char* path, int flags) { return open_any(path, AT_FDCWD, flags, 0); }
int creat(const char* path, mode_t mode) { return open_any(path, AT_FDCWD, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char* path, mode_t mode) { return creat(path, mode); }
int close(int file) { return close_any(file); }

ssize_t read(int file, void* buffer, std::size_t size) { return transfer(Kind::read, SYS_read, file, buffer, size); }
ssize_t write(int file, const void* buffer, std::size_t size) {
  return transfer(Kind::write, SYS_write, file, buffer, size);
}
ssize_t pread(int file, void* buffer, std::size_t size, off_t offset) {
  return transfer(Kind::read, SYS_pread64, file, buffer, size, offset);
}
ssize_t pread64(int file, void* buffer, std::size_t size, off64_t offset) { return pread(file, buffer, size, offset); }
ssize_t pwrite(int file, const void* buffer, std::size_t size, off_t offset) {
  return transfer(Kind::write, SYS_pwrite64, file, buffer, size, offset);
}
ssize_t pwrite64(int file, const void* buffer, std::size_t size, off64_t offset) {
  return pwrite(file, buffer, size, offset);
}
ssize_t readv(int file, const iovec* parts, int count) {
  return by_file<ssize_t>(Kind::read, file, SYS_readv, parts, count);
}
ssize_t writev(int file, const iovec* parts, int count) {
  return by_file<ssize_t>(Kind::write, file, SYS_writev, parts, count);
}

int fsync(int file) { return by_file(Kind::sync, file, SYS_fsync); }
int fdatasync(int file) { return by_file(Kind::sync, file, SYS_fdatasync); }
int ftruncate(int file, off_t size) noexcept { return by_file(Kind::truncate, file, SYS_ftruncate, size); }
int ftruncate64(int file, off64_t size) noexcept { return ftruncate(file, size); }
off_t lseek(int file, off_t offset, int whence) noexcept {
  return by_file<off_t>(Kind::seek, file, SYS_lseek, offset, whence);
}
off64_t lseek64(int file, off64_t offset, int whence) noexcept { return lseek(file, offset, whence); }
int flock(int file, int operation) noexcept { return by_file(Kind::lock, file, SYS_flock, operation); }
int fcntl(int file, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const value = va_arg(more, void*);
  va_end(more);
  const bool locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
  const Action action = locks ? called_on(Kind::lock, file) : Action::none;
  return instead(action, -1, [&] { return static_cast<int>(syscall(SYS_fcntl, file, command, value)); });
}
int fcntl64(int file, int command, ...) __attribute__((alias("fcntl")));

int rename(const char* from, const char* to) noexcept {
  return by_path(Kind::rename, to, AT_FDCWD, SYS_rename, from, to);
}
int renameat(int a, const char* from, int b, const char* to) noexcept {
  return by_path(Kind::rename, to, b, SYS_renameat, a, from, b, to);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
  return by_path(Kind::rename, to, b, SYS_renameat2, a, from, b, to, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return by_path(Kind::mkdir, path, AT_FDCWD, SYS_mkdir, path, mode);
}
int unlink(const char* path) noexcept { return by_path(Kind::unlink, path, AT_FDCWD, SYS_unlink, path); }
int unlinkat(int directory, const char* path, int flags) noexcept {
  return by_path(Kind::unlink, path, directory, SYS_unlinkat, directory, path, flags);
}
int rmdir(const char* path) noexcept { return by_path(Kind::unlink, path, AT_FDCWD, SYS_rmdir, path); }
int remove(const char* path) noexcept {
  const int file = unlink(path);
  return file != 0 && errno == EISDIR ? rmdir(path) : file;
}

int stat(const char* path, struct stat* s) noexcept {
  return by_path(Kind::stat, path, AT_FDCWD, SYS_newfstatat, AT_FDCWD, path, s, 0);
}
int lstat(const char* path, struct stat* s) noexcept {
  return by_path(Kind::stat, path, AT_FDCWD, SYS_newfstatat, AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);
}
int fstatat(int directory, const char* path, struct stat* s, int flags) noexcept {
  return by_path(Kind::stat, path, directory, SYS_newfstatat, directory, path, s, flags);
}
int fstat(int file, struct stat* s) noexcept { return by_file(Kind::stat, file, SYS_fstat, s); }
int stat64(const char*, struct stat64*) noexcept __attribute__((alias("stat")));
int lstat64(const char*, struct stat64*) noexcept __attribute__((alias("lstat")));
int fstatat64(int, const char*, struct stat64*, int) noexcept __attribute__((alias("fstatat")));
int fstat64(int, struct stat64*) noexcept __attribute__((alias("fstat")));

// The C library's streams call the kernel by ways that cannot be replaced; so the streams' own functions are.
FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen64");
  const bool counts = below_root(path, AT_FDCWD);
  const Action action = counts ? called(mode[0] == 'r' ? Kind::open : Kind::create, path) : Action::none;
  FILE* const stream = instead(action, static_cast<FILE*>(nullptr), [&] { return real(path, mode); });
  if (stream && fileno(stream) < 4096) counted[fileno(stream)] = counts;
  return stream;
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
std::size_t fread(void* buffer, std::size_t size, std::size_t count, FILE* stream) {
  static const auto real = next<std::size_t (*)(void*, std::size_t, std::size_t, FILE*)>("fread");
  const Action action = called_on(Kind::read, fileno(stream));
  return instead(action, std::size_t(0), [&] { return real(buffer, size, count, stream); });
}
std::size_t fwrite(const void* buffer, std::size_t size, std::size_t count, FILE* stream) {
  static const auto real = next<std::size_t (*)(const void*, std::size_t, std::size_t, FILE*)>("fwrite");
  const Action action = called_on(Kind::write, fileno(stream));
  return instead(action, std::size_t(0), [&] { return real(buffer, size, count, stream); });
}
int fclose(FILE* stream) {
  static const auto real = next<int (*)(FILE*)>("fclose");
  const int file = fileno(stream);
  const Action action = called_on(Kind::close, file);
  if (file >= 0 && file < 4096) counted[file] = false;
  if (action == Action::fail) real(stream);
  return instead(action, EOF, [&] { return real(stream); });
}
DIR* opendir(const char* path) {
  static const auto real = next<DIR* (*)(const char*)>("opendir");
  const Action action = below_root(path, AT_FDCWD) ? called(Kind::open, path) : Action::none;
  return instead(action, static_cast<DIR*>(nullptr), [&] { return real(path); });
}

}  // extern "C"
