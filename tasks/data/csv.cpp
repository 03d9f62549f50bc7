#include "tasks/data/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <limits>
#include <locale>
#include <sstream>
#include <utility>

#include "engine/core/parse.h"
#include "tasks/data/data_error.h"
#include "tasks/io/lower.h"
#include "tasks/io/output.h"

namespace reel {

namespace {

constexpr std::size_t longest_row = std::size_t{1} << 24;
constexpr std::string_view mark = "\xef\xbb\xbf";  // of the byte order, in UTF-8

/// What separates the fields of a file with this header: a tab, but not one beside a comma or semicolon, which pads; or
/// the more frequent of these two.
char separator(std::string_view line) {
  bool quoted = false, tab = false;
  std::ptrdiff_t commas = 0;  // less the semicolons
  const auto pads = [&](std::size_t at) { return at < line.size() && (line[at] == ',' || line[at] == ';'); };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    commas += c == ',' ? 1 : c == ';' ? -1 : 0;
    tab = tab || (c == '\t' && !pads(i + 1) && (i == 0 || !pads(i - 1)));
  }
  return tab ? '\t' : commas < 0 ? ';' : ',';
}

/// What the line sep=; names, which spreadsheets write and read; 0 for another line.
char named_separator(std::string_view line) {
  const bool names = line.size() == 5 && line.starts_with("sep=");
  return names && std::string_view(",;\t|").find(line[4]) != line.npos ? line[4] : '\0';
}

/// The start of a field, for an error, which would end at a zero byte.
std::string shown(std::string_view field) {
  std::size_t end = std::min<std::size_t>(field.size(), 40);
  while (end < field.size() && end > 37 && (field[end] & '\xc0') == '\x80') --end;  // no part of a character
  return one_line(field.substr(0, end)) + (field.size() > end ? "..." : "");
}

}  // namespace

struct CsvReader::Impl {
  std::string path;
  CsvRow row;
  csv_parser parser{};
  std::string head;  // the first line that is not blank, until it is whole
  bool begun = false, in_row = false, after_return = false;
  char comma = ',';
  std::int64_t line = 1, row_line = 1;
  std::size_t columns = 0;      // of the first row
  std::int64_t empty_line = 0;  // the first among the rows of a single column; 0: there was none
  std::size_t row_bytes = 0;
  std::vector<std::string> fields;
  std::size_t count = 0;  // of the fields of the row so far; `fields` keeps its strings' memory
  bool ended = false;     // a row ended in the last call of libcsv
  std::exception_ptr problem = {};

  // libcsv is C: exceptions wait until it has returned.
  static void on_field(void* text, std::size_t size, void* self) {
    auto& r = *static_cast<Impl*>(self);
    try {
      if (r.count == r.fields.size()) r.fields.emplace_back();
      r.fields[r.count++].assign(static_cast<const char*>(text), size);
    } catch (...) {
      r.problem = std::current_exception();
    }
  }
  static void on_row(int, void* self) { static_cast<Impl*>(self)->ended = true; }

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(fmt::format("{}:{}: {}", path, row_line, what));
  }

  void settle() {
    if (problem) std::rethrow_exception(problem);
    if (!ended) return;
    ended = in_row = false;
    row_bytes = 0;
    fields.resize(count);
    count = 0;
    if (columns == 0) columns = fields.size();
    row(row_line, fields);
  }

  bool is_blank(std::string_view bytes) const {
    return bytes.find_first_not_of(comma == '\t' ? " \r\n" : " \r\n\t") == bytes.npos;
  }

  /// Bytes of one line, or of a part of it.
  void parse(std::string_view bytes) {
    if (!in_row && !is_blank(bytes)) {
      in_row = true, row_line = empty_line > 0 ? empty_line : line;
      // libcsv skips it, and all rows after it would move up
      if (empty_line > 0) fail("an empty line stands among the rows of the only column. Hint: \"\" is a missing value");
    }
    row_bytes += bytes.size();
    if (in_row && row_bytes > longest_row)
      fail("the row has more than 2^24 bytes. Hint: is a quote (\") never closed?");
    if (csv_parse(&parser, bytes.data(), bytes.size(), on_field, on_row, this) != bytes.size()) {
      if (csv_error(&parser) == CSV_ENOMEM) throw std::bad_alloc();
      fail("a quote (\") stands inside a field. Hint: quote the whole field, and double the quotes in it");
    }
    settle();
  }

  void lines(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find_first_of("\r\n"), size = end == bytes.npos ? bytes.size() : end + 1;
      const bool second = after_return && bytes[0] == '\n';  // of a line break in two bytes
      const bool empty = !in_row && end != bytes.npos && !second && is_blank(bytes.substr(0, size));
      parse(bytes.substr(0, size));
      if (empty && columns == 1 && empty_line == 0) empty_line = line;
      if (end != bytes.npos && !second) ++line;
      after_return = end != bytes.npos && bytes[end] == '\r';
      if (!in_row) row_bytes = 0;
      bytes.remove_prefix(size);
    }
  }

  /// The whole first line, or a blank one before it.
  void take_head() {
    if (line == 1 && head.starts_with(mark)) head.erase(0, mark.size());
    const std::string first = std::exchange(head, {});
    const std::string_view text = std::string_view(first).substr(0, first.find_first_of("\r\n"));
    begun = text.find_first_not_of(' ') != text.npos;
    const char named = named_separator(text);
    if (begun) comma = named != '\0' ? named : separator(text);
    csv_set_delim(&parser, static_cast<unsigned char>(comma));
    lines(named != '\0' ? std::string_view(first).substr(text.size()) : first);
  }
};

