// Names for errors of ops that are made of others.
#pragma once
#include <string_view>

#include "ops/arg.h"

namespace reel {

/// Runs f as the op called `name`: errors of `inner`, an op that f calls, name the op that the user called. If these
/// `arguments` of that op are not what `inner` gets, errors show them.
template <class F>
auto told_as(const char* name, std::string_view inner, std::initializer_list<const Arg*> arguments, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    const std::string_view text = e.what();
    if (!text.starts_with(fmt::format("[{}] ", inner))) throw;
    const std::string_view rule = text.substr(inner.size() + 3), without = rule.substr(0, rule.rfind("; got "));
    if (arguments.size() == 0 || without == rule) throw Error(name, std::string(rule));
    std::string got;
    for (const Arg* x : arguments) got += (got.empty() ? "" : ", ") + x->tensor(name).spec().str();
    fail(name, (*arguments.begin())->where, "{}; got {}", without, got);
  }
}
template <class F>
auto told_as(const char* name, std::string_view inner, F&& f) {
  return told_as(name, inner, {}, f);
}

}  // namespace reel
