// Reads a TOML file of options as a flat list: `width = 8` in section [srnn] is srnn.width. options.h knows what the
// names mean and which values fit.
#pragma once
#include <string>
#include <vector>

namespace reel {

struct FileValue {
  std::string name;   // "steps", "srnn.width"; for a section's header, "srnn"
  std::string type;   // TOML's: "integer", "floating-point", "boolean", "string", "array", "table"
  std::string text;   // the value as typed after an option; empty for arrays and tables
  std::string where;  // "runs/a/config.toml:3"
};

/// Reads all values of a TOML file; throws Usage with file and line if it cannot be read.
std::vector<FileValue> read_options_file(const std::string& path);

/// The same from text that check_toml() accepts; `path` is used for `where` and errors only.
std::vector<FileValue> parse_options(const std::string& path, const std::string& text);

/// `text` as a TOML string.
std::string toml_string(const std::string& text);

/// True if a TOML file gives this text back unchanged; text that is not UTF-8 would make the file unreadable.
bool survives_toml(const std::string& text);

}  // namespace reel
