// Whole files: read at once, and replaced at once, so that a file is always the old one or the new one.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace reel {

/// The bytes of a file; throws Error with the path and the reason, also when there are more than `limit`, before it
/// asks for their memory. A pipe or a device may have no end: of such a one 2^28 bytes are the limit at most.
std::string read_file(const std::string& path, std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

/// Puts the bytes into a file so that a crash at any moment leaves the old file or the new one, never a part; throws
/// Error with the path and the reason, and leaves nothing behind. A file keeps its permissions; a symbolic link stays,
/// and what it names is replaced; a device or a pipe is written to as it is.
void write_atomically(const std::string& path, std::string_view bytes);

/// An open file that closes itself.
class FileHandle {
 public:
  /// Opens as open(2) does; throws Error "[path] cannot be DOING: reason".
  FileHandle(const std::string& path, int flags, const char* doing);
  /// Takes over what open(2) returned.
  FileHandle(int handle, std::string path, const char* doing);
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  int get() const { return handle_; }
  /// Writes all bytes and waits until the disk has them.
  void write(std::string_view bytes);
  /// Closes it now; throws Error when what was written did not arrive.
  void close();
  /// Throws Error with the path and the reason that errno holds.
  [[noreturn]] void fail(const char* doing) const;

 private:
  std::string path_;
  int handle_;
};

}  // namespace reel
