// Whole files: read at once, and replaced at once, so that a file is always the old one or the new one.
#pragma once
#include <string>
#include <string_view>

namespace reel {

/// The bytes of a file; throws Error with the path and the reason.
std::string read_file(const std::string& path);

/// Puts the bytes into a file so that a crash at any moment leaves the old file or the new one, never a part; throws
/// Error with the path and the reason, and leaves nothing behind.
void write_atomically(const std::string& path, std::string_view bytes);

/// An open file that closes itself.
class FileHandle {
 public:
  /// Opens as open(2) does; throws Error "[path] cannot be DOING: reason".
  FileHandle(const std::string& path, int flags, const char* doing);
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  int get() const { return handle_; }
  /// Writes all bytes and waits until the disk has them.
  void write(std::string_view bytes);
  /// Throws Error with the path and the reason that errno holds.
  [[noreturn]] void fail(const char* doing) const;

 private:
  std::string path_;
  int handle_;
};

}  // namespace reel
