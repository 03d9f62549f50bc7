#include "tasks/io/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace reel {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

int stdout_error = 0;  // errno of the first failure; stdout itself only keeps that there was one

void keep_error() {
  if (stdout_error == 0) stdout_error = errno;
}

}  // namespace

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) keep_error();
}

bool flush_out() {
  if (std::fflush(stdout) != 0) keep_error();
  return stdout_error == 0;
}

void write_err(std::string_view text) {
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void open_standard_streams() {
  for (const int handle : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(handle, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() takes the lowest free number, which is this one; the wrong access mode makes its use fail as before
    (void)!open("/dev/null", handle == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // if our parent ignores it, we could not see how a program ended
}

std::optional<std::string> deliver_out() {
  flush_out();
  if (!std::ferror(stdout) && close(dup(STDOUT_FILENO)) != 0) keep_error();  // a full disk may show only here
  if (!std::ferror(stdout) && stdout_error == 0) return std::nullopt;
  return fmt::format("[stdout] cannot be written{}{}", stdout_error ? ": " : "",
                     stdout_error ? std::strerror(stdout_error) : "");
}

bool out_reader_gone() { return stdout_error == EPIPE; }

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_control(c))
      out += c;
    else if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./,:=@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  if (std::none_of(word.begin(), word.end(), is_control)) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
  }
  std::string out = "$'";  // with escapes, for bash, zsh and ksh
  for (const char c : word) {
    if (is_control(c))
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return out + "'";
}

std::string shell_path(const std::string& path) { return shell_word(path.starts_with('-') ? "./" + path : path); }

}  // namespace reel
