#include "backends/shared/kernel_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace reel {

namespace {

namespace fs = std::filesystem;

/// A 64-bit FNV-1a hash of a text.
std::uint64_t hash(const std::string& text, std::uint64_t start) {
  for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return start;
}
/// The header of a cache file: a magic word, then size and hash of the code; the code follows.
std::string header(const std::string& code) { return fmt::format("reel kernel {} {}\n", code.size(), hash_text(code)); }

}  // namespace

std::string hash_text(const std::string& text) {
  return fmt::format("{:016x}{:016x}", hash(text, 0xcbf29ce484222325ULL), hash(text, 0x9e3779b97f4a7c15ULL));
}

std::string KernelFiles::usual_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/reel/kernels";
  if (home && *home == '/') return std::string(home) + "/.cache/reel/kernels";
  return {};
}

std::string KernelFiles::read(const std::string& name) const {
  if (folder_.empty()) return {};
  std::ifstream file(folder_ + "/" + name, std::ios::binary);
  std::ostringstream all;
  if (!file || !(all << file.rdbuf())) return {};
  const std::string text = all.str();
  const std::size_t line = text.find('\n');
  if (line == std::string::npos) return {};
  std::string code = text.substr(line + 1);
  return text.compare(0, line + 1, header(code)) == 0 ? code : std::string();
}

void KernelFiles::write(const std::string& name, const std::string& code) const {
  if (folder_.empty()) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  const std::string path = folder_ + "/" + name, draft = fmt::format("{}.{}", path, gettid());
  std::ofstream file(draft, std::ios::binary);
  file << header(code) << code;
  file.close();
  if (file) fs::rename(draft, path, failed);
  if (!file || failed) fs::remove(draft, failed);
  drop_oldest();
}

void KernelFiles::drop_oldest() const {
  struct File {
    fs::file_time_type time;
    std::uintmax_t size;
    fs::path path;
  };
  std::vector<File> files;
  std::uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator entry(folder_, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code gone;  // another program may remove it meanwhile
    const File file{entry->last_write_time(gone), entry->file_size(gone), entry->path()};
    if (gone) continue;
    files.push_back(file);
    bytes += file.size;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (bytes <= limit_) return;
    fs::remove(file.path, failed);
    bytes -= file.size;
  }
}

}  // namespace reel
