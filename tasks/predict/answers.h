// The answers of a run's model to the rows of tables.
#pragma once
#include <deque>
#include <map>
#include <optional>

#include "tasks/data/table_spec.h"
#include "tasks/training/predictor.h"

namespace reel {

/// What the model says after a row: probabilities of classes, or values in the targets' units (TableSpec::answers).
/// Empty while a window is not full.
using Answer = std::vector<double>;

/// Throws FileError that lists these columns of a file unless the one of that name is there; `role` says what it is.
void require_column(const std::string& path, const std::vector<std::string>& columns, const std::string& name,
                    const char* role);

class Answers {
 public:
  /// The model of a run folder. Without a table.json, as other tasks leave it, the inputs are the columns of the table
  /// in their order, and the answers are the model's outputs. A model that was trained on windows, with one answer for
  /// each, reads the window that ends at a row afresh; with `carry` it keeps its states from row to row instead.
  Answers(const std::string& run, bool carry);

  const TableSpec& spec() const { return spec_; }
  const Predictor& predictor() const { return predictor_; }
  /// Does the model read a window afresh for each row?
  bool windows() const { return window_ > 0; }
  /// Throws FileError with the path unless these columns of a table have the group and the time.
  void require_keys(const std::string& path, const std::vector<std::string>& columns) const;
  /// Names of the inputs in a table with these columns. Throws FileError with the path if they are not there.
  std::vector<std::string> inputs(const std::string& path, const std::vector<std::string>& columns);

  /// The answer after one more row of a sequence, whose rows may come between those of others; raw: the values of the
  /// inputs, NaN for missing ones. Throws Error if the model reads whole sequences only.
  Answer next(const std::string& sequence, std::span<const double> raw, const Where& where);
  /// The answers after each row of a whole sequence, from fresh states: what next() gives, to the last bit. Those
  /// before the last row are empty if the model answers at the end alone and reads whole sequences only.
  std::vector<Answer> all(const std::vector<std::vector<double>>& raw, const std::function<Where(std::size_t)>& where);

  /// The states after the last row that was answered, as Predictor has them, and the values that --missing previous
  /// takes for missing ones.
  void save_states(const std::string& path) const;
  /// Every sequence starts from the states in the file. One of an older version has no such values.
  void load_states(const std::string& path);

 private:
  /// A sequence that is being read.
  struct Sequence {
    Features features;
    Tensors states;
    std::deque<std::vector<double>> window;
  };
  Sequence begin() const;
  Answer next(Sequence& sequence, std::span<const double> raw, const Where& where);
  /// The outputs after a row of features.
  std::span<const double> step(const std::vector<double>& row);
  /// The outputs at each step, or at the last one, of rows that are read at once.
  std::vector<std::vector<double>> at_once(const std::deque<std::vector<double>>& rows) const;
  std::vector<double> row_of(Sequence& sequence, std::span<const double> raw, const Where& where) const;

  Predictor predictor_;
  TableSpec spec_;
  bool own_spec_ = false;  // made of the model alone
  std::size_t window_ = 0;
  Tensors start_;
  std::vector<double> start_previous_, latest_;  // of Features::previous, where the model needs it
  std::map<std::string, Sequence> sequences_;
};

}  // namespace reel
