#include "backends/cpu/codegen/group_compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "backends/shared/temporary_folder.h"

extern char** environ;

namespace reel::cpu {

namespace {

namespace fs = std::filesystem;

/// What the compiled code depends on besides its text: the compiler's file, options, and what -march=native means here.
std::string surroundings(const std::string& compiler) {
  std::error_code failed;
  std::string all =
      fmt::format("{} {} {} {}\n", compiler, REEL_CPU_OPTIONS, fs::file_size(fs::canonical(compiler, failed), failed),
                  fs::last_write_time(compiler, failed).time_since_epoch().count());
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line) && !line.empty();) {  // of the first core
    if (line.starts_with("model name") || line.starts_with("flags")) all += line;
  }
  for (const KernelHeader& h : own_headers()) all += h.text;
  return all;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

bool write(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file.good();
}

/// Loads a shared library from memory, so that what was checked is what is loaded, for the life of the process. Its
/// file stays open: dlopen knows libraries by their names, which are those of open files here.
void* load_library(const std::string& code) {
  const int file = memfd_create("reel", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  std::size_t done = 0;
  while (done < code.size()) {
    const ssize_t n = ::write(file, code.data() + done, code.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  void* const library =
      done == code.size() ? dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) close(file);
  return library;
}

/// The functions group0, group1, ... of a shared library; empty if it cannot be loaded.
std::vector<GroupFunction> load(const std::string& code, std::size_t count) {
  void* const library = code.empty() ? nullptr : load_library(code);
  std::vector<GroupFunction> functions;
  for (std::size_t i = 0; library && i < count; ++i) {
    const auto f = reinterpret_cast<GroupFunction>(dlsym(library, fmt::format("group{}", i).c_str()));
    if (!f) return {};
    functions.push_back(f);
  }
  return functions;
}

/// Ends a compiler and what it has started: GCC's driver leaves the compiler proper running.
void end(pid_t process) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", process));
  const std::vector<pid_t> children{std::istream_iterator<pid_t>(list), {}};
  kill(process, SIGTERM);
  for (const pid_t child : children) kill(child, SIGKILL);
}

}  // namespace

GroupCompiler::GroupCompiler(std::string folder, std::string compiler)
    : files_(std::move(folder)), compiler_(compiler.empty() ? REEL_CPU_COMPILER : std::move(compiler)) {
  for (char** variable = environ; *variable; ++variable) environment_.emplace_back(*variable);
}

std::string GroupCompiler::source(const std::vector<std::string>& texts) const {
  std::string all = "#include \"backends/cpu/codegen/device.h\"\n\n";
  // Flattened: in a long function GCC stops inlining, and what is not inlined does not know its sizes.
  for (std::size_t i = 0; i < texts.size(); ++i)
    all += fmt::format("extern \"C\" [[gnu::flatten]] void group{}{}\n", i, texts[i]);
  return all;
}

std::string GroupCompiler::name_of(const std::string& source) {
  if (surroundings_.empty()) surroundings_ = surroundings(compiler_);
  return hash_text(surroundings_ + source) + ".so";
}

std::vector<GroupFunction> GroupCompiler::cached(const std::vector<std::string>& texts) {
  return load(files_.read(name_of(source(texts))), texts.size());
}

std::vector<GroupFunction> GroupCompiler::compile(const std::vector<std::string>& texts) {
  const std::string text = source(texts), name = name_of(text);
  if (std::vector<GroupFunction> known = load(files_.read(name), texts.size()); !known.empty()) return known;
  const std::string code = compile_anew(text);
  if (!code.empty()) files_.write(name, code);
  return load(code, texts.size());
}

std::string GroupCompiler::compile_anew(const std::string& source) {
  std::error_code failed;
  const fs::path place = fs::temp_directory_path(failed);
  if (failed) return {};
  const TemporaryFolder folder((place / "reel").string());
  if (!folder || !write(folder.file("groups.cpp"), source)) return {};
  for (const KernelHeader& h : own_headers()) {
    if (!write(folder.file(h.name), h.text)) return {};
  }
  std::vector<std::string> command{compiler_};
  for (std::string& word : words(REEL_CPU_OPTIONS)) command.push_back(std::move(word));
  for (const char* word : {"-w", "-shared", "-fPIC", "-o"}) command.emplace_back(word);
  command.push_back(folder.file("groups.so"));
  command.push_back("-I" + folder.path());
  command.push_back(folder.file("groups.cpp"));
  if (!run(command, folder.path())) return {};
  std::ifstream file(folder.file("groups.so"), std::ios::binary);
  std::ostringstream code;
  if (!(code << file.rdbuf())) return {};
  ++compiled_;
  return code.str();
}

/// Runs a command without a terminal, with its temporary files in a folder. False: it failed, or stop() ended it.
bool GroupCompiler::run(const std::vector<std::string>& command, const std::string& folder) {
  if (stopped_) return false;
  std::string temporary = "TMPDIR=" + folder;
  std::vector<char*> environment;
  for (std::string& variable : environment_) {
    if (!variable.starts_with("TMPDIR=")) environment.push_back(variable.data());
  }
  environment.insert(environment.end(), {temporary.data(), nullptr});
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int stream = 0; stream < 3; ++stream)
    posix_spawn_file_actions_addopen(&files, stream, "/dev/null", stream == 0 ? O_RDONLY : O_WRONLY, 0);
  pid_t process = 0;
  const bool started = posix_spawn(&process, arguments[0], &files, nullptr, arguments.data(), environment.data()) == 0;
  posix_spawn_file_actions_destroy(&files);
  if (!started) return false;
  if (!hurried_) setpriority(PRIO_PROCESS, static_cast<id_t>(process), 10);  // on a busy machine the run comes first
  {
    const std::lock_guard lock(mutex_);
    process_ = process;
    if (stopped_) end(process);
  }
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  const std::lock_guard lock(mutex_);  // from here on stop() finds no process
  process_ = 0;
  int status = 0;
  return waitpid(process, &status, WNOHANG) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void GroupCompiler::stop() {
  stopped_ = true;
  const std::lock_guard lock(mutex_);
  if (process_ != 0) end(process_);
}

}  // namespace reel::cpu
