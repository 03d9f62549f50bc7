// Reading the files of data sets, and the errors they cause.
#pragma once
#include <filesystem>

#include "engine/core/error.h"
#include "tasks/io/files.h"

namespace reel {

/// A file with data in it that is not as it should be. No option is at fault, so programs exit with 1.
struct FileError : Error {
  using Error::Error;
};

/// What helps with a file of a data set.
constexpr const char* data_help = "See docs/data.md for where to get it, or give --data DIR.";

/// A missing or damaged file of a data set: "[mnist] train-labels-idx1-ubyte.gz: not found in data/mnist. See
/// docs/data.md for where to get it, or give --data DIR." `help` is for files that no data set has.
struct DataError : FileError {
  DataError(const std::string& set, const std::string& file, const std::string& what,
            const std::string& help = data_help)
      : FileError(set, fmt::format("{}: {}. {}", file, what, help)),
        problem(fmt::format("[{}] {}: {}", set, file, what)) {}
  std::string problem;  // without the help
};

/// The path of a file in the folder of a data set, DATA/SET/name; throws DataError when it is not there.
inline std::string data_file(const std::string& data, const std::string& set, const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(data) / set;
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder / name, error))
    throw DataError(set, name, "not found in " + folder.string());
  return folder / name;
}

/// Reads a file of a data set; throws DataError if it cannot be read or has more than `limit` bytes.
inline std::string read_data(const std::string& set, const std::string& name, const std::string& path,
                             std::uint64_t limit, const std::string& help = data_help) try {
  return read_file(path, limit);
} catch (const Error& e) {
  throw DataError(set, name, e.what(), help);
}

}  // namespace reel
