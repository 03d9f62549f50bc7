#include "tasks/data/table_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tasks/data/data_error.h"
#include "tasks/data/table_roles.h"

namespace reel {

namespace {

constexpr std::size_t most_classes = 10000;
constexpr const char* part_names[] = {"training", "validation", "test"};

struct Moments {
  double mean = 0, deviation = 0;
};

/// Mean and deviation of the values that are there.
Moments moments(const std::vector<double>& values) {
  double sum = 0, squares = 0, n = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values)
    if (!std::isnan(v)) sum += v, ++n, low = std::min(low, v), high = std::max(high, v);
  if (n == 0) return {};
  if (low == high) return {low, 0};  // the sum of many 0.1 is not exact
  const double mean = sum / n;
  for (const double v : values)
    if (!std::isnan(v)) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / n)};
}

/// Sets how a column of these values is standardised: a constant becomes 0.
void scale(const std::string& path, const std::vector<double>& values, ScaledColumn& column) {
  constexpr double most = std::numeric_limits<float>::max(), rounding = 1e-12;  // the latter of the mean
  const auto [mean, deviation] = moments(values);
  column.mean = mean;
  if (deviation > rounding * std::abs(mean)) column.deviation = deviation;
  if (std::abs(mean) <= most && deviation <= most) return;
  throw FileError(
      fmt::format("{}: column \"{}\": mean and deviation must be finite in single precision, got {:.6g} and "
                  "{:.6g}. Hint: a larger unit, unless a value is damaged",
                  path, column.name, mean, deviation));
}

/// The split that "auto" stands for: by sequences if there are several, or else by time.
std::string split_kind(const Table& table, const TableOptions& o) {
  if (o.split != "auto") return o.split;
  return o.group.empty() && table.sequences.empty() ? "time" : "group";
}

Split split(const Table& table, const Sequences& sequences, const TableOptions& o, bool each, std::uint64_t seed) {
  const std::int64_t stride = o.stride > 0 ? o.stride : each && o.window > 0 ? o.window : 1;
  // With one answer for a window, `predict` answers to full ones only: others would tell nothing about it.
  const WindowOptions window{o.window, stride, o.horizon, each && stride >= o.window, !each};
  const SplitOptions shares{o.valid, o.test, seed};
  const auto cut = [&](const std::vector<Rows>& parts) {
    std::vector<Rows> windows;
    for (const Rows& part : parts)
      for (const Rows& w : windows_of(part, window)) windows.push_back(w);
    return windows;
  };
  const std::string kind = split_kind(table, o);
  if (kind == "row") {
    if (o.window > 0 && stride < o.window)
      throw SettingError("split", fmt::format("row: windows that overlap would share rows between training and test. "
                                              "Hint: --split time, or --stride {}",
                                              o.window));
    return split_at_random(cut(sequences.parts), shares);
  }
  if (kind == "group" && sequences.parts.size() == 1)
    throw SettingError("split", "group: there is one sequence only. Hint: --group COLUMN, or --split time");
  const Split rows =
      kind == "group" ? split_at_random(sequences.parts, shares) : split_by_time(sequences.parts, shares);
  return {cut(rows[0]), cut(rows[1]), cut(rows[2])};
}

/// Throws SettingError if no sequence fills a window: a model of windows answers to full ones only.
void check_window(const Table& table, const Sequences& sequences, const TableOptions& o) {
  std::int64_t longest = 0;
  for (const Rows& part : sequences.parts) longest = std::max(longest, part.count - o.horizon);
  if (longest >= o.window || longest < 1) return;
  throw SettingError("window", fmt::format("the longest sequence of {} has {} row{}{}, got {}. Hint: --window 0 reads "
                                           "whole sequences",
                                           table.path, longest, longest == 1 ? "" : "s",
                                           o.horizon > 0 ? " with a target" : "", o.window));
}

/// The hint for a part without an example.
const char* more_examples(const Table& table, const Sequences& sequences, const TableOptions& o) {
  const std::int64_t parts = o.test > 0 ? 3 : 2;
  if (split_kind(table, o) == "row" && o.window == 0) return "--window N, as rows are split by windows";
  if (split_kind(table, o) == "group" && std::ssize(sequences.parts) < parts) return "more sequences, or --split time";
  if (o.horizon > 0) return o.window > 0 ? "a smaller --window or --horizon, or more data" : "a smaller --horizon";
  return o.window > 0 ? "a smaller --window, or more data" : "more data";
}

/// Throws FileError if a part has no example.
void require_examples(const Table& table, const Sequences& sequences, const TableData& data, const TableOptions& o) {
  for (std::size_t p = 0; p < 3; ++p) {
    if (!data.parts[p].empty() || (p == 2 && o.test == 0)) continue;
    if (std::all_of(data.y.begin(), data.y.end(), [](double y) { return std::isnan(y); }))
      throw FileError(fmt::format("{}: column \"{}\": the target is missing in all rows", table.path,
                                  fmt::join(data.spec.target_names(), "\", \"")));
    throw FileError(fmt::format("{}: the {} part has no example, of {} sequence{} with {} rows in all. Hint: {}",
                                table.path, part_names[p], sequences.parts.size(),
                                sequences.parts.size() == 1 ? "" : "s", table.rows,
                                more_examples(table, sequences, o)));
  }
}

