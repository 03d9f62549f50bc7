// Where a text stops being JSON, in words for the user.
#pragma once
#include <string>
#include <string_view>

namespace reel {

/// "line 3, column 7" if the text is no JSON from there on.
std::string json_fault(std::string_view text);
/// What an exception of the JSON library says, without its name and number: "key 'runs' not found".
std::string json_words(std::string_view what);

}  // namespace reel
