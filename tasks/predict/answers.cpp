#include "tasks/predict/answers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tasks/data/data_error.h"
#include "tasks/data/table_of_run.h"
#include "tasks/training/safetensors.h"

namespace reel {

namespace {

/// In a file of states: the latest values of the inputs, which --missing previous takes for missing ones.
constexpr const char* previous_name = "previous";

/// The spec of a model whose run has none: nothing is scaled, and the outputs are the answers.
TableSpec plain_spec(const ModelConfig& config) {
  TableSpec spec;
  const std::int64_t inputs = config.shape.vocabulary > 0 ? 1 : config.shape.inputs;
  for (std::int64_t i = 0; i < inputs; ++i) spec.inputs.push_back({fmt::format("x{}", i)});
  for (std::int64_t i = 0; i < config.shape.outputs; ++i) spec.targets.push_back({fmt::format("y{}", i)});
  spec.each = config.shape.every_step;
  return spec;
}

}  // namespace

void require_column(const std::string& path, const std::vector<std::string>& columns, const std::string& name,
                    const char* role) {
  if (std::find(columns.begin(), columns.end(), name) == columns.end())
    throw FileError(
        fmt::format("{}: there is no column \"{}\", {}; it has {}", path, name, role, listed_names(columns)));
}

Answers::Answers(const std::string& run, bool carry) : predictor_(run) {
  const std::optional<TableSpec> table = table_of_run(run, predictor_.config().task);
  own_spec_ = !table;
  spec_ = table ? *table : plain_spec(predictor_.config());
  const ModelShape& shape = predictor_.config().shape;
  if (!own_spec_ && (spec_.outputs() != shape.outputs || std::ssize(spec_.inputs) != shape.inputs))
    throw FileError(run + "/table.json",
                    fmt::format("has {} inputs and {} outputs, the model has {} and {}", spec_.inputs.size(),
                                spec_.outputs(), shape.inputs, shape.outputs));
  if (!spec_.each && !carry) window_ = static_cast<std::size_t>(spec_.window);
  start_ = predictor_.states();
}

void Answers::require_keys(const std::string& path, const std::vector<std::string>& columns) const {
  if (!spec_.group.empty()) require_column(path, columns, spec_.group, "the group of a row");
  if (!spec_.time.empty()) require_column(path, columns, spec_.time, "the time of a row");
}

std::vector<std::string> Answers::inputs(const std::string& path, const std::vector<std::string>& columns) {
  if (!own_spec_) {
    const std::vector<std::string> inputs = spec_.input_names();
    find_columns(path, columns, inputs);
    return inputs;
  }
  if (columns.size() != spec_.inputs.size())
    throw FileError(path,
                    fmt::format("has {} columns ({}{}), the model reads {}", columns.size(),
                                fmt::join(columns.begin(), columns.begin() + std::min(20L, std::ssize(columns)), ", "),
                                columns.size() > 20 ? ", ..." : "", spec_.inputs.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) spec_.inputs[i].name = columns[i];  // as errors call them
  return columns;
}

std::vector<double> Answers::row_of(Sequence& sequence, std::span<const double> raw, const Where& where) const {
  std::vector<float> scaled(raw.size());
  sequence.features(raw, scaled, where);
  const std::int64_t symbols = predictor_.config().shape.vocabulary;
  if (symbols == 0) return {scaled.begin(), scaled.end()};
  if (!(raw[0] >= 0 && raw[0] < static_cast<double>(symbols) && raw[0] == std::floor(raw[0])))
    throw FileError(fmt::format("{}: a symbol from 0 to {} is expected, got {}", where(), symbols - 1, raw[0]));
  return {raw[0]};
}

std::span<const double> Answers::step(const std::vector<double>& row) {
  if (predictor_.config().shape.vocabulary == 0) return predictor_.next(row);
  return predictor_.next(static_cast<std::int64_t>(row[0]));
}

Answer Answers::next(Sequence& sequence, std::span<const double> raw, const Where& where) {
  std::vector<double> row = row_of(sequence, raw, where);
  if (window_ == 0) {
    predictor_.set_states(sequence.states);
    const Answer answer = spec_.answers(step(row));
    sequence.states = predictor_.states();
    if (spec_.missing == "previous") latest_ = sequence.features.previous();
    return answer;
  }
  sequence.window.push_back(std::move(row));
  if (sequence.window.size() > window_) sequence.window.pop_front();
  if (sequence.window.size() < window_) return {};
  if (!predictor_.row_by_row()) return spec_.answers(at_once(sequence.window).back());
  predictor_.reset();
  std::span<const double> outputs;
  for (const std::vector<double>& earlier : sequence.window) outputs = step(earlier);
  return spec_.answers(outputs);
}

Answer Answers::next(const std::string& sequence, std::span<const double> raw, const Where& where) {
  const auto found = sequences_.find(sequence);
  return next(found != sequences_.end() ? found->second : sequences_.emplace(sequence, begin()).first->second, raw,
              where);
}

std::vector<Answer> Answers::all(const std::vector<std::vector<double>>& raw,
                                 const std::function<Where(std::size_t)>& where) {
  std::vector<Answer> answers(raw.size());
  Sequence sequence = begin();
  if (window_ > 0 || predictor_.row_by_row()) {
    for (std::size_t r = 0; r < raw.size(); ++r) answers[r] = next(sequence, raw[r], where(r));
    return answers;
  }
  std::deque<std::vector<double>> rows;
  for (std::size_t r = 0; r < raw.size(); ++r) rows.push_back(row_of(sequence, raw[r], where(r)));
  const auto outputs = at_once(rows);
  for (std::size_t r = 0; r < outputs.size(); ++r) answers[raw.size() - outputs.size() + r] = spec_.answers(outputs[r]);
  return answers;
}

std::vector<std::vector<double>> Answers::at_once(const std::deque<std::vector<double>>& rows) const {
  if (rows.empty()) return {};
  const auto T = std::ssize(rows), width = std::ssize(rows[0]);
  const ModelConfig& config = predictor_.config();
  std::vector<double> values;
  for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
  const Tensor numbers = Tensor::from<double>(values, {T, 1, width});
  const Tensor x = config.shape.vocabulary > 0 ? cast(numbers.view({T, 1}), DType::i32) : numbers;
  const auto y = cast(predictor_(x), DType::f64).values<double>();
  std::vector<std::vector<double>> outputs;
  for (auto first = y.begin(); first != y.end(); first += config.shape.outputs)
    outputs.emplace_back(first, first + config.shape.outputs);
  return outputs;
}

void Answers::save_states(const std::string& path) const {
  TensorFile more;
  if (!latest_.empty()) more.tensors.emplace_back(previous_name, Tensor::from<double>(latest_, {std::ssize(latest_)}));
  predictor_.save_states(path, more);
}

void Answers::load_states(const std::string& path) {
  const TensorFile more = predictor_.load_states(path, {previous_name});
  start_ = predictor_.states();
  if (spec_.missing != "previous" || more.tensors.empty()) return;
  const Tensor& values = more.at(previous_name);
  const Spec expected{DType::f64, {std::ssize(spec_.inputs)}, &backend()};
  if (!(values.spec() == expected))
    throw FileError(path,
                    fmt::format("{} of this model is {}; got {}", previous_name, expected.str(), values.spec().str()));
  latest_ = start_previous_ = values.values<double>();
}

Answers::Sequence Answers::begin() const {
  Sequence sequence{Features(spec_), start_, {}};
  if (!start_previous_.empty()) sequence.features.follow(start_previous_);
  return sequence;
}

}  // namespace reel
