// CSV, .npy and .npz as tables: what they hold, and one line about what is wrong with them.
#include <fmt/ranges.h>

#include <zlib.h>

#include <cmath>

#include "tasks/app/load_table.h"
#include "tasks/data/csv.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

const std::string golden = REEL_SOURCE_DIR "/tests/golden/arrays/";

/// Rows as "LINE:field|field;", whatever pieces the bytes come in.
std::string rows_of(const std::string& bytes, std::size_t piece) {
  std::string out;
  CsvReader reader("f.csv", [&](std::int64_t line, const std::vector<std::string>& fields) {
    out += fmt::format("{}:{};", line, fmt::join(fields, "|"));
  });
  for (std::size_t at = 0; at < bytes.size(); at += piece) reader.feed(std::string_view(bytes).substr(at, piece));
  reader.finish();
  return out;
}

std::string csv_error(const std::string& bytes) {
  return error_of([&] { parse_csv_table("f.csv", bytes); });
}

Array golden_array(const std::string& name) { return parse_npy(name, read_file(golden + name)); }

}  // namespace

TEST_CASE("csv: quotes, line breaks of all kinds, blank lines and separators, in pieces of any size") {
  struct Case {
    std::string bytes, rows;
  };
  for (const Case& c :
       {Case{"a,b\n1,2\n", "1:a|b;2:1|2;"}, Case{"a,b\r\n\r\n 1 , 2", "1:a|b;3:1|2;"},
        Case{"a,b\r1,\r,2\r", "1:a|b;2:1|;3:|2;"},
        Case{"\xef\xbb\xbf\"a, b\",\"c\"\"d\"\n\"x\ny\",1\n3,4\n", "1:a, b|c\"d;2:x\ny|1;4:3|4;"},
        Case{"a;b\n1,5;2\n", "1:a|b;2:1,5|2;"}, Case{"a\tb\n\t2\n", "1:a|b;2:|2;"}, Case{"\"a;b\",c\n", "1:a;b|c;"},
        Case{"\"a,b\";c\n", "1:a,b|c;"}, Case{"T, C\tH\ty\n1,5\t2\t3\n", "1:T, C|H|y;2:1,5|2|3;"},
        Case{"T, C;H;y\n1;2;3\n", "1:T, C|H|y;2:1|2|3;"}, Case{"a,\tb;,c\n", "1:a|b;|c;"},
        Case{"\n \r\n\xef\n", "3:\xef;"}, Case{"\xef\xbb\xbf\r\n\na;b\n1;2", "3:a|b;4:1|2;"},
        Case{"\na\tb\n\t2", "2:a|b;3:|2;"}, Case{"sep=;\r\n\r\na;b,c\r\n1;2", "3:a|b,c;4:1|2;"},
        Case{"sep=|\na|b\n1|2\n", "2:a|b;3:1|2;"}, Case{"a\n\"\r\n\"\nz\n", "1:a;2:\r\n;4:z;"}, Case{"", ""}})
    for (const std::size_t piece : {1, 2, 3, 100}) {
      CAPTURE(c.bytes);
      CAPTURE(piece);
      CHECK(rows_of(c.bytes, piece) == c.rows);
    }
}

TEST_CASE("csv: an empty line is no row; in a single column it may be a missing value, and is refused") {
  for (const std::size_t piece : {1, 2, 100}) {
    CAPTURE(piece);
    for (const std::string bytes : {"a\n1\n\n2\n", "a\r\n1\r\n \t\r\n2\r\n", "a\r1\r\r\r2"})
      CHECK(error_of([&] { rows_of(bytes, piece); }) ==
            "f.csv:3: an empty line stands among the rows of the only column. Hint: \"\" is a missing value");
    CHECK(rows_of("\n\na\n1\n2\n\n \n", piece) == "3:a;4:1;5:2;");
    CHECK(rows_of("a\r\n1\r\n\"\"\r\n2\r\n", piece) == "1:a;2:1;3:;4:2;");
    CHECK(rows_of("a\n\"1\n\n2\"\n3\n", piece) == "1:a;2:1\n\n2;5:3;");
    CHECK(rows_of("a,b\n1,2\n\n3,4\n", piece) == "1:a|b;2:1|2;4:3|4;");
  }
  CHECK(std::isnan(parse_csv_table("f.csv", "a\n1\n\"\"\n2\n").numbers("a").at(1)));
}

