#include "tasks/data/table.h"

#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "cells/nearest_name.h"
#include "tasks/data/arrays.h"
#include "tasks/data/csv.h"
#include "tasks/data/data_error.h"
#include "tasks/data/text.h"
#include "tasks/io/lower.h"

namespace reel {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

FileError error_at(const std::string& path, std::int64_t line, const std::string& what) {
  return FileError(fmt::format("{}:{}: {}", path, line, what));
}

/// Calls a function with the line and the fields of each row; the first row has the names.
void each_row(const std::string& path, std::string_view bytes, const CsvRow& header, const CsvRow& row) {
  std::size_t columns = 0;
  CsvReader reader(path, [&](std::int64_t line, const std::vector<std::string>& fields) {
    if (columns == 0) {
      columns = fields.size();
      return header(line, fields);
    }
    if (fields.size() != columns)
      throw error_at(
          path, line,
          fmt::format("{} field{} expected, as in the header, got {}{}", columns, columns == 1 ? " is" : "s are",
                      fields.size(),
                      columns == 1 || fields.size() == 1 ? fmt::format(". Hint: {}", known_separators) : ""));
    row(line, fields);
  });
  reader.feed(bytes);
  reader.finish();
}

FileError not_utf8(const std::string& path, std::int64_t line, const std::string& column) {
  return error_at(path, line, fmt::format("column \"{}\": this is not UTF-8. Hint: save the file as UTF-8", column));
}

}  // namespace

std::vector<std::string> Table::names() const {
  std::vector<std::string> names;
  for (const Column& c : columns) names.push_back(c.name);
  return names;
}

std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == most) return fmt::format("{}, ...", fmt::join(shown, ", "));
    shown.push_back(name.find(',') == name.npos ? name : '"' + name + '"');
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

namespace {
[[noreturn]] void no_column(const std::string& path, const std::vector<std::string>& names, const std::string& name) {
  const std::string nearest = nearest_name(name, names);
  const bool joined = names.size() == 1 && names[0].find_first_of("|: \t") != names[0].npos;  // a whole header
  throw FileError(fmt::format("{}: there is no column \"{}\"{}{}", path, name,
                              nearest.empty() ? "; it has " + listed_names(names) : ". Hint: " + nearest + ".",
                              nearest.empty() && joined ? fmt::format(". Hint: {}", known_separators) : ""));
}

const std::vector<double>& numbers_of(const Column& column) {
  if (column.is_text()) throw FileError(column.problem);
  return column.numbers;
}
}  // namespace

std::vector<std::size_t> find_columns(const std::string& path, const std::vector<std::string>& names,
                                      const std::vector<std::string>& wanted) {
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < names.size(); ++i) index.emplace(names[i], i);
  std::vector<std::size_t> found;
  for (const std::string& name : wanted) {
    const auto at = index.find(name);
    if (at == index.end()) no_column(path, names, name);
    found.push_back(at->second);
  }
  return found;
}

const Column& Table::at(const std::string& name) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
  if (found == columns.end()) no_column(path, names(), name);
  return *found;
}

const std::vector<double>& Table::numbers(const std::string& name) const { return numbers_of(at(name)); }

std::vector<const std::vector<double>*> Table::numbers(const std::vector<std::string>& wanted) const {
  std::vector<const std::vector<double>*> all;
  for (const std::size_t i : find_columns(path, names(), wanted)) all.push_back(&numbers_of(columns[i]));
  return all;
}

std::string Table::where(std::int64_t row) const {
  if (!lines.empty()) return fmt::format("{}:{}", path, lines[static_cast<std::size_t>(row)]);
  const auto after = std::upper_bound(sequences.begin(), sequences.end(), row,
                                      [](std::int64_t r, const Rows& s) { return r < s.first; });
  if (after == sequences.begin()) return fmt::format("{}: row {}", path, row);
  return fmt::format("{}: sequence {}, step {}", path, after - sequences.begin() - 1, row - (after - 1)->first);
}

void check_exact(const Table& table, std::int64_t row, const Column& column, const char* what) {
  const double number = column.numbers[static_cast<std::size_t>(row)];
  if (std::abs(number) < 0x1p53) return;
  throw FileError(
      fmt::format("{}: column \"{}\": a number below 2^53 is expected as the {} of a row, got {:.17g}, "
                  "which may stand for several. Hint: a letter before it makes it text",
                  table.where(row), column.name, what, number));
}

