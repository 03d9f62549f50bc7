// Names for errors of ops that are made of others.
#pragma once
#include <string_view>
#include <typeinfo>

#include "ops/arg.h"

namespace reel {

/// Runs f as the op called `name`: errors of `inner`, an op that f calls, or of any if it is "", name the op that the
/// user called. If these `arguments` of that op are not what `inner` gets, errors show those that are tensors, and the
/// line of the first.
template <class F>
auto told_as(const char* name, std::string_view inner, std::initializer_list<const Arg*> arguments, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    const std::string_view text = e.what();
    const std::size_t end = text.find("] ");
    if (typeid(e) != typeid(Error) || !text.starts_with('[') || end == std::string_view::npos) throw;
    const std::string_view op = text.substr(1, end - 1);
    if (op == name || (op != inner && !inner.empty())) throw;
    const std::string_view rule = text.substr(end + 2), without = rule.substr(0, rule.rfind("; got "));
    if (arguments.size() == 0 || without == rule) throw Error(name, std::string(rule));
    std::string got;
    for (const Arg* x : arguments) {
      if (!x->is_number() && !x->is_complex_number()) got += (got.empty() ? "" : ", ") + x->tensor().spec().str();
    }
    fail(name, (*arguments.begin())->where, "{}; got {}", without, got);
  }
}
/// The same for an `inner` that gets what the user passed.
template <class F>
auto told_as(const char* name, std::string_view inner, F&& f) {
  return told_as(name, inner, {}, f);
}

}  // namespace reel
