// How far answers are from the targets that a table has.
#pragma once
#include <map>

#include "tasks/predict/answers.h"

namespace reel {

/// Classes: the share of right ones, and the mean cross entropy in nats, which is of the classes that the model knows;
/// others count as wrong. Values: the root of the mean square error and the mean absolute error of each target, in its
/// units, over the answers whose target is there.
class Scores {
 public:
  /// The table and the spec must outlive this.
  Scores(const TableSpec& spec, const Table& table);
  /// Throws FileError for the first target that the table does not have, or that holds text instead of values.
  void require_targets(const std::string& path) const;
  /// An answer, and the row of the table with its target; one whose target is missing is left out.
  void add(const Answer& answer, std::int64_t row);
  /// "accuracy 0.95, cross entropy 0.21 over 120 answers"; empty if nothing was compared. Targets that are not compared
  /// equally often each have a number of their own.
  std::string text() const;
  /// "2 rows of the class "c", 1 of "d": ..."; empty if the model knows all classes of the answers.
  std::string unknown() const;

 private:
  const TableSpec& spec_;
  const Table& table_;
  std::vector<const Column*> columns_;  // of the targets; none if the table lacks one
  std::vector<double> squares_, sizes_;
  std::vector<std::int64_t> counts_;  // of the values of each target; of classes, there is one
  double log_likelihood_ = 0;
  std::int64_t right_ = 0, unknown_ = 0;
  std::map<std::string, std::int64_t> classes_;  // that the model does not know, with their rows
};

}  // namespace reel