void check_header(const std::string& path, std::int64_t line, const std::vector<std::string>& names) {
  std::set<std::string_view> before;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_utf8(names[i]))
      throw error_at(path, line,
                     fmt::format("the name of column {} is not UTF-8. Hint: save the file as UTF-8", i + 1));
    if (names[i].empty())
      throw error_at(path, line,
                     fmt::format("column {} of the header has no name{}", i + 1,
                                 i == 0 ? ". Hint: index=False in pandas' to_csv" : ""));
    if (names[i].find('\0') != names[i].npos)
      throw error_at(path, line, fmt::format("the name of column {} has a zero byte in it", i + 1));
    if (!before.insert(names[i]).second)
      throw error_at(path, line, fmt::format("two columns are called \"{}\"", names[i]));
  }
  if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return parse_number(name).has_value(); }))
    throw error_at(path, line, "a header with the names of the columns is expected, got numbers");
}

Table parse_csv_table(const std::string& path, std::string_view bytes, const std::vector<std::string>& as_written) {
  Table table{.path = path};
  const auto no_header = [](std::int64_t, const std::vector<std::string>&) {};
  // What each column is, before memory is taken for it.
  each_row(
      path, bytes,
      [&](std::int64_t line, const std::vector<std::string>& names) {
        check_header(path, line, names);
        for (const std::string& name : names) table.columns.push_back({.name = name});
      },
      [&](std::int64_t line, const std::vector<std::string>& fields) {
        if (++table.rows * std::ssize(fields) > static_cast<std::int64_t>(most_values))
          throw error_at(path, line, "the file has more than 2^28 fields");
        for (std::size_t i = 0; i < fields.size(); ++i) {
          if (fields[i].empty()) continue;
          Column& column = table.columns[i];
          if (parse_number(fields[i])) {
            column.some_numbers = true;
          } else if (!column.is_text()) {
            if (!is_utf8(fields[i])) throw not_utf8(path, line, column.name);
            column.problem = error_of_number(path, line, column.name, fields[i]);
            column.some_numbers = column.some_numbers || nearly_number(fields[i]);
          }
        }
      });
  if (table.columns.empty()) throw FileError(path + ": the file is empty; a header and rows are expected");
  if (table.rows == 0) throw FileError(path + ": there are no rows after the header");

  const auto rows = static_cast<std::size_t>(table.rows);
  std::vector<std::map<std::string, std::int32_t>> index(table.columns.size());
  std::vector<bool> keeps(table.columns.size());  // its texts
  table.lines.reserve(rows);
  for (std::size_t i = 0; i < keeps.size(); ++i) {
    Column& column = table.columns[i];
    keeps[i] = column.is_text() || std::find(as_written.begin(), as_written.end(), column.name) != as_written.end();
    if (keeps[i]) column.texts.reserve(rows);
    if (!column.is_text()) column.numbers.reserve(rows), column.some_numbers = false;
  }
  each_row(path, bytes, no_header, [&](std::int64_t line, const std::vector<std::string>& fields) {
    table.lines.push_back(line);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      Column& column = table.columns[i];
      if (!column.is_text()) column.numbers.push_back(fields[i].empty() ? missing_value : *parse_number(fields[i]));
      if (!keeps[i]) continue;
      if (fields[i].empty()) {
        column.texts.push_back(-1);
      } else {
        auto at = index[i].find(fields[i]);
        if (at == index[i].end()) {
          if (!is_utf8(fields[i])) throw not_utf8(path, line, column.name);
          at = index[i].emplace(fields[i], static_cast<std::int32_t>(column.words.size())).first;
          column.words.push_back(fields[i]);
        }
        column.texts.push_back(at->second);
      }
    }
  });
  return table;
}

Table read_table(const std::string& path, const std::vector<std::string>& as_written) {
  std::string bytes;
  try {
    bytes = read_file(path, most_bytes);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& e) {
    throw FileError(e.what());
  }
  const std::string kind = lower(std::filesystem::path(path).extension());
  Table table =
      kind == ".npy"   ? table_of_array(path, parse_npy(path, bytes))
      : kind == ".npz" ? table_of_arrays(path, parse_npz(path, bytes))
      : kind == ".csv" || kind == ".tsv" || kind == ".txt"
          ? parse_csv_table(path, bytes, as_written)
          : throw FileError(path + ": .csv, .tsv, .txt, .npy, .npz or .safetensors is expected as the end of the name");
  add_checksum(table, bytes);
  return table;
}

void add_checksum(Table& table, std::string_view bytes) {
  table.bytes = std::ssize(bytes);
  table.crc32 = fmt::format("{:08x}", crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace reel
