// A TOML file of options as a flat list: `width = 8` in section [srnn] is srnn.width. What the names mean and which
// value fits is not known here; that is options.h.
#pragma once
#include <string>
#include <vector>

namespace reel {

struct FileValue {
  std::string name;   // "steps", "srnn.width"; of a section's header, "srnn"
  std::string type;   // TOML's: "integer", "floating-point", "boolean", "string", "array", "table"
  std::string text;   // the value as one would type it behind an option; empty for arrays and tables
  std::string where;  // "runs/a/config.toml:3"
};

/// All values of a TOML file; throws Usage with file and line when it cannot be read.
std::vector<FileValue> read_options_file(const std::string& path);

/// The same from the text of a file that check_toml() finds good; `path` is for `where` and errors only.
std::vector<FileValue> parse_options(const std::string& path, const std::string& text);

/// `text` as TOML writes a string.
std::string toml_string(const std::string& text);

/// True when a TOML file gives this text back as it is; one that is not UTF-8 would make the file unreadable.
bool survives_toml(const std::string& text);

}  // namespace reel
