// CSV: rows are the same in whatever pieces the bytes come; as a table every column has each row; and as examples
// whatever the options, windows lie within the table.
#include "tasks/data/csv.h"
#include "tasks/data/table_data.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

namespace {

struct Read {
  std::vector<std::pair<std::int64_t, std::vector<std::string>>> rows;
  bool whole = false;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, std::size_t piece) {
  Read out;
  out.whole = takes([&] {
    CsvReader reader("x", [&](std::int64_t line, const std::vector<std::string>& fields) {
      check(out.rows.empty() || out.rows.back().first <= line, "rows come in order");
      out.rows.emplace_back(line, fields);
    });
    for (; bytes.size() > piece; bytes.remove_prefix(piece)) reader.feed(bytes.substr(0, piece));
    reader.feed(bytes);
    reader.finish();
  });
  return out;
}

void check_examples(const Table& table, unsigned choice) {
  const auto bits = [&](unsigned count) {
    const unsigned value = choice % count;
    choice /= count;
    return value;
  };
  const auto name = [&] { return table.columns[bits(2) % table.columns.size()].name; };
  static constexpr const char *splits[] = {"auto", "group", "row", "time"}, *missing[] = {"error", "previous", "zero"},
                              *predict[] = {"auto", "class", "value"};
  TableOptions o;
  o.target = name();
  if (bits(2)) o.group = name();
  o.split = splits[bits(4)], o.missing = missing[bits(3)], o.predict = predict[bits(3)];
  o.at = bits(2) ? "each" : "last";
  o.window = bits(4), o.stride = bits(3), o.horizon = bits(3), o.standardize = bits(2);
  takes([&] {
    const TableData data = table_data(table, o, 1);
    check(data.x.size() == static_cast<std::size_t>(table.rows) * data.spec.inputs.size(), "features of all rows");
    for (const auto& part : data.parts)
      for (const Rows& w : part)
        check(w.first >= 0 && w.count > 0 && w.first + w.count + o.horizon <= table.rows, "windows lie in the table");
    check(TableSpec::parse("x", data.spec.json()) == data.spec, "the spec is back");
  });
}

}  // namespace

REEL_FUZZ(bytes) {
  const unsigned choice = bytes.size() > 2 ? static_cast<unsigned char>(bytes.back()) * 256u +
                                                 static_cast<unsigned char>(bytes[bytes.size() - 2])
                                           : 0;
  const Read whole = read(bytes, bytes.size() + 1);
  check(read(bytes, 1 + choice % 7) == whole, "the same rows in pieces");
  takes([&] {
    const Table table = parse_csv_table("x", bytes);
    check(whole.whole && std::ssize(whole.rows) == table.rows + 1, "a header and the rows");
    for (const Column& column : table.columns)
      check((column.is_text() ? std::ssize(column.texts) : std::ssize(column.numbers)) == table.rows,
            "each has each row");
    check_examples(table, choice * 2654435761u);
  });
}