TEST_CASE("csv: a row is there as soon as its line has ended") {
  int rows = 0;
  CsvReader reader("-", [&](std::int64_t, const std::vector<std::string>&) { ++rows; });
  reader.feed("a,b\n1,2");
  CHECK(rows == 1);
  reader.feed("\n3,4\n");
  CHECK(rows == 3);
}

TEST_CASE("csv: a field that is written is read as it was") {
  for (const std::string field : {"a", " a", "a ", "a;b;c", "a\tb", "a,b", "a\"b", "a\nb", " "})
    CHECK(rows_of(csv_field(field, true) + ",z\n", 100) == fmt::format("1:{}|z;", field));
  CHECK(rows_of("x,y\n" + csv_field("a;b") + ",z\n", 100) == "1:x|y;2:a;b|z;");
  CHECK(csv_field("a b") == "a b");
  CHECK(csv_field("a;b") == "a;b");
}

TEST_CASE("csv: columns of numbers and of text, missing values") {
  const Table table = parse_csv_table("f.csv", "n,text,mixed\n+1.5,x,1\n,,\n-2e3,\"y, z\",q\n7,x,2\n");
  REQUIRE(table.rows == 4);
  CHECK(table.names() == std::vector<std::string>{"n", "text", "mixed"});
  const std::vector<double>& n = table.numbers("n");
  CHECK((n[0] == 1.5 && std::isnan(n[1]) && n[2] == -2000 && n[3] == 7));
  const std::vector<double> tiny = parse_csv_table("f.csv", "n\n1e-400\n-1e-5000\n5e-324\n").numbers("n");
  CHECK((tiny[0] == 0 && tiny[1] == 0 && std::signbit(tiny[1]) && tiny[2] > 0));  // as in Python
  const Column& text = table.at("text");
  CHECK(text.words == std::vector<std::string>{"x", "y, z"});
  CHECK(text.texts == std::vector<std::int32_t>{0, -1, 1, 0});
  CHECK((text.is_text() && !text.some_numbers && table.at("mixed").some_numbers));
  CHECK(table.where(2) == "f.csv:4");
  CHECK(error_of([&] { table.numbers("mixed"); }) == "f.csv:4: column \"mixed\": a number is expected, got \"q\"");
  CHECK(error_of([&] { table.at("texd"); }) == "f.csv: there is no column \"texd\". Hint: text.");
  CHECK(error_of([&] { table.at("something"); }) == "f.csv: there is no column \"something\"; it has n, text, mixed");
}

