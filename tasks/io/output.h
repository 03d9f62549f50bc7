// The output of a program: results go to stdout, which must arrive or the program fails; messages go to stderr, which
// may get lost. Neither ever throws: a full disk under a log, or a reader that has gone away, must not end a run.
#pragma once
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

namespace reel {

/// Writes a result to stdout.
void write_out(std::string_view text);
/// Writes a message to stderr.
void write_err(std::string_view text);
/// Flushes stdout, so that its reader sees what has been printed so far. False if any of it could not be written.
bool flush_out();

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

/// Opens those of the file descriptors 0, 1 and 2 that are closed, so that no file gets their numbers. Turns a write to
/// a pipe without a reader, or beyond a file size limit, into an error instead of a signal that ends the process.
void open_standard_streams();
/// Flushes stdout at the end; returns one line if any of it could not be written.
std::optional<std::string> deliver_out();
/// True if what could not be written went to a pipe whose reader has gone, such as `head`.
bool out_reader_gone();

/// Escapes control characters as \n, \t, \x1b, so that the text is one line and safe for a terminal.
std::string one_line(std::string_view text);
/// Quotes a word, where needed, as a shell reads it.
std::string shell_word(const std::string& word);
/// Quotes a path, where needed, as one word of a shell command line that no program takes for an option.
std::string shell_path(const std::string& path);

}  // namespace reel
