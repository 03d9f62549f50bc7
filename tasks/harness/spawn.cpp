#include "tasks/harness/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

extern char** environ;

namespace reel {

namespace {

/// A file in memory.
class Memory {
 public:
  explicit Memory(const char* name) : handle_(memfd_create(name, MFD_CLOEXEC)) {}
  ~Memory() {
    if (handle_ >= 0) close(handle_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  int get() const { return handle_; }

  bool put(const std::string& text) const {
    return handle_ >= 0 && write(handle_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
           lseek(handle_, 0, SEEK_SET) == 0;
  }
  std::string text() const {
    std::string all;
    char block[4096];
    for (ssize_t n = 0; (n = pread(handle_, block, sizeof block, static_cast<off_t>(all.size()))) > 0;)
      all.append(block, static_cast<std::size_t>(n));
    return all;
  }

 private:
  int handle_;
};

}  // namespace

Spawned run_child(const std::vector<std::string>& arguments, const std::string& input) {
  const Memory in("stdin"), out("stdout"), errors("stderr");
  Spawned result;
  if (!in.put(input) || out.get() < 0 || errors.get() < 0) {
    result.problem = std::strerror(errno);
    return result;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;  // a group of its own: Ctrl-C is for us, and the program still finishes
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  int status = 0;
  if (error == ENOENT) {
    result.problem = "is not installed";
  } else if (error != 0) {
    result.problem = std::strerror(error);
  } else {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) {
      result.problem = "failed: " + errors.text().substr(0, 400);
      std::replace(result.problem.begin(), result.problem.end(), '\n', ' ');
    }
    result.out = out.text();
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

int run_logged(const std::vector<std::string>& arguments, const std::string& out, const std::string& err,
               const std::function<bool()>& stop) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int create = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), create, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), create, 0644);
  posix_spawnattr_t attributes;  // a group of its own: what Ctrl-C means to it is for us to say
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  bool stopped = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (stop() && !stopped) stopped = kill(child, SIGTERM) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace reel
