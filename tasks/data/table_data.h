// A table as examples to train on: which columns are read, windows, parts, classes and standardised values.
#pragma once
#include "tasks/data/sequences.h"
#include "tasks/data/table_spec.h"

namespace reel {

/// The options of the task `table`; lists are separated by commas.
struct TableOptions {
  std::string inputs = {}, target = {}, group = {}, time = {};
  std::string predict = "auto", at = "auto", split = "auto", missing = "error";
  std::int64_t window = 0, stride = 0, horizon = 0;
  bool standardize = true;
  double valid = 0.15, test = 0.15;
};

struct TableData {
  TableSpec spec;
  std::vector<float> x = {};               // [rows, inputs], standardised
  std::vector<double> y = {};              // [rows, targets], standardised, or the number of the class; NaN: none
  std::vector<std::int32_t> numbers = {};  // of each row: its line of CSV, or its place in arrays
  bool by_line = false;                    // the former
  std::vector<std::string> left_out = {};  // columns of text that are no inputs, though all numbers are
  Split parts = {};                        // windows; the target of their row r is in row r + horizon
  std::int64_t too_short = 0;              // sequences that fill no window, or have no row with a target
  double baseline = 0;     // the loss of always answering the mean of the training part, or its frequencies of classes
  bool ragged = false;     // windows differ in length
  bool unordered = false;  // whether the times fall is not known
  bool gaps = false;       // a window with a target has steps, or targets, without one

  /// The steps of the longest window.
  std::int64_t longest() const;
  /// The rows with an answer and their parts as CSV, "line,part", or "row,part" for arrays.
  std::string split_csv() const;
};

/// Throws SettingError with the name of the option for one that does not go with the table, FileError for what is wrong
/// in the table, and for a part that would have no example.
TableData table_data(const Table& table, const TableOptions& options, std::uint64_t seed);

}  // namespace reel
