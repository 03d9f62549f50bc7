// Errors that a user can cause. Each names what failed, the rule, the values, the caller, and a hint if there is one.
#pragma once
#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace reel {

using Loc = std::source_location;

/// An error the user can fix. what() reads "[subject] rule and values. Hint: ... (file:line)".
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text) {}
  Error(const std::string& subject, const std::string& rule) : std::runtime_error("[" + subject + "] " + rule) {}
};

/// An invalid value of a setting: "hidden: 1 or more units are needed, got 0". The hint is a setting and its value.
struct SettingError : Error {
  struct Hint {
    std::string setting, value;
  };
  SettingError(const std::string& of, const std::string& broken, const Hint& better = {})
      : Error(of + ": " + broken + (better.setting.empty() ? "" : ". Hint: " + better.setting + " = " + better.value)),
        setting(of),
        rule(broken),
        hint(better) {}
  std::string setting, rule;
  Hint hint;
};

/// A broken rule, thrown where neither the op's name nor the caller's line is known; apply() adds both.
struct RuleError : Error {
  explicit RuleError(std::string text) : Error("tensor", text), rule(std::move(text)) {}
  std::string rule;
};

/// Not enough memory; `rule` says how much is needed and available, without the subject.
struct OutOfMemory : Error {
  OutOfMemory(const std::string& subject, std::string text) : Error(subject, text), rule(std::move(text)) {}
  std::string rule;
};

/// Throws RuleError, for example inside infer(), where the op's name and the caller's line are not known.
template <class... Args>
[[noreturn]] void rule_error(fmt::format_string<Args...> format, Args&&... args) {
  throw RuleError(fmt::format(format, std::forward<Args>(args)...));
}

/// "cells/lstm.cpp:41", relative to the project root.
inline std::string str(const Loc& where) { return fmt::format("{}:{}", where.file_name(), where.line()); }

/// Throws Error with the caller's line at the end.
template <class... Args>
[[noreturn]] void fail(const char* subject, const Loc& where, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(subject, fmt::format(format, std::forward<Args>(args)...) + " (" + str(where) + ")");
}

/// Prints "[subject] warning: text" to stderr, at most five times for each subject.
void warn(const std::string& subject, const std::string& text);
/// The number of warnings of a subject so far, printed or not.
int warnings(const std::string& subject);

/// Checks an invariant of the engine: a failure is our bug, not the user's.
#define REEL_ASSERT(condition)                                                                           \
  do {                                                                                                   \
    if (!(condition))                                                                                    \
      throw std::logic_error(fmt::format("reel: internal: {} ({}:{})", #condition, __FILE__, __LINE__)); \
  } while (false)

}  // namespace reel