TEST_CASE("csv: one line for each kind of damage") {
  CHECK(csv_error("") == "f.csv: the file is empty; a header and rows are expected");
  CHECK(csv_error("\n \n") == "f.csv: the file is empty; a header and rows are expected");
  CHECK(csv_error("a,b\n") == "f.csv: there are no rows after the header");
  CHECK(csv_error("a,b,c\n1,2,3\n\n4,5\n") == "f.csv:4: 3 fields are expected, as in the header, got 2");
  CHECK(csv_error("a,b\n1,2,3\n") == "f.csv:2: 2 fields are expected, as in the header, got 3");
  CHECK(csv_error("a|b\n1|2,5\n") ==
        fmt::format("f.csv:2: 1 field is expected, as in the header, got 2. Hint: {}", known_separators));
  CHECK(csv_error("a,b\n1;2\n") ==
        fmt::format("f.csv:2: 2 fields are expected, as in the header, got 1. Hint: {}", known_separators));
  CHECK(error_of([&] { parse_csv_table("f.csv", "a|b|y\n1|2|3\n").at("y"); }) ==
        fmt::format("f.csv: there is no column \"y\"; it has a|b|y. Hint: {}", known_separators));
  CHECK(csv_error("a,a\n1,2\n") == "f.csv:1: two columns are called \"a\"");
  CHECK(csv_error("a,\n1,2\n") == "f.csv:1: column 2 of the header has no name");
  CHECK(csv_error("1,2\n3,4\n") == "f.csv:1: a header with the names of the columns is expected, got numbers");
  CHECK(csv_error("a\n1\n\"2\n3\n") == "f.csv:3: a quote (\") is never closed");
  CHECK(contains(csv_error("a\n1\n2\"3\n"), "f.csv:3: a quote (\") stands inside a field"));
  CHECK(contains(csv_error("\xff\n1\n"), "f.csv:1: the name of column 1 is not UTF-8"));
  CHECK(contains(csv_error("a\nx\ny\n\xe9\n"), "f.csv:4: column \"a\": this is not UTF-8"));
  const auto problem = [](const std::string& field) {
    return parse_csv_table("f.csv", "a,b\n1,2\n3," + field + "\n").at("b").problem;
  };
  const std::string range = "a number from -1.798e+308 to 1.798e+308 is expected, as f64 has them, got ";
  for (const char* large : {"1e400", "1e999", "-1e400", "+2E5000"})
    CHECK(problem(large) == fmt::format("f.csv:3: column \"b\": {}\"{}\". Hint: scale the column", range, large));
  CHECK(problem("1e400x") == "f.csv:3: column \"b\": a number is expected, got \"1e400x\"");
  CHECK(problem("inf") == "f.csv:3: column \"b\": a finite number is expected, got \"inf\"");
  CHECK(problem("NaN") ==
        "f.csv:3: column \"b\": a finite number is expected, got \"NaN\". Hint: an empty field is a missing value");
  CHECK(problem("\"-1,5e3\"") ==
        "f.csv:3: column \"b\": a number is expected, got \"-1,5e3\". Hint: decimals have a point, not a comma, and "
        "nothing "
        "stands between thousands");
  for (const std::string missing : {"NA", "n/a", "None", "null", "?", "-"})
    CHECK(problem(missing) == fmt::format("f.csv:3: column \"b\": a number is expected, got \"{}\". Hint: an empty "
                                          "field is a missing value",
                                          missing));
  CHECK(problem("5%") == "f.csv:3: column \"b\": a number is expected, got \"5%\". Hint: a number has no percent sign");
  CHECK(contains(problem(std::string(1000, 'x')), std::string(40, 'x') + "...\""));
  CHECK(contains(problem(std::string(39, 'x') + "\xc3\xa4z"), '"' + std::string(39, 'x') + "...\""));
  CHECK(problem(std::string("1\0", 2)) == "f.csv:3: column \"b\": a number is expected, got \"1\\x00\"");
  CHECK(csv_error(std::string("a,b\0c\n1,2\n", 10)) == "f.csv:1: the name of column 2 has a zero byte in it");
  const std::string endless = "a\n\"" + std::string((1 << 24) + 10, 'x');
  CHECK(contains(csv_error(endless), "f.csv:2: the row has more than 2^24 bytes"));
  CHECK(contains(error_of([&] { rows_of("a," + endless.substr(3), 1 << 16); }), "f.csv:1: the line has more than"));
}

TEST_CASE("npy: every type and version that NumPy writes") {
  for (const std::string kind : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}) {
    CAPTURE(kind);
    const Array array = golden_array(kind + ".npy");
    CHECK(array.shape == std::vector<std::int64_t>{2, 3});
    CHECK(array.whole == (kind[0] != 'f'));
    const double first = kind[0] == 'u' ? 0 : -2;
    for (std::size_t i = 0; i < 6; ++i) CHECK(array.values.at(i) == first + static_cast<double>(i));
  }
  CHECK(golden_array("b1.npy").values == std::vector<double>{1, 0, 1});
  for (const std::string version : {"version2.npy", "version3.npy"})
    CHECK(golden_array(version).values == std::vector<double>{0, 1, 2, 3, 4, 5});
  const std::vector<double> halves = golden_array("halves.npy").values;
  CHECK((halves[0] == 65504 && halves[3] == -0.0999755859375 && std::isnan(halves[5])));
  CHECK(halves[1] == doctest::Approx(6.1e-5).epsilon(1e-3));
  CHECK(halves[2] == std::ldexp(1, -24));
  CHECK(halves[4] == doctest::Approx(1.0 / 3).epsilon(1e-3));
}

