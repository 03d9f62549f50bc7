#include "tasks/io/spawn.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <thread>

extern char** environ;

namespace reel {

namespace {

/// An in-memory file.
class Memory {
 public:
  explicit Memory(const char* name) : handle_(memfd_create(name, MFD_CLOEXEC)) {}
  ~Memory() {
    if (handle_ >= 0) close(handle_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  int get() const { return handle_; }

  bool put(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(handle_, text.data(), text.size());
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return lseek(handle_, 0, SEEK_SET) == 0;
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

/// Starts a program; returns an errno, or 0. It has a process group of its own, so that we decide what Ctrl-C does to
/// it. Signals that we ignore (output.h) have their default actions in it, and so has the one that is to end it.
int start(pid_t& child, const std::vector<std::string>& arguments, const posix_spawn_file_actions_t& actions,
          char* const* environment) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  sigaddset(&ignored, SIGXFSZ);
  sigaddset(&ignored, SIGTERM);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environment);
  posix_spawnattr_destroy(&attributes);
  return error;
}

/// Waits for a program to end; returns its exit code, or 128 + the signal that ended it. `stop`, if given, is called
/// twenty times a second; from the first time that it returns true the program gets `signals` SIGTERMs, a second apart.
int wait_for(pid_t child, const std::function<bool()>& stop, int signals = 1) {
  int status = 0;
  if (!stop) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  } else {
    int sent = 0;
    std::chrono::steady_clock::time_point last;
    while (waitpid(child, &status, WNOHANG) == 0) {
      const auto now = std::chrono::steady_clock::now();
      if (stop() && sent < signals && (sent == 0 || now - last >= std::chrono::seconds(1))) {
        kill(child, SIGTERM);
        ++sent;
        last = now;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Spawned run_child(const std::vector<std::string>& arguments, const std::string& input,
                  const std::function<bool()>& stop, int signals) {
  const Memory in("stdin"), out("stdout"), errors("stderr");
  Spawned result;
  if (out.get() < 0 || errors.get() < 0 || !in.put(input)) {
    result.problem = fmt::format("could not be started: {}", std::strerror(errno));
    return result;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error = start(child, arguments, actions, environ);
  if (error == ENOENT) {
    result.problem = "is not installed";
  } else if (error != 0) {
    result.problem = fmt::format("could not be started: {}", std::strerror(error));
  } else {
    result.code = wait_for(child, stop, signals);
    result.out = out.text();
    result.err = errors.text();
    if (result.code != 0) {
      result.problem = result.err.empty() ? fmt::format("failed with exit status {}", result.code)
                                          : "failed: " + result.err.substr(0, 400);
      std::replace(result.problem.begin(), result.problem.end(), '\n', ' ');
    }
  }
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

bool can_run(const std::string& program) {
  const auto is_program = [](const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != program.npos) return is_program(program);
  const char* const folders = std::getenv("PATH");
  std::istringstream list(folders ? folders : "/bin:/usr/bin");
  for (std::string folder; std::getline(list, folder, ':');)
    if (is_program(std::filesystem::path(folder) / program)) return true;
  return false;
}

int run_logged(const std::vector<std::string>& arguments, const std::string& out, const std::string& err,
               const std::function<bool()>& stop) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int create = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), create, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), create, 0644);
  const std::string owner = fmt::format("{}={}", owner_variable, getpid());
  std::vector<char*> environment;
  for (char** one = environ; *one; ++one)
    if (!std::string_view(*one).starts_with(fmt::format("{}=", owner_variable))) environment.push_back(*one);
  environment.push_back(const_cast<char*>(owner.c_str()));
  environment.push_back(nullptr);
  pid_t child = 0;
  const int error = start(child, arguments, actions, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  return error != 0 ? could_not_start : wait_for(child, stop);
}

}  // namespace reel
