#include "tasks/harness/gnuplot.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace reel {

namespace fs = std::filesystem;

namespace {

/// Runs gnuplot on a script; returns what went wrong. No shell: a folder's name cannot become a command.
std::optional<std::string> run_gnuplot(const std::string& text) {
  const int input = memfd_create("gnuplot script", MFD_CLOEXEC), errors = memfd_create("gnuplot errors", MFD_CLOEXEC);
  std::optional<std::string> wrong;
  if (input < 0 || errors < 0 || write(input, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(input, 0, SEEK_SET) != 0)
    wrong = std::strerror(errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;  // a group of its own: Ctrl-C is for us, and the picture is still drawn
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  char name[] = "gnuplot";
  char* arguments[] = {name, nullptr};
  if (!wrong) {
    const int error = posix_spawnp(&child, name, &actions, &attributes, arguments, environ);
    int status = 0;
    if (error == ENOENT) {
      wrong = "gnuplot is not installed";
    } else if (error != 0) {
      wrong = std::string("gnuplot: ") + std::strerror(error);
    } else {
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
      if (status != 0) {
        char said[400];
        const ssize_t n = pread(errors, said, sizeof said, 0);
        wrong = "gnuplot failed: " + std::string(said, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        std::replace(wrong->begin(), wrong->end(), '\n', ' ');
      }
    }
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (input >= 0) close(input);
  if (errors >= 0) close(errors);
  return wrong;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c == '\n' || c == '\r' ? ' ' : c);
  return out + "'";
}

std::optional<std::string> draw_picture(const std::string& svg, const std::string& settings, const std::string& plot,
                                        int width, int height) {
  const auto no_picture = [&](const std::string& why) { return fmt::format("no picture {}: {}", svg, why); };
  const std::string png = fs::path(svg).replace_extension(".png");
  const std::string new_svg = svg + ".tmp", new_png = png + ".tmp";
  // nothing between "set output" and the end of the plot may fail, or half a picture would be left
  const auto draw = [&](const std::string& terminal, const std::string& path) {
    return fmt::format("set terminal {} background '#ffffff'\nset output {}\n{}\nunset output\n", terminal,
                       quoted(path), plot);
  };
  const std::string size = fmt::format("{},{}", width, height);
  const std::optional<std::string> wrong = run_gnuplot(
      settings + draw("svg size " + size + " dynamic font 'Helvetica,Arial,DejaVu Sans,sans-serif,14'", new_svg) +
      draw("pngcairo size " + size + " font 'sans,11'", new_png));
  std::error_code error, failed;
  if (!wrong) {
    fs::rename(new_svg, svg, failed);
    fs::rename(new_png, png, error);
    if (!failed) failed = error;
  }
  fs::remove(new_svg, error);
  fs::remove(new_png, error);
  if (wrong) return no_picture(*wrong);
  return failed ? std::optional(no_picture(failed.message())) : std::nullopt;
}

}  // namespace reel
