#include "tests/faults/workplace.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "tasks/io/files.h"

namespace reel::faults {

namespace fs = std::filesystem;

namespace {

constexpr rlim_t cpu_seconds = 20;        // a run takes a tenth of one: who takes so many goes round in circles
constexpr double wall_seconds = 120;      // who takes so many waits for what never comes
constexpr std::size_t most_output = 1e6;  // of a program, in bytes

/// Draws nothing, but at once: what surrounds gnuplot is looked at, not gnuplot.
constexpr const char* gnuplot =
    "#!/bin/sh\n/bin/cat >/dev/null\n"
    "printf '<?xml version=\"1.0\"?><svg></svg>\\n\\211PNG\\r\\n\\032\\nIEND\\256B`\\202%%PDF-1.5\n%%%%EOF\n'\n";

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void redirect(const std::string& path, int to) { dup2(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), to); }

void limit(__rlimit_resource what, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(what, &both);
}

/// True when the process has ended within so many seconds.
bool ends_within(int process, double seconds) {
  pollfd end{process, POLLIN, 0};
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const std::chrono::duration<double, std::milli> left = limit - std::chrono::steady_clock::now();
    const timespec time{static_cast<time_t>(std::max(0.0, left.count()) / 1e3),
                        static_cast<long>(std::fmod(std::max(0.0, left.count()), 1e3) * 1e6)};
    const int ready = ppoll(&end, 1, &time, nullptr);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) fail("poll");
  }
}

/// Ends what the program has left running, and waits for it.
void end_orphans() {
  for (pid_t child = 0;;) {
    const std::string all = read_file(fmt::format("/proc/self/task/{}/children", getpid()));
    for (std::size_t at = 0; at < all.size(); at = all.find(' ', at) + 1) kill(std::stoi(all.substr(at)), SIGKILL);
    do child = waitpid(-1, nullptr, 0);
    while (child > 0 || (child < 0 && errno == EINTR));
    if (all.empty()) return;
  }
}

std::string text_of(const std::string& path) {
  std::string text = read_file(path);
  if (text.size() > most_output) text.resize(most_output);
  return text;
}

}  // namespace

bool clear_lines(const std::string& err, const std::string& program) {
  std::istringstream lines(err);
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count)
    if (!line.starts_with(program + ": ")) return false;
  return count > 0;
}

Workplace::Workplace() : bin_(fs::read_symlink("/proc/self/exe").parent_path()) {
  const std::string library = bin_ + "/../lib/libfaults_preload.so";
  if (fs::exists(library)) preload_ = fs::canonical(library);
  dir_ = fs::temp_directory_path() / "reel_faults_XXXXXX";
  if (!mkdtemp(dir_.data())) fail("mkdtemp");
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a killed program leaves running is ours to end
  for (const std::string& folder : {tree(), data(), side(), dir_ + "/bin"}) fs::create_directories(folder);
  write_atomically(dir_ + "/bin/gnuplot", gnuplot);
  fs::permissions(dir_ + "/bin/gnuplot", fs::perms::owner_all);
  const int file = ::open((dir_ + "/state").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, sizeof(State)) != 0) fail("state");
  void* const at = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) fail("state");
  state_ = static_cast<State*>(at);
}

Workplace::~Workplace() {
  munmap(state_, sizeof(State));
  fs::remove_all(dir_);
}

void Workplace::clear(const std::string& copy_of) const {
  fs::remove_all(run());
  if (!copy_of.empty()) fs::copy(copy_of, run(), fs::copy_options::recursive);
}

Ended Workplace::start(const std::vector<std::string>& command, const Plan& plan, double kill_after) {
  state_->plan = plan;
  tree().copy(state_->plan.root, sizeof plan.root - 1);
  state_->calls = state_->allocations = state_->before_main = 0;
  state_->struck = 0;
  state_->owner = 0;
  fs::remove(dir_ + "/state.trace");

  std::vector<std::string> environment{"PATH=" + (dir_ + "/bin"), "HOME=" + dir_, "REEL_PRESETS=" + data()};
  if (with_faults()) {
    environment.push_back("LD_PRELOAD=" + preload_);
    environment.push_back(fmt::format("{}={}", state_variable, dir_ + "/state"));
  }
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  std::vector<std::string> arguments = command;
  const std::vector<char*> argv = pointers(arguments), env = pointers(environment);
  const std::string path = bin_ + "/" + command[0], out = dir_ + "/out", err = dir_ + "/err";

  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, cpu_seconds);
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    execve(path.c_str(), argv.data(), env.data());
    _exit(127);
  }
  const int process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (process < 0) fail("pidfd_open");
  Ended ended;
  if (!ends_within(process, kill_after >= 0 ? kill_after : wall_seconds)) {
    kill(child, SIGKILL);
    ended.stuck = kill_after < 0;
  }
  close(process);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("waitpid");
  end_orphans();
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.stuck |= WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
  ended.out = text_of(out), ended.err = text_of(err);
  return ended;
}

std::string Workplace::trace() const {
  const std::string path = dir_ + "/state.trace";
  return fs::exists(path) ? read_file(path) : "";
}

}  // namespace reel::faults
