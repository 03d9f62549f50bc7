// Letters in lower case, the same in every locale.
#pragma once
#include <string>

namespace reel {

/// ASCII letters in lower case; other bytes stay.
inline std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace reel
