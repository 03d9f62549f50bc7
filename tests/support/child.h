// Programs of build/bin as child processes of a test.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tasks/io/files.h"

namespace reel::test {

struct Result {
  int code = -1;
  std::string out, err;
};

/// What a child process may use at most: RLIMIT_AS, RLIMIT_CPU and others.
using Limits = std::vector<std::pair<__rlimit_resource, rlim_t>>;

/// A task program as a child process, or one of another folder, whose path begins with '/'.
class Child {
 public:
  Child(const std::string& program, const std::vector<std::string>& arguments, const std::string& folder,
        const std::vector<std::string>& environment = {}, const Limits& limits = {})
      : out_(folder + "/stdout"), err_(folder + "/stderr") {
    pid_ = fork();
    if (pid_ != 0) return;
    const auto redirect = [](const std::string& path, int to) {
      dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), to);
    };
    redirect(out_, 1);
    redirect(err_, 2);
    signal(SIGHUP, SIG_DFL);  // ignored if the tests run under nohup
    for (const std::string& e : environment) putenv(const_cast<char*>(e.c_str()));
    const std::string path = program.starts_with('/') ? program : std::string(REEL_BIN_DIR "/") + program;
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    for (const auto& [resource, most] : limits) {
      const rlimit both{most, most};
      setrlimit(resource, &both);
    }
    execv(path.c_str(), argv.data());
    _exit(127);
  }
  void send(int signal) const { kill(pid_, signal); }
  Result wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out_), read_file(err_)};
  }

 private:
  pid_t pid_;
  std::string out_, err_;
};

inline Result run(const std::string& program, const std::vector<std::string>& arguments, const std::string& folder,
                  const std::vector<std::string>& environment = {}, const Limits& limits = {}) {
  return Child(program, arguments, folder, environment, limits).wait();
}

}  // namespace reel::test
