// What a model of the task `table` needs besides its parameters: which columns it reads, how they are standardised, and
// what its outputs mean. A run folder keeps it as table.json.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/data/table.h"

namespace reel {

/// A column and how it is standardised: the model sees (value - mean) / deviation.
struct ScaledColumn {
  std::string name;
  double mean = 0, deviation = 1;
  bool operator==(const ScaledColumn&) const = default;
};

struct TableSpec {
  std::vector<ScaledColumn> inputs = {}, targets = {};
  std::vector<std::string> classes = {};  // of the only target; none: the targets are values
  bool each = false;                      // it answers at each step, or at the last one of a sequence
  std::string group = {}, time = {};      // columns; empty: none
  std::int64_t window = 0;                // rows it was trained on at once; 0: whole sequences
  std::int64_t horizon = 0;               // rows from an answer's last input to what it is about
  std::string missing = "error";          // what a missing input becomes: error, previous or zero
  std::int64_t data_bytes = 0;            // of the file that it was trained on, and its CRC-32
  std::string data_crc32 = {};
  bool operator==(const TableSpec&) const = default;

  bool classifies() const { return !classes.empty(); }
  /// The width of the model's outputs: one for each class, or for each target.
  std::int64_t outputs() const { return classifies() ? std::ssize(classes) : std::ssize(targets); }
  std::vector<std::string> input_names() const;
  std::vector<std::string> target_names() const;

  /// What the outputs [outputs()] of a model say: the values of the targets in their own units, or the probabilities of
  /// the classes.
  std::vector<double> answers(std::span<const double> outputs) const;
  /// The most probable class for these answers.
  const std::string& likeliest(std::span<const double> answers) const;

  std::string json() const;
  /// Reads such JSON; throws FileError for anything that is not as json() writes it.
  static TableSpec parse(const std::string& path, std::string_view json);
  static TableSpec load(const std::string& path);
  /// Replaces the file atomically.
  void save(const std::string& path) const;
};

/// Where a row is, for errors: "data.csv:17".
using Where = std::function<std::string()>;

/// Makes a model's inputs from rows in the order of a sequence.
class Features {
 public:
  explicit Features(const TableSpec& spec);
  /// The next row starts a sequence: there is no previous one.
  void reset();
  /// Standardises the raw values of the input columns (NaN: missing) into as many features. Throws FileError for a
  /// missing value that the spec does not allow: "data.csv:17: column "temp": the value is missing. Hint: ...".
  void operator()(std::span<const double> raw, std::span<float> features, const Where& where);
  /// The latest value of each input, NaN before the first; the next row may follow such values of an earlier call.
  const std::vector<double>& previous() const { return previous_; }
  void follow(const std::vector<double>& previous) { previous_ = previous; }

 private:
  const TableSpec* spec_;
  std::vector<double> previous_;
};

/// Features [rows, inputs] of these sequences of a table's rows, one sequence after the other: `order` has the row of
/// the table for each row of the sequences. Throws FileError for a column that is not there or holds text.
std::vector<float> features(const TableSpec& spec, const Table& table, std::span<const std::int64_t> order,
                            std::span<const Rows> sequences);

}  // namespace reel