CsvReader::CsvReader(std::string path, CsvRow row) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->row = std::move(row);
  if (csv_init(&impl_->parser, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
  csv_set_blk_size(&impl_->parser, std::size_t{1} << 14);
}

CsvReader::~CsvReader() { csv_free(&impl_->parser); }

void CsvReader::feed(std::string_view bytes) {
  while (!impl_->begun) {
    const std::size_t end = bytes.find_first_of("\r\n"), size = end == bytes.npos ? bytes.size() : end + 1;
    impl_->row_line = impl_->line;
    if (impl_->head.size() + size > longest_row) impl_->fail("the line has more than 2^24 bytes");
    impl_->head += bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (end == bytes.npos) return;
    impl_->take_head();
  }
  impl_->lines(bytes);
}

void CsvReader::finish() {
  if (!impl_->begun) impl_->take_head();
  if (csv_fini(&impl_->parser, Impl::on_field, Impl::on_row, impl_.get()) != 0)
    impl_->fail("a quote (\") is never closed");
  impl_->settle();
}

std::string csv_field(const std::string& text, bool in_header) {
  const bool padded = text.starts_with(' ') || text.ends_with(' ');  // which a reader takes away
  if (!padded && text.find_first_of(in_header ? ",;\t\"\n\r" : ",\"\n\r") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

namespace {
/// A number that f64 does not have: infinity, or the nearest number if that is 0 or subnormal.
std::optional<double> number_out_of_range(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range || end != text.data() + text.size()) return std::nullopt;
  std::istringstream in{std::string(text)};  // from_chars does not say in which direction
  in.imbue(std::locale::classic());
  return in >> value ? value : std::copysign(std::numeric_limits<double>::infinity(), text[0] == '-' ? -1.0 : 1.0);
}

/// The field as a number that may be infinite or NaN.
std::optional<double> any_number(std::string_view field) {
  const bool plus = field.size() > 1 && field[0] == '+' && field[1] != '-';
  const std::string_view text = field.substr(plus ? 1 : 0);
  const std::optional<double> number = parse<double>(text);
  return number ? number : number_out_of_range(text);
}

}  // namespace

std::optional<double> parse_number(std::string_view field) {
  const std::optional<double> number = any_number(field);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

bool says_missing(std::string_view field) {
  if (const auto number = any_number(field)) return std::isnan(*number);
  const std::string small = lower(std::string(field.substr(0, 8)));
  for (const char* word : {"na", "n/a", "#n/a", "<na>", "null", "none", "nil", "missing", "-", "--", "?"})
    if (small == word) return true;
  return false;
}

bool nearly_number(std::string_view field) {
  if (any_number(field)) return false;
  if (field.ends_with('%')) {
    field.remove_suffix(1);
    while (field.ends_with(' ')) field.remove_suffix(1);
    if (any_number(field)) return true;
  }
  const std::size_t comma = field.find(',');
  if (comma == field.npos) return false;
  std::string point(field), joined(field);
  std::erase(joined, ',');                               // 1,000.5
  if (field.rfind('.') < comma) std::erase(point, '.');  // 1.000,5
  std::replace(point.begin(), point.end(), ',', '.');
  return any_number(point) || any_number(joined);
}

std::string error_of_number(const std::string& path, std::int64_t line, const std::string& column,
                            std::string_view field) {
  const std::optional<double> number = any_number(field);
  if (number && std::isinf(*number) && field.find_first_of("0123456789") != field.npos)
    return fmt::format(
        "{}:{}: column \"{}\": a number from {:.4g} to {:.4g} is expected, as f64 has them, got \"{}\". "
        "Hint: scale the column",
        path, line, column, std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max(), shown(field));
  const char* hint = "";
  if (says_missing(field)) hint = ". Hint: an empty field is a missing value";
  if (!number && nearly_number(field))
    hint = field.ends_with('%') ? ". Hint: a number has no percent sign"
                                : ". Hint: decimals have a point, not a comma, and nothing stands between thousands";
  return fmt::format("{}:{}: column \"{}\": a {}number is expected, got \"{}\"{}", path, line, column,
                     number ? "finite " : "", shown(field), hint);
}

double csv_number(const std::string& path, std::int64_t line, const std::string& column, std::string_view field) {
  if (field.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (const auto number = parse_number(field)) return *number;
  throw FileError(error_of_number(path, line, column, field));
}

}  // namespace reel
