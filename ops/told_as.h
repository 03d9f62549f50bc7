// Names for errors of ops that are made of others.
#pragma once
#include <string_view>

#include "engine/core/error.h"

namespace reel {

/// Runs f as the op called `name`: errors of `inner`, an op that f calls, name the op that the user called.
template <class F>
auto told_as(const char* name, std::string_view inner, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    const std::string_view text = e.what();
    if (!text.starts_with(fmt::format("[{}] ", inner))) throw;
    throw Error(name, std::string(text.substr(inner.size() + 3)));
  }
}

}  // namespace reel