/// The names of the classes in their order, and the class of each row in `y`. Rows of no sequence are padding: what
/// stands there is no class.
std::vector<std::string> number_classes(const Table& table, const Column& column, const Sequences& sequences,
                                        std::vector<double>& y) {
  std::map<std::string, std::vector<std::size_t>> by_text;  // a class and its rows
  std::map<double, std::vector<std::size_t>> by_number;
  const auto count = [&](std::size_t r) {
    const auto row = static_cast<std::size_t>(sequences.order[r]);
    if (column.is_text()) {
      if (column.texts[row] >= 0) by_text[column.words[static_cast<std::size_t>(column.texts[row])]].push_back(r);
    } else if (!std::isnan(column.numbers[row])) {
      check_exact(table, sequences.order[r], column, "class");
      by_number[column.numbers[row]].push_back(r);
    }
    if (std::max(by_text.size(), by_number.size()) > most_classes)
      throw SettingError("predict", fmt::format("class: \"{}\" has more than {} classes. Hint: --predict value",
                                                column.name, most_classes));
  };
  for (const Rows& part : sequences.parts)
    for (std::int64_t r = part.first; r < part.first + part.count; ++r) count(static_cast<std::size_t>(r));
  std::vector<std::string> names;
  const auto take = [&](const std::string& name, const std::vector<std::size_t>& rows) {
    for (const std::size_t r : rows) y[r] = static_cast<double>(names.size());
    names.push_back(name);
  };
  std::size_t there = 0;
  for (const auto& [number, rows] : by_number) there += rows.size();
  for (const auto& [text, rows] : by_text) there += rows.size();
  const std::size_t classes = by_number.size() + by_text.size();  // one of them is empty
  if (classes > 20 && classes > there / 2)
    throw SettingError("predict",
                       fmt::format("class: \"{}\" has {} classes in {} rows. Hint: {}", column.name, classes, there,
                                   column.is_text() ? "--target names another column" : "--predict value"));
  for (const auto& [text, rows] : by_text) take(text, rows);
  for (const auto& [number, rows] : by_number) take(fmt::format("{}", number), rows);
  return names;
}

/// The targets [rows, targets] of a table, in the order of its sequences; classes as their numbers.
void read_targets(const Table& table, const Sequences& sequences, bool classes, TableData& data) {
  const std::size_t K = data.spec.targets.size();
  data.y.assign(sequences.order.size() * K, missing_value);
  if (classes) {
    const Column& column = table.at(data.spec.targets[0].name);
    data.spec.classes = number_classes(table, column, sequences, data.y);
    if (data.spec.classes.size() < 2)
      throw FileError(fmt::format("{}: column \"{}\": two classes or more are expected, got {}", table.path,
                                  column.name,
                                  data.spec.classes.empty() ? "none" : "\"" + data.spec.classes[0] + "\" alone"));
    return;
  }
  const auto columns = table.numbers(data.spec.target_names());
  for (std::size_t k = 0; k < K; ++k)
    for (std::size_t r = 0; r < sequences.order.size(); ++r)
      data.y[r * K + k] = (*columns[k])[static_cast<std::size_t>(sequences.order[r])];
}

/// Throws if a target in the rows of a window is missing, though --missing error says that none is.
void check_targets(const Table& table, const Sequences& sequences, const TableData& data, const Rows& window) {
  const std::size_t K = data.spec.targets.size();
  for (std::int64_t t = data.spec.each ? 0 : window.count - 1; t < window.count; ++t)
    for (std::size_t k = 0; k < K; ++k) {
      const auto r = static_cast<std::size_t>(window.first + t + data.spec.horizon);
      if (std::isnan(data.y[r * K + k]))
        throw FileError(
            fmt::format("{}: column \"{}\": the target is missing. Hint: --missing previous or zero leaves out "
                        "what has none",
                        table.where(sequences.order[r]), data.spec.targets[k].name));
    }
}

/// Drops windows without a target, and finds out whether those that are left are alike.
void settle_windows(const Table& table, const Sequences& sequences, TableData& data) {
  const std::size_t K = data.spec.targets.size();
  std::int64_t length = -1;
  for (std::vector<Rows>& part : data.parts)
    std::erase_if(part, [&](const Rows& window) {
      if (data.spec.missing == "error") check_targets(table, sequences, data, window);
      std::int64_t there = 0, wanted = 0;
      for (std::int64_t t = data.spec.each ? 0 : window.count - 1; t < window.count; ++t)
        for (std::size_t k = 0; k < K; ++k, ++wanted)
          there += !std::isnan(data.y[static_cast<std::size_t>(window.first + t + data.spec.horizon) * K + k]);
      if (there == 0) return true;
      data.gaps = data.gaps || there < wanted;
      data.ragged = data.ragged || (length >= 0 && window.count != length);
      length = window.count;
      return false;
    });
}