TEST_CASE("npy: one line for each kind of damage") {
  const auto error = [](const std::string& name) { return error_of([&] { read_table(golden + name); }); };
  CHECK(contains(error("fortran.npy"), "the array is in Fortran order. Hint: numpy.ascontiguousarray(x)"));
  CHECK(contains(error("big.npy"), "got \">f4\". Hint: x.astype"));
  CHECK(contains(error("object.npy"), "got \"|O\""));
  CHECK(contains(error("scalar.npy"), "[rows], [rows, columns] or [sequences, steps, columns] is expected, got []"));

  const std::string whole = read_file(golden + "f4.npy");
  const auto broken = [&](std::string bytes) { return error_of([&] { parse_npy("x.npy", bytes); }); };
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK(broken(whole.substr(0, size)).starts_with("x.npy: "));
  CHECK(contains(broken(whole + "x"), "2 x 3 elements of 4 bytes are expected by the header, got 25 bytes"));
  std::string other = whole;
  other[6] = 9;
  CHECK(broken(other) == "x.npy: version 1, 2 or 3 of .npy is expected, got 9");
  const auto with_shape = [&](const std::string& shape) {
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
    std::string bytes = whole.substr(0, 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    return broken(bytes + header);
  };
  CHECK(contains(with_shape("(4294967296, 4294967296, 4)"), "elements of 4 bytes are expected by the header"));
  CHECK(with_shape("(0,)").empty());
  for (const char* shape : {"(-1,)", "(1", "1", "(1,,2)", "(99999999999999999999,)", "(1,1,1,1,1,1,1,1,1)"})
    CHECK(contains(with_shape(shape), "the header is damaged"));
}

TEST_CASE("arrays: columns, sequences, lengths, and targets of sequences or of steps") {
  const Table plain = read_table(golden + "i4.npy");
  CHECK(plain.names() == std::vector<std::string>{"c0", "c1", "c2"});
  CHECK(plain.numbers("c1") == std::vector<double>{-1, 2});
  CHECK(contains(plain.where(1), "i4.npy: row 1"));

  const Table last = read_table(golden + "last.npz");
  CHECK(last.names() == std::vector<std::string>{"c0", "c1", "y"});
  CHECK(last.sequences == std::vector<Rows>{{0, 3}, {3, 1}, {6, 2}, {9, 3}});
  const std::vector<double>& y = last.numbers("y");
  for (std::size_t r = 0; r < y.size(); ++r) {
    const bool is_last = r == 2 || r == 3 || r == 7 || r == 11;
    CHECK(std::isnan(y[r]) == !is_last);
    if (is_last) CHECK(y[r] == (r == 3 || r == 7 ? 1 : 0));
  }
  CHECK((last.targets == std::vector<std::string>{"y"} && !last.target_each && last.at("y").whole));
  CHECK(contains(last.where(7), "last.npz: sequence 2, step 1"));

  const Table each = read_table(golden + "each.npz");
  CHECK((each.target_each && each.numbers("y")[4] == 4 && each.numbers("c1")[4] == 9));
  const Table several = read_table(golden + "several.npz");
  CHECK(several.targets == std::vector<std::string>{"y0", "y1"});
  CHECK((several.numbers("y0")[5] == 11 && several.numbers("y1")[5] == 10));
}

TEST_CASE("npz: damage anywhere is an error or is not seen, and never a crash") {
  for (const std::string name : {"last.npz", "each.npz"}) {
    const std::string whole = read_file(golden + name);
    CHECK(parse_npz("x.npz", whole).size() == (name == "last.npz" ? 3 : 2));
    for (std::size_t size = 0; size < whole.size(); size += 7)
      CHECK(error_of([&] { parse_npz("x.npz", whole.substr(0, size)); }).starts_with("x.npz: "));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
      const std::string error = error_of([&] { table_of_arrays("x.npz", parse_npz("x.npz", bytes)); });
      CHECK((error.empty() || error.starts_with("x.npz: ")));
    }
  }
}

namespace {

/// An .npy file of zeros.
std::string zeros(const std::string& descr, std::size_t count, std::size_t bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}\n", descr, count);
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header +
         std::string(count * bytes, '\0');
}

