// Compiles fusion groups with the system's C++ compiler, the one that Reel was built with, to functions of this
// process.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "backends/shared/kernel_files.h"
#include "engine/device/kernels.h"

namespace reel::cpu {

/// The project's headers that compiled groups include, embedded at build time.
const std::vector<KernelHeader>& own_headers();

using GroupFunction = void (*)(const FusedArgs&);

class GroupCompiler {
 public:
  /// `compiler`: a program's path; empty: that of Reel's own build.
  explicit GroupCompiler(std::string folder = KernelFiles::usual_folder(), std::string compiler = {});
  /// The functions group0, group1, ... that the texts define, from the cache or compiled now. Empty: there is no such
  /// compiler, or it failed.
  std::vector<GroupFunction> compile(const std::vector<std::string>& texts);
  /// The same, but only from the cache.
  std::vector<GroupFunction> cached(const std::vector<std::string>& texts);
  /// Compiles at the caller's priority, as there is no run that should come first.
  void hurry() { hurried_ = true; }
  /// Ends a compilation on another thread; later ones fail.
  void stop();
  int compiled() const { return compiled_; }  // number of compilations, not read from the cache

 private:
  std::string source(const std::vector<std::string>& texts) const;
  std::string name_of(const std::string& source);
  std::string compile_anew(const std::string& source);
  bool run(const std::vector<std::string>& command, const std::string& folder);

  KernelFiles files_;
  std::string compiler_, surroundings_;
  std::vector<std::string> environment_;  // as the compiler was made: other threads may change it meanwhile
  int compiled_ = 0;
  bool hurried_ = false;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  pid_t process_ = 0;  // not yet reaped, so that its id is no other process's; guarded by mutex_
};

}  // namespace reel::cpu
