#include "tasks/data/arrays.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cells/nearest_name.h"
#include "tasks/data/data_error.h"

namespace reel {

namespace {

std::string text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// Column `at` of `width` in rows that lie one after the other.
Column column_of(const Table& table, const Array& array, const std::string& name, std::int64_t at, std::int64_t width) {
  Column column{.name = name};
  column.whole = array.whole;
  column.numbers.resize(static_cast<std::size_t>(table.rows));
  for (std::int64_t r = 0; r < table.rows; ++r)
    column.numbers[static_cast<std::size_t>(r)] = array.values[static_cast<std::size_t>(r * width + at)];
  return column;
}

/// Throws FileError for an infinite number, but in the padding behind a sequence, which nobody reads.
void check_finite(const Table& table) {
  const std::vector<Rows> all = table.sequences.empty() ? std::vector<Rows>{{0, table.rows}} : table.sequences;
  for (const Column& column : table.columns)
    for (const Rows& part : all)
      for (std::int64_t r = part.first; r < part.first + part.count; ++r)
        if (const double value = column.numbers[static_cast<std::size_t>(r)]; std::isinf(value))
          throw FileError(fmt::format("{}: column \"{}\": a finite number is expected, got {}", table.where(r),
                                      column.name, value));
}

/// What table_of_array returns; its numbers may be infinite.
Table unchecked(const std::string& path, const Array& x) {
  const std::size_t axes = x.shape.size();
  if (axes < 1 || axes > 3)
    throw FileError(fmt::format("{}: [rows], [rows, columns] or [sequences, steps, columns] is expected, got {}", path,
                                text(x.shape)));
  if (x.values.empty()) throw FileError(fmt::format("{}: the array {} is empty", path, text(x.shape)));
  Table table{.path = path};
  const std::int64_t width = axes == 1 ? 1 : x.shape.back();
  table.rows = std::ssize(x.values) / width;
  if (axes == 3)
    for (std::int64_t n = 0; n < x.shape[0]; ++n) table.sequences.push_back({n * x.shape[1], x.shape[1]});
  for (std::int64_t c = 0; c < width; ++c)
    table.columns.push_back(column_of(table, x, fmt::format("c{}", c), c, width));
  return table;
}

/// What table_of_arrays returns; its numbers may be infinite.
Table unchecked(const std::string& path, const std::map<std::string, Array>& arrays) {
  const auto refuse = [&](const std::string& what) { throw FileError(path + ": " + what); };
  if (arrays.size() == 1) return unchecked(path, arrays.begin()->second);
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  const auto find = [&](const char* name) { return arrays.contains(name) ? &arrays.at(name) : nullptr; };
  const Array *x = find("x"), *y = find("y"), *lengths = find("lengths");
  if (!x)
    refuse(
        fmt::format("an array x is expected, and y and lengths if there are any; it has {}", fmt::join(names, ", ")));
  const std::vector<std::string> known{"x", "y", "lengths"};
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    refuse(fmt::format("the arrays x, y and lengths are expected, got \"{}\"{}", name,
                       nearest.empty() ? "" : fmt::format(". Hint: {}", nearest)));
  }
  if (x->shape.size() != 3) refuse(fmt::format("x: [sequences, steps, columns] is expected, got {}", text(x->shape)));
  Table table = unchecked(path, *x);
  const std::int64_t N = x->shape[0], T = x->shape[1];
  if (lengths) {
    if (lengths->shape != std::vector{N} || !lengths->whole)
      refuse(fmt::format("lengths: integers [{}] are expected, got {}{}", N, text(lengths->shape),
                         lengths->whole ? "" : " in floating point"));
    for (std::int64_t n = 0; n < N; ++n) {
      const double length = lengths->values[static_cast<std::size_t>(n)];
      if (length < 1 || length > static_cast<double>(T))
        refuse(fmt::format("lengths: 1 to {} steps are expected, sequence {} has {}", T, n, length));
      table.sequences[static_cast<std::size_t>(n)].count = static_cast<std::int64_t>(length);
    }
  }
  if (!y) return table;
  const std::size_t axes = y->shape.size();
  table.target_each = axes >= 2;
  if (axes < 1 || axes > 3 || y->shape[0] != N || (axes >= 2 && y->shape[1] != T) || y->values.empty())
    refuse(fmt::format("y: [{}], [{}, {}] or [{}, {}, targets] is expected beside x, got {}", N, N, T, N, T,
                       text(y->shape)));
  if (axes == 1) {
    Array rows{
        .shape = {N, T}, .values = std::vector(static_cast<std::size_t>(N * T), missing_value), .whole = y->whole};
    for (std::size_t n = 0; n < static_cast<std::size_t>(N); ++n) {
      const Rows& sequence = table.sequences[n];
      rows.values[static_cast<std::size_t>(sequence.first + sequence.count - 1)] = y->values[n];
    }
    table.columns.push_back(column_of(table, rows, "y", 0, 1));
    table.targets = {"y"};
    return table;
  }
  const std::int64_t K = axes == 3 ? y->shape[2] : 1;
  for (std::int64_t k = 0; k < K; ++k) {
    table.targets.push_back(axes == 2 ? "y" : fmt::format("y{}", k));
    table.columns.push_back(column_of(table, *y, table.targets.back(), k, K));
  }
  return table;
}

}  // namespace

Table table_of_array(const std::string& path, const Array& x) {
  Table table = unchecked(path, x);
  check_finite(table);
  return table;
}

Table table_of_arrays(const std::string& path, const std::map<std::string, Array>& arrays) {
  Table table = unchecked(path, arrays);
  check_finite(table);
  return table;
}

}  // namespace reel
