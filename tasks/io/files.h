// Reads whole files, and replaces them atomically, so that a file always has either its old or its new contents.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace reel {

/// The bytes of a file. Throws Error with the path and the reason, also if there are more than `limit`, before
/// allocating memory for them. A pipe or a device may never end, so its limit is at most 2^28 bytes.
std::string read_file(const std::string& path, std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

/// The last bytes of a file, `most` at most; for files that grow.
std::string read_end(const std::string& path, std::uint64_t most);

/// Replaces a file so that a crash at any moment leaves the old file or the new one, never a part. Throws Error with
/// the path and the reason, and leaves nothing behind. A file keeps its permissions; for a symbolic link, its target is
/// replaced; a device or a pipe is written to directly.
void write_atomically(const std::string& path, std::string_view bytes);

/// Throws the Error of write_atomically if it is certain to fail: before long work, not after it.
void require_writable(const std::string& path);

/// Removes the temporary files that calls of write_atomically left in a folder because their process was killed, as
/// far as it can: those of files whose names are `ours`. Those of a running process stay.
void remove_unfinished(const std::string& folder, const std::function<bool(std::string_view)>& ours);

/// An open file that closes itself.
class FileHandle {
 public:
  /// Opens like open(2); throws Error "[path] cannot be DOING: reason".
  FileHandle(const std::string& path, int flags, const char* doing);
  /// Takes ownership of what open(2) returned.
  FileHandle(int handle, std::string path, const char* doing);
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  int get() const { return handle_; }
  /// Writes all bytes and waits until they are on disk.
  void write(std::string_view bytes);
  /// Closes it now; throws Error if the written bytes did not arrive.
  void close();
  /// Throws Error with the path and the reason in errno.
  [[noreturn]] void fail(const char* doing) const;

 private:
  std::string path_;
  int handle_;
};

}  // namespace reel
