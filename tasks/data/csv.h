// CSV, row by row, from a file or a stream. libcsv splits the fields; this adds line numbers and limits.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

/// Takes a row: the line on which it starts (from 1), and its fields without quotes and without spaces around them.
using CsvRow = std::function<void(std::int64_t line, const std::vector<std::string>& fields)>;

/// Splits CSV (RFC 4180) into rows. Fields may be quoted and hold line breaks; blank lines are skipped, but refused
/// before the last row of a single column, where they may be missing values; a byte order mark is skipped, too. The
/// first line that is not blank says what separates the fields: tabs, if it has one outside of quotes that pads no
/// comma; or the more frequent of semicolons and commas. A line sep=; or sep=| before the header says so itself.
class CsvReader {
 public:
  /// `path` is used in errors only.
  CsvReader(std::string path, CsvRow row);
  ~CsvReader();
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  /// Takes the next bytes, and calls the function for each row that ends in them. Throws FileError with the line for a
  /// stray quote, an empty line that may be a row, or a row of more than 2^24 bytes.
  void feed(std::string_view bytes);
  /// The end of the file: a last row may lack its line break. Throws FileError if a quote is still open.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The hint for a file that seems to have others.
constexpr const char* known_separators =
    "commas, semicolons or tabs separate the fields, and others if a first line names them, such as sep=|";

/// A text as a field of CSV, in quotes where it needs them: in the header also around semicolons and tabs, from which a
/// reader would guess the separator.
std::string csv_field(const std::string& text, bool in_header = false);
/// The field as a finite number, also with a plus sign; nullopt if it is none.
std::optional<double> parse_number(std::string_view field);
/// True for what other programs write where a value is missing: "NA", "null", "nan".
bool says_missing(std::string_view field);
/// True for a number that is not written as one here: "0,143", "1,000", "1.000,5" or "5%".
bool nearly_number(std::string_view field);
/// What is wrong with a field: "data.csv:17: column "temp": a number is expected, got "n/a"".
std::string error_of_number(const std::string& path, std::int64_t line, const std::string& column,
                            std::string_view field);
/// A field of a column as a finite number, NaN if it is empty. Throws FileError otherwise.
double csv_number(const std::string& path, std::int64_t line, const std::string& column, std::string_view field);

}  // namespace reel