/// The rows that training reads as inputs, or those of its targets.
std::vector<bool> training_rows(const TableData& data, std::size_t rows, bool targets) {
  std::vector<bool> read(rows, false);
  for (const Rows& window : data.parts[0])
    for (std::int64_t t = targets && !data.spec.each ? window.count - 1 : 0; t < window.count; ++t)
      read[static_cast<std::size_t>(window.first + t + (targets ? data.spec.horizon : 0))] = true;
  return read;
}

/// The loss of the best answer that does not depend on the inputs, over the targets of the training part.
double baseline_of(const TableData& data, std::size_t rows) {
  const std::size_t K = data.spec.targets.size();
  const std::vector<bool> read = training_rows(data, rows, true);
  double all = 0;
  std::vector<double> values, counts(data.spec.classes.size(), 0);
  for (std::size_t k = 0; k < K; ++k) {
    values.clear();
    for (std::size_t r = 0; r < rows; ++r)
      if (read[r] && !std::isnan(data.y[r * K + k])) values.push_back(data.y[r * K + k]);
    const double deviation = moments(values).deviation;
    all += deviation * deviation / static_cast<double>(K);
  }
  if (!data.spec.classifies()) return all;
  double entropy = 0;
  for (const double value : values) ++counts[static_cast<std::size_t>(value)];
  for (const double n : counts)
    if (n > 0) entropy -= n / static_cast<double>(values.size()) * std::log(n / static_cast<double>(values.size()));
  return entropy;
}

}  // namespace

std::int64_t TableData::longest() const {
  std::int64_t most = 0;
  for (const std::vector<Rows>& part : parts)
    for (const Rows& window : part) most = std::max(most, window.count);
  return most;
}

std::string TableData::split_csv() const {
  std::string out = by_line ? "line,part\n" : "row,part\n";
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::int64_t next = 0;  // windows may overlap
    for (const Rows& w : parts[p])
      for (std::int64_t r = std::max(next, w.first + (spec.each ? 0 : w.count - 1)); r < w.first + w.count; next = ++r)
        out += fmt::format("{},{}\n", numbers[static_cast<std::size_t>(r)], part_names[p]);
  }
  return out;
}

TableData table_data(const Table& table, const TableOptions& o, std::uint64_t seed) {
  TableData data{.spec = table_roles(table, o)};
  TableSpec& spec = data.spec;
  const bool classes = predicts_class(table, spec, o);
  if (o.valid + o.test >= 1)
    throw SettingError("test-part",
                       fmt::format("below 1 with --valid-part is expected, as the rest is trained on; got {} and {}",
                                   o.test, o.valid));
  for (const Column& column : table.columns)
    if (o.inputs.empty() && column.is_text() && column.name != o.group && column.name != o.time &&
        column.name != spec.targets[0].name)
      data.left_out.push_back(column.name);
  const Sequences sequences = sequences_of(table, o.group, o.time);
  data.unordered = !sequences.checked;
  data.by_line = !table.lines.empty();
  data.numbers.reserve(sequences.order.size());
  for (const std::int64_t row : sequences.order)
    data.numbers.push_back(static_cast<std::int32_t>(data.by_line ? table.lines[static_cast<std::size_t>(row)] : row));
  if (sequences.parts.size() == 1 && o.window == 0 && !spec.each)
    throw SettingError("window", table.path +
                                     " is one sequence, with one answer at its end. Hint: --window N, --group "
                                     "COLUMN, or --at each");
  if (!spec.each) check_window(table, sequences, o);
  data.parts = split(table, sequences, o, spec.each, seed);
  for (const Rows& part : sequences.parts) data.too_short += !spec.each && part.count - o.horizon < o.window ? 1 : 0;
  read_targets(table, sequences, classes, data);
  settle_windows(table, sequences, data);
  require_examples(table, sequences, data, o);
  const std::size_t rows = sequences.order.size(), K = spec.targets.size();
  if (o.standardize) {
    const std::vector<bool> read = training_rows(data, rows, false), aimed = training_rows(data, rows, true);
    std::vector<double> values;
    const auto columns = table.numbers(spec.input_names());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      values.clear();
      for (std::size_t r = 0; r < rows; ++r)
        if (read[r]) values.push_back((*columns[i])[static_cast<std::size_t>(sequences.order[r])]);
      scale(table.path, values, spec.inputs[i]);
    }
    for (std::size_t k = 0; k < K && !classes; ++k) {
      values.clear();
      for (std::size_t r = 0; r < rows; ++r)
        if (aimed[r]) values.push_back(data.y[r * K + k]);
      scale(table.path, values, spec.targets[k]);
      for (std::size_t r = 0; r < rows; ++r)
        data.y[r * K + k] = (data.y[r * K + k] - spec.targets[k].mean) / spec.targets[k].deviation;
    }
  }
  data.x = features(spec, table, sequences.order, sequences.parts);
  data.baseline = baseline_of(data, rows);
  return data;
}

}  // namespace reel