/// A zip archive of these files, as they are.
std::string archive(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 255);
    return out;
  };
  std::string out, directory;
  for (const auto& [name, bytes] : files) {
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    const std::string about = number(10, 2) + number(0, 8) + number(crc, 4) + number(bytes.size(), 4) +
                              number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(10, 2) + about + number(0, 10) + number(out.size(), 4) + name;
    out += "PK\x03\x04" + about + name + bytes;
  }
  return out + directory + "PK\x05\x06" + number(0, 4) + number(files.size(), 2) + number(files.size(), 2) +
         number(directory.size(), 4) + number(out.size(), 4) + number(0, 2);
}

}  // namespace

TEST_CASE("arrays: bytes that would be more numbers than fit are refused before memory is taken for them") {
  CHECK(contains(error_of([] { parse_npy("x.npy", zeros("|u1", most_values + 1, 1)); }),
                 "x.npy: 268435456 values or fewer are expected, got 268435457"));
  CHECK(parse_npz("x.npz", archive({{"x.npy", zeros("<f4", 3, 4)}})).at("x").values == std::vector<double>(3, 0));
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : {"a.npy", "b.npy", "c.npy"}) files.emplace_back(name, zeros("|b1", most_values / 16, 1));
  CHECK(parse_npz("x.npz", archive(files)).size() == 3);
  for (auto& [name, bytes] : files) bytes = zeros("|b1", most_values / 2, 1);
  CHECK(error_of([&] { parse_npz("x.npz", archive(files)); }) == "x.npz: the arrays have more than 268435456 values");
}

TEST_CASE("arrays: shapes that do not go together") {
  const Array x{.shape = {2, 3, 1}, .values = std::vector<double>(6, 0.5)};
  const auto error = [&](const Array& y, const char* name) {
    return error_of([&] { table_of_arrays("f", {{"x", x}, {name, y}}); });
  };
  CHECK(error({.shape = {3}, .values = {1, 2, 3}}, "y") ==
        "f: y: [2], [2, 3] or [2, 3, targets] is expected beside x, got [3]");
  CHECK(contains(error({.shape = {2, 2}, .values = {1, 2, 3, 4}}, "y"), "got [2, 2]"));
  CHECK(error({.shape = {2}, .values = {1, 4}, .whole = true}, "lengths") ==
        "f: lengths: 1 to 3 steps are expected, sequence 1 has 4");
  CHECK(contains(error({.shape = {2}, .values = {1, 2}}, "lengths"), "in floating point"));
  CHECK(error_of([&] {
          table_of_arrays("f", {{"a", x}, {"b", x}});
        }) == "f: an array x is expected, and y and lengths if there are any; it has a, b");
  CHECK(error({.shape = {2}, .values = {1, 2}, .whole = true}, "length") ==
        "f: the arrays x, y and lengths are expected, got \"length\". Hint: lengths");
  CHECK(error({.shape = {2}, .values = {1, 2}}, "weights") ==
        "f: the arrays x, y and lengths are expected, got \"weights\"");
  CHECK(error_of([&] {
          table_of_array("f", {.shape = {2, 1}, .values = {1, INFINITY}});
        }) == "f: row 1: column \"c0\": a finite number is expected, got inf");
}

TEST_CASE("safetensors: the same arrays as in .npz") {
  const TempDir dir;
  const Table npz = read_table(golden + "last.npz");
  std::vector<float> x;
  for (std::size_t r = 0; r < 12; ++r)
    for (const char* name : {"c0", "c1"}) x.push_back(static_cast<float>(npz.numbers(name)[r]));
  save_safetensors(dir / "a.safetensors", {{{"x", Tensor::from<float>(x, {4, 3, 2})},
                                            {"y", Tensor::from<std::int32_t>({0, 1, 1, 0}, {4})},
                                            {"lengths", Tensor::from<std::int32_t>({3, 1, 2, 3}, {4})}},
                                           {}});
  const Table table = load_table(dir / "a.safetensors");
  CHECK((table.sequences == npz.sequences && table.targets == npz.targets && table.at("y").whole));
  for (const char* name : {"c0", "c1"}) CHECK(table.numbers(name) == npz.numbers(name));
  CHECK(table.crc32.size() == 8);
  write_atomically(dir / "b.safetensors", "not at all");
  CHECK(contains(error_of([&] { load_table(dir / "b.safetensors"); }), "b.safetensors"));
  CHECK(contains(error_of([&] { load_table(dir / "x.parquet"); }), "cannot be read"));
}
