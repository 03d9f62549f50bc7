// Tables: named columns of numbers or text. They come from CSV, or from arrays.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_values = std::size_t{1} << 28;  // of a file; each takes eight bytes or more

struct Column {
  std::string name;
  std::vector<double> numbers = {};      // of a column of numbers: NaN is a missing value
  std::vector<std::int32_t> texts = {};  // of text, or kept as written: indices of `words`, -1 is a missing value
  std::vector<std::string> words = {};   // its different texts, in the order in which they come
  std::string problem = {};              // the first field that is no number, as an error says it; empty: there is none
  bool some_numbers = false;             // of a column of text: other fields are numbers, or that one is nearly one
  bool whole = false;                    // an array of integers

  bool is_text() const { return !problem.empty(); }
};

/// `count` consecutive rows.
struct Rows {
  std::int64_t first = 0, count = 0;
  bool operator==(const Rows&) const = default;
};

struct Table {
  std::string path;
  std::int64_t rows = 0;
  std::vector<Column> columns = {};
  std::vector<std::int64_t> lines = {};   // of CSV: on which each row starts
  std::vector<Rows> sequences = {};       // of arrays [N, T, F]: the rows of each
  std::vector<std::string> targets = {};  // of arrays: the columns of y
  bool target_each = false;               // y has an entry for each step
  std::int64_t bytes = 0;                 // of the file, and their CRC-32 in eight digits
  std::string crc32 = {};

  std::vector<std::string> names() const;
  /// The column of that name; throws FileError with the nearest name if there is none.
  const Column& at(const std::string& name) const;
  /// The numbers of that column [rows]; throws FileError with the first field that is none.
  const std::vector<double>& numbers(const std::string& name) const;
  /// The numbers of each of these columns: looks all up at once, as there may be many.
  std::vector<const std::vector<double>*> numbers(const std::vector<std::string>& wanted) const;
  /// Where a row is: "data.csv:17", or "x.npy: row 3" (rows count from 0), or "x.npz: sequence 2, step 0".
  std::string where(std::int64_t row) const;
};

/// Throws FileError if the number of a row, a group or class, is a whole one from 2^53 on: others have the same double.
void check_exact(const Table& table, std::int64_t row, const Column& column, const char* what);

/// The position of each of these names, in time n log n; throws FileError that lists the names, or the nearest one, for
/// the first that is not there.
std::vector<std::size_t> find_columns(const std::string& path, const std::vector<std::string>& names,
                                      const std::vector<std::string>& wanted);

/// "a, b, c", the first 20 of them, with quotes around a name that has a comma.
std::string listed_names(const std::vector<std::string>& names);

/// Takes down size and CRC-32 of the file.
void add_checksum(Table& table, std::string_view bytes);

/// Reads .csv, .tsv, .txt (CSV with a line of names), .npy, or .npz (arrays x, y and lengths, see arrays.h). Throws
/// FileError with line and column for any kind of damage; at most 2^30 bytes and 2^28 values. Columns of CSV named in
/// `as_written` also keep the texts of their numbers: an id such as 007 or one of 19 digits is not its nearest double.
Table read_table(const std::string& path, const std::vector<std::string>& as_written = {});

/// A CSV file from its bytes; `path` is used in errors only.
Table parse_csv_table(const std::string& path, std::string_view bytes, const std::vector<std::string>& as_written = {});

/// Throws FileError unless these are names for columns: UTF-8, none empty, none twice, and not all numbers.
void check_header(const std::string& path, std::int64_t line, const std::vector<std::string>& names);

}  // namespace reel
