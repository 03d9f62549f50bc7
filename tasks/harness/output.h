// What a program says: results on stdout, which must arrive or the program fails; messages on stderr, which may get
// lost. Neither ever throws: a full disk under a log, or a reader that has gone away, must not end a run.
#pragma once
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

namespace reel {

void write_out(std::string_view text);
void write_err(std::string_view text);
/// Lets whoever reads stdout see what has been printed so far.
void flush_out();

/// Prints a result to stdout.
template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}
/// Prints a message to stderr.
template <class... Args>
void print_err(fmt::format_string<Args...> format, Args&&... args) {
  write_err(fmt::format(format, std::forward<Args>(args)...));
}

/// Opens what is closed of file descriptors 0, 1 and 2, so that no file gets their numbers. Makes writing to a pipe
/// that nobody reads, or beyond a limit of file sizes, an error instead of a signal that ends the process.
void open_standard_streams();
/// Delivers what was printed to stdout; returns one line when any of it could not be written.
std::optional<std::string> deliver_out();

/// The text with its control characters written as \n, \t, \x1b, so that it is one line and safe for a terminal.
std::string one_line(std::string_view text);
/// A path as one word of a shell's command line that no program takes for an option; in quotes where it needs them.
std::string shell_path(const std::string& path);

}  // namespace reel
