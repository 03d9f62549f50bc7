// Code that is compiled at run time: the headers that it includes, and a cache of the results in the user's cache
// folder.
#pragma once
#include <string>

namespace reel {

/// A header of the project, embedded at build time.
struct KernelHeader {
  const char* name;
  const char* text;
};

/// A hash of a text, 128 bits in hexadecimal.
std::string hash_text(const std::string& text);

/// A file cache of machine code by name: $XDG_CACHE_HOME/reel/kernels, or below ~/.cache. Write failures are ignored;
/// an incomplete or damaged file counts as missing. The oldest files go when all together are larger than `limit`
/// bytes.
class KernelFiles {
 public:
  /// `folder`: empty disables the cache.
  explicit KernelFiles(std::string folder, std::uintmax_t limit = std::uintmax_t{1} << 28)
      : folder_(std::move(folder)), limit_(limit) {}
  static std::string usual_folder();
  /// The code stored under this name, or an empty string.
  std::string read(const std::string& name) const;
  /// Writes atomically: other programs see the complete file or none.
  void write(const std::string& name, const std::string& code) const;

 private:
  void drop_oldest() const;

  std::string folder_;
  std::uintmax_t limit_;
};

}  // namespace reel
