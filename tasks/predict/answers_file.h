// Answers as a table: CSV on stdout or in a file, or an array.
#pragma once
#include "tasks/predict/answers.h"

namespace reel {

/// A field as text; empty for a missing value.
std::string field_of(const Column& column, std::int64_t row);

class AnswersFile {
 public:
  /// `path` ends with .csv, .npy or .safetensors; empty: CSV on stdout. Throws Usage for another name.
  AnswersFile(const TableSpec& spec, std::string path);
  /// The header of a CSV file: `names` of the columns that say which row an answer is for, then those of the answers.
  void header(std::vector<std::string> names);
  /// One more row; an empty answer leaves its fields empty.
  void add(std::int64_t row, const std::vector<std::string>& keys, const Answer& answer);
  /// Writes the file, as a whole: [rows, outputs] as .npy, or as "y" with the rows as "row" in .safetensors.
  void close();

 private:
  void write_row(const std::vector<std::string>& fields, bool in_header = false);

  const TableSpec& spec_;
  std::string path_, kind_, text_;
  std::vector<double> values_;
  std::vector<std::int32_t> rows_;
};

}  // namespace reel
