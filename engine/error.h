// Errors a user can cause: what failed, the rule in words, the values, where it was called, and a hint when one is
// known.
#pragma once
#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace reel {

using Where = std::source_location;

/// A failure the user can mend. what() reads "[subject] rule and values. Hint: ... (file:line)".
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text) {}
  Error(const std::string& subject, const std::string& rule) : std::runtime_error("[" + subject + "] " + rule) {}
};

/// A value of an option that cannot be: "--hidden: 1 or more units are needed, got 0".
struct OptionError : Error {
  OptionError(const std::string& option, const std::string& rule) : Error(option + ": " + rule) {}
};

/// A broken rule found where neither the op's name nor the caller's line is known; apply() adds both.
struct RuleError : Error {
  explicit RuleError(std::string text) : Error("tensor", text), rule(std::move(text)) {}
  std::string rule;
};

/// There is less memory than is needed; `rule` says how much of either, without the subject.
struct OutOfMemory : Error {
  OutOfMemory(const std::string& subject, std::string text) : Error(subject, text), rule(std::move(text)) {}
  std::string rule;
};

/// Throws RuleError: for use inside Op::infer, where the op's name and the caller's line are not known.
template <class... Args>
[[noreturn]] void broken(fmt::format_string<Args...> format, Args&&... args) {
  throw RuleError(fmt::format(format, std::forward<Args>(args)...));
}

/// "cells/lstm.cpp:41", relative to the project's root.
inline std::string str(const Where& where) { return fmt::format("{}:{}", where.file_name(), where.line()); }

/// Throws Error with the caller's line at its end.
template <class... Args>
[[noreturn]] void fail(const char* subject, const Where& where, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(subject, fmt::format(format, std::forward<Args>(args)...) + " (" + str(where) + ")");
}

/// Prints "[subject] warning: text" to stderr; silent from the sixth of a subject on. For what need not be wrong, but
/// must not pass unseen.
void warn(const std::string& subject, const std::string& text);
/// How often a subject has warned so far, silently or not.
int warnings(const std::string& subject);

/// A rule of ours, not of the user's: says where the engine contradicts itself.
#define REEL_ASSERT(condition)                                                                           \
  do {                                                                                                   \
    if (!(condition))                                                                                    \
      throw std::logic_error(fmt::format("reel: internal: {} ({}:{})", #condition, __FILE__, __LINE__)); \
  } while (false)

}  // namespace reel
