#include "tasks/runner/claim.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>

#include "tasks/io/output.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds settling(1500);  // until other machines see what was written

std::string file_of(const std::string& folder) { return folder + "/worker.lock"; }

/// How long ago a file was renewed, by this machine's clock; a negative time if it does not exist.
std::chrono::seconds age_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::chrono::seconds(-1);
  return std::chrono::seconds(std::max<std::time_t>(0, std::time(nullptr) - status.st_mtime));
}

/// True for file systems that several machines share. Their numbers are those of statfs(2) and of their own headers.
bool is_shared(const std::string& folder) {
  constexpr std::array<std::uint32_t, 9> shared{0x6969,       // NFS
                                                0xff534d42,   // CIFS
                                                0xfe534d42,   // SMB 2
                                                0x0bd00bd0,   // Lustre
                                                0x47504653,   // GPFS
                                                0x19830326,   // BeeGFS
                                                0x00c36400,   // Ceph
                                                0x5346414f,   // AFS
                                                0x65735546};  // FUSE, as of sshfs and GlusterFS
  struct statfs status {};
  if (statfs(folder.c_str(), &status) != 0) return false;
  return std::find(shared.begin(), shared.end(), static_cast<std::uint32_t>(status.f_type)) != shared.end();
}

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string first_line(const std::string& path) try {
  const std::string text = read_file(path, 4096);
  return one_line(text.substr(0, text.find('\n')));
} catch (const Error&) {
  return "";  // it is just going
}

Busy busy(const std::string& folder, const std::string& owner) {
  return Busy(folder,
              fmt::format("is in use by {}. Hint: wait until it ends; without a sign of life from it, the folder is "
                          "free after {} seconds.",
                          owner.empty() ? "another program" : owner, Claim::patience.count()));
}

/// The path of the lock, unless another machine's owner is alive.
std::string free_path(const std::string& folder) {
  std::string path = file_of(folder);
  const std::string owner = first_line(path);
  const std::chrono::seconds age = age_of(path);
  const bool here = owner.find(fmt::format(" on {}) ", host())) != std::string::npos;  // then the lock decides
  if (!owner.empty() && !here && age >= std::chrono::seconds(0) && age < Claim::patience) throw busy(folder, owner);
  return path;
}

}  // namespace

Claim::Claim(const std::string& folder)
    : path_(free_path(folder)), lock_(path_, folder), renewed_(std::chrono::steady_clock::now()) {
  if (lock_.locked() && !is_shared(folder)) return;
  const std::string ours = first_line(path_);
  std::this_thread::sleep_for(settling);
  if (const std::string owner = first_line(path_); owner != ours) throw busy(folder, owner);
}

void Claim::renew() {
  const auto now = std::chrono::steady_clock::now();
  if (now - renewed_ < renewal) return;
  renewed_ = now;
  (void)!utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);  // a full disk takes this, too
}

void clear_dead_claim(const std::string& folder) {
  std::error_code error;
  try {
    if (fs::exists(file_of(folder), error)) const Claim free(folder);
  } catch (const Error&) {  // someone has it, or it stays, which does no harm
  }
}

bool claimed(const std::string& folder) {
  const std::chrono::seconds age = age_of(file_of(folder));
  return age >= std::chrono::seconds(0) && age < Claim::patience;
}

}  // namespace reel
