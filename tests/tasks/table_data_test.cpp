// A table as examples: sequences, windows, parts, targets, standardised values, missing ones; and table.json.
#include "tasks/data/table_data.h"

#include <cmath>
#include <set>

#include "tasks/data/arrays.h"
#include "tasks/data/data_error.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Rows t, a = 10 t, b = t^2, group g0 or g1 in turn.
Table counted(int rows) {
  std::string text = "t,a,b,g\n";
  for (int t = 0; t < rows; ++t) text += fmt::format("{},{},{},g{}\n", t, 10 * t, t * t, t % 2);
  return parse_csv_table("f.csv", text);
}

std::string data_error(const Table& table, const TableOptions& options) {
  return error_of([&] { table_data(table, options, 1); });
}

std::vector<Rows> all_of(const Split& split) {
  std::vector<Rows> all;
  for (const auto& part : split) all.insert(all.end(), part.begin(), part.end());
  return all;
}

constexpr double root_of_two_thirds = 0.816496580927726;  // the deviation of 1, 2, 3

}  // namespace

TEST_CASE("windows: whole sequences, strides, horizons, rests and sequences that are too short") {
  using W = std::vector<Rows>;
  const Rows ten{100, 10};
  CHECK(windows_of(ten, {}) == W{{100, 10}});
  CHECK(windows_of(ten, {.horizon = 3}) == W{{100, 7}});
  CHECK(windows_of(ten, {.window = 4, .stride = 4}) == W{{100, 4}, {104, 4}});
  CHECK(windows_of(ten, {.window = 4, .stride = 4, .rest = true}) == W{{100, 4}, {104, 4}, {108, 2}});
  CHECK(windows_of(ten, {.window = 5, .stride = 5, .rest = true}) == W{{100, 5}, {105, 5}});
  CHECK(windows_of(ten, {.window = 4, .stride = 3, .horizon = 2}) == W{{100, 4}, {103, 4}});
  CHECK(windows_of(ten, {.window = 9, .stride = 1}) == W{{100, 9}, {101, 9}});
  CHECK(windows_of({5, 3}, {.window = 9, .horizon = 1}) == W{{5, 2}});
  CHECK(windows_of({5, 3}, {.window = 2, .horizon = 3}).empty());
  CHECK(windows_of({5, 3}, {.window = 3, .full = true}) == W{{5, 3}});
  CHECK(windows_of({5, 3}, {.window = 3, .horizon = 1, .full = true}).empty());
}

TEST_CASE("sequences: groups in the order in which they come, with their rows in order") {
  const Table table = parse_csv_table("f.csv", "g,h,t\nb,2,1\na,1,1\nb,2,2\nc,1,9\na,1,0\n");
  const Sequences by_text = sequences_of(table, "g", "");
  CHECK(by_text.order == std::vector<std::int64_t>{0, 2, 1, 4, 3});
  CHECK(by_text.parts == std::vector<Rows>{{0, 2}, {2, 2}, {4, 1}});
  CHECK(sequences_of(table, "h", "").order == std::vector<std::int64_t>{0, 2, 1, 3, 4});
  CHECK(sequences_of(table, "", "").parts == std::vector<Rows>{{0, 5}});
  CHECK(error_of([&] { sequences_of(table, "g", "t"); }) ==
        "f.csv:6: column \"t\": rows in order of time are expected, got 0 after 1");
  const Table holes = parse_csv_table("f.csv", "g,x,t\na,1,1\n,2,\n");
  CHECK(error_of([&] { sequences_of(holes, "g", ""); }) == "f.csv:3: column \"g\": the group of the row is missing");
  CHECK(error_of([&] { sequences_of(holes, "", "t"); }) == "f.csv:3: column \"t\": the time is missing");
}

TEST_CASE("times that are dates of one form must not fall; the order of other texts is not known") {
  const auto checked = [](const std::string& before, const std::string& after) {
    return sequences_of(parse_csv_table("f.csv", fmt::format("t,x\n{},1\n{},2\n", before, after)), "", "t").checked;
  };
  CHECK(checked("2024-05-01", "2024-05-02"));
  CHECK(checked("2024-05-01 23:59", "2024-05-02 00:00"));
  CHECK(checked("2024-05-01T09:00:00.5Z", "2024-05-01T09:00:00.5Z"));
  for (const auto& [before, after] :
       {std::pair{"2024-05-02", "2024-05-01"}, {"2023-12-31T10:00:00", "2023-12-31T09:59:59"}})
    CHECK(error_of([&] { checked(before, after); }) ==
          fmt::format("f.csv:3: column \"t\": rows in order of time are expected, got {} after {}", after, before));
  for (const auto& [before, after] : {std::pair{"2024-05-02", "2024-05-01 10:00"},
                                      {"02.05.2024", "01.05.2024"},
                                      {"2024-05-02T09:00+02:00", "2024-05-02T09:00-02:00"},
                                      {"2024-05-02T", "2024-05-01T"},
                                      {"May", "April"},
                                      {"12", "x"}})
    CHECK_FALSE(checked(before, after));
  CHECK(error_of([] { sequences_of(parse_csv_table("f.csv", "t,x\n2024-05-01,1\n,2\n"), "", "t"); }) ==
        "f.csv:3: column \"t\": the time is missing");
}

TEST_CASE("groups and classes that have no exact number") {
  std::string text = "id,t,x,k\n";
  for (int i = 0; i < 12; ++i) text += fmt::format("17600000000000000{:02},{},1,{}\n", i / 3, i, i % 2);
  const Table written = parse_csv_table("f.csv", text, {"id"}), numbers = parse_csv_table("f.csv", text);
  CHECK(sequences_of(written, "id", "t").parts == std::vector<Rows>{{0, 3}, {3, 3}, {6, 3}, {9, 3}});
  CHECK(contains(error_of([&] { sequences_of(numbers, "id", ""); }),
                 "f.csv:2: column \"id\": a number below 2^53 is expected as the group of a row, got 1.76e+18"));
  CHECK(contains(data_error(written, {.target = "id", .predict = "class", .window = 2}),
                 "f.csv:2: column \"id\": a number below 2^53 is expected as the class of a row"));
  CHECK(error_of([&] { sequences_of(parse_csv_table("f.csv", "g\n9007199254740991\n"), "g", ""); }).empty());
  const Table zeros = parse_csv_table("f.csv", "g,x\n1,1\n01,1\n1.0,1\n1,1\n,1\n", {"g"});
  CHECK(contains(error_of([&] { sequences_of(zeros, "g", ""); }), "f.csv:6: column \"g\": the group of the row"));
  CHECK(zeros.numbers("g")[2] == 1);  // still numbers, for inputs
}

TEST_CASE("splits: each entry in one part, the same for the same seed; the last rows in order of time") {
  std::vector<Rows> entries;
  for (int i = 0; i < 100; ++i) entries.push_back({i, 1});
  const Split one = split_at_random(entries, {.seed = 1});
  CHECK((one[0].size() == 70 && one[1].size() == 15 && one[2].size() == 15));
  std::set<std::int64_t> rows;
  for (const Rows& r : all_of(one)) rows.insert(r.first);
  CHECK(rows.size() == 100);
  CHECK(split_at_random(entries, {.seed = 1}) == one);
  CHECK(split_at_random(entries, {.seed = 2}) != one);
  CHECK(one[2].front().first != 85);  // at random
  CHECK(split_at_random(entries, {.test = 0})[2].empty());
  const Split few = split_at_random({{0, 1}, {1, 1}, {2, 1}}, {});
  CHECK((few[0].size() == 1 && few[1].size() == 1 && few[2].size() == 1));

  const Split time = split_by_time({{0, 20}, {20, 10}}, {.valid = 0.1, .test = 0.2});
  CHECK(time[0] == std::vector<Rows>{{0, 14}, {20, 7}});
  CHECK(time[1] == std::vector<Rows>{{14, 2}, {27, 1}});
  CHECK(time[2] == std::vector<Rows>{{16, 4}, {28, 2}});
}

TEST_CASE("forecast: the target is so many rows later, and no window or target is in two parts") {
  const TableData data = table_data(
      counted(100), {.target = "b", .window = 5, .horizon = 3, .standardize = false, .valid = 0.2, .test = 0.2}, 1);
  CHECK(data.spec.input_names() == std::vector<std::string>{"t", "a", "b"});  // the past of b is known
  CHECK((data.parts[0].size() == 53 && data.parts[1].size() == 13 && data.parts[2].size() == 13));
  CHECK((data.parts[1].front() == Rows{60, 5} && data.parts[1].back() == Rows{72, 5}));
  for (std::size_t part = 0; part < 3; ++part)
    for (const Rows& w : data.parts[part]) {
      CHECK(w.first >= (part == 0 ? 0 : part == 1 ? 60 : 80));
      CHECK(w.first + w.count - 1 + 3 < (part == 0 ? 60 : part == 1 ? 80 : 100));
    }
  for (std::size_t r = 0; r < 100; ++r) {
    const auto t = static_cast<float>(r);
    CHECK((data.x[3 * r] == t && data.x[3 * r + 1] == 10 * t && data.x[3 * r + 2] == t * t));
    CHECK(data.y[r] == static_cast<double>(r * r));  // of row r; windows look 3 rows ahead
  }
  CHECK((!data.ragged && !data.gaps && data.longest() == 5));
}

TEST_CASE("one answer for a window: every example has as many rows as `predict` reads") {
  TableOptions o{.target = "b", .window = 20};
  CHECK(data_error(counted(100), o) ==
        "f.csv: the validation part has no example, of 1 sequence with 100 rows in all. Hint: a smaller --window, or "
        "more data");
  o.window = 15;
  const TableData data = table_data(counted(100), o, 1);
  CHECK(data.parts[1] == std::vector<Rows>{{70, 15}});
  CHECK(data.parts[2] == std::vector<Rows>{{85, 15}});

  std::string text = "g,x,y\n";  // sequences of 4 and 6 rows in turn
  for (int g = 0; g < 20; ++g)
    for (int t = 0; t < (g % 2 ? 6 : 4); ++t) text += fmt::format("{},{},{}\n", g, t, t);
  const Table table = parse_csv_table("f.csv", text);
  for (const Rows& w : all_of(table_data(table, {.target = "y", .group = "g", .window = 5}, 1).parts))
    CHECK(w.count == 5);
  CHECK(table_data(table, {.target = "y", .group = "g", .at = "each", .window = 5}, 1).ragged);  // states are carried
}

TEST_CASE("standardised by the training part alone, targets by the rows that are targets") {
  // 10 rows: 1 to 6 train, in windows of 2 with targets in rows 1 to 5 from 0; the rest is far away
  const Table table =
      parse_csv_table("f.csv", "a,y,k\n1,2,7\n2,4,7\n3,6,7\n1,2,7\n2,4,7\n3,6,7\n900,1,7\n-900,5,7\n900,7,8\n50,2,7\n");
  const TableData data = table_data(table, {.target = "y", .window = 2, .valid = 0.2, .test = 0.2}, 1);
  CHECK(data.spec.input_names() == std::vector<std::string>{"a", "k"});
  CHECK(data.spec.inputs[0].mean == doctest::Approx(2).epsilon(1e-15));
  CHECK(data.spec.inputs[0].deviation == doctest::Approx(root_of_two_thirds).epsilon(1e-15));
  CHECK((data.spec.inputs[1].mean == 7 && data.spec.inputs[1].deviation == 1));  // a constant
  CHECK(data.spec.targets[0].mean == doctest::Approx(4.4).epsilon(1e-15));       // of 4, 6, 2, 4, 6
  CHECK(data.spec.targets[0].deviation == doctest::Approx(std::sqrt(2.24)).epsilon(1e-14));
  CHECK(data.x[0] == doctest::Approx(-1 / root_of_two_thirds));
  CHECK(data.y[0] == doctest::Approx(-2.4 / std::sqrt(2.24)));
  CHECK(data.baseline == doctest::Approx(1));
  const TableData raw =
      table_data(table, {.target = "y", .window = 2, .standardize = false, .valid = 0.2, .test = 0.2}, 1);
  CHECK((raw.x[0] == 1 && raw.y[0] == 2));
  CHECK(raw.baseline == doctest::Approx(2.24));
}

TEST_CASE("a constant becomes 0 with a deviation of 1, also one that is not exact in binary") {
  std::string text = "a,b,y,z\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("0.1,5,0.7,{}\n", i % 2 ? "0.3" : "0.30000000000000004");
  const TableData data =
      table_data(parse_csv_table("f.csv", text), {.inputs = "a,b,z", .target = "y", .at = "each", .window = 10}, 1);
  CHECK(data.spec.inputs == std::vector<ScaledColumn>{{"a", 0.1, 1}, {"b", 5, 1}, {"z", data.spec.inputs[2].mean, 1}});
  CHECK(data.spec.targets == std::vector<ScaledColumn>{{"y", 0.7, 1}});
  CHECK((data.x[0] == 0 && data.y[0] == 0 && data.baseline == 0));
}

TEST_CASE("values whose mean or deviation is not finite in single precision are refused by their column") {
  const std::string rows = "1,1\n2,3\n3,2\n4,1\n5,2\n6,3\n7,1\n8,2\n";
  for (const auto& [high, what] :
       {std::pair{"1e300", "and inf"}, {"1e308,1\n1e308,1\n1e308", "got inf"}, {"1e39", "e+38"}})
    for (const auto& [inputs, target] : {std::pair{"big", "y"}, {"y", "big"}}) {
      const std::string error = data_error(parse_csv_table("f.csv", fmt::format("big,y\n{},1\n{}", high, rows)),
                                           {.inputs = inputs, .target = target, .at = "each"});
      CAPTURE(error);
      CHECK(contains(error, "f.csv: column \"big\": mean and deviation must be finite in single precision, got "));
      CHECK(contains(error, what));
    }
}

TEST_CASE("classes: text in alphabetical order, numbers in theirs; the baseline is their entropy") {
  std::string text = "id,x,label,number\n";
  const char* labels[] = {"run", "rest", "walk", "run"};
  for (int i = 0; i < 40; ++i)
    for (int t = 0; t <= i % 3; ++t) text += fmt::format("{},{},{},{}\n", i, t, labels[i % 4], i % 2 ? 10 : 9.5);
  const Table table = parse_csv_table("f.csv", text);
  const TableData data = table_data(table, {.target = "label", .group = "id"}, 1);
  CHECK(data.spec.classes == std::vector<std::string>{"rest", "run", "walk"});
  CHECK(data.spec.input_names() == std::vector<std::string>{"x", "number"});
  CHECK((data.parts[0].size() == 28 && data.parts[1].size() == 6 && data.parts[2].size() == 6));
  CHECK((data.ragged && !data.gaps && data.spec.outputs() == 3));
  std::map<double, double> count;
  for (const Rows& w : data.parts[0]) count[data.y[static_cast<std::size_t>(w.first + w.count - 1)]] += 1.0 / 28;
  double entropy = 0;
  for (const auto& [label, share] : count) entropy -= share * std::log(share);
  CHECK(data.baseline == doctest::Approx(entropy));

  const TableData number = table_data(table, {.target = "number", .group = "id", .predict = "class"}, 1);
  CHECK(number.spec.classes == std::vector<std::string>{"9.5", "10"});
  CHECK(table_data(table, {.target = "number", .group = "id"}, 1).spec.classes.empty());
}

TEST_CASE("padding behind sequences is never read: its labels are no classes, and its inputs may be infinite") {
  Array x{.shape = {20, 3, 1}, .values = std::vector<double>(60, 0.5)},
      y{.shape = {20, 3}, .values = {}, .whole = true}, lengths{.shape = {20}, .values = {}, .whole = true};
  for (std::size_t n = 0; n < 20; ++n) {
    lengths.values.push_back(n % 2 ? 2 : 3);
    y.values.insert(y.values.end(), {0, 1, n % 2 ? -100.0 : 0.0});
    if (n % 2) x.values[3 * n + 2] = -INFINITY;
  }
  const TableData data = table_data(table_of_arrays("f.npz", {{"x", x}, {"y", y}, {"lengths", lengths}}), {}, 1);
  CHECK(data.spec.classes == std::vector<std::string>{"0", "1"});
  x.values[4] = INFINITY;
  CHECK(error_of([&] {
          table_of_arrays("f.npz", {{"x", x}, {"y", y}, {"lengths", lengths}});
        }) == "f.npz: sequence 1, step 1: column \"c0\": a finite number is expected, got inf");
}

TEST_CASE("at each step: windows side by side with a shorter one at the end") {
  const TableData data =
      table_data(counted(100), {.target = "b", .group = "g", .at = "each", .split = "time", .window = 20}, 1);
  CHECK(data.parts[0] == std::vector<Rows>{{0, 20}, {20, 14}, {50, 20}, {70, 14}});  // 34 of 50 rows a group
  CHECK((data.ragged && data.spec.each));
}

TEST_CASE("missing values: refused, the previous one of the sequence, or zero; targets are left out") {
  std::string text = "g,x,y\n";
  for (int g = 0; g < 10; ++g) text += fmt::format("{0},{1},1\n{0},,{2}\n{0},5,3\n", g, g + 1, g == 3 ? "" : "2");
  const Table table = parse_csv_table("f.csv", text);
  TableOptions o{.inputs = "x", .target = "y", .group = "g", .at = "each", .standardize = false};
  CHECK(contains(data_error(table, o), "f.csv:12: column \"y\": the target is missing. Hint: --missing previous"));
  o.missing = "previous";
  const TableData previous = table_data(table, o, 1);
  CHECK((previous.x[0] == 1 && previous.x[1] == 1 && previous.x[2] == 5 && previous.x[3] == 2 && previous.x[4] == 2));
  CHECK((previous.gaps && std::isnan(previous.y[10])));
  o.missing = "zero";
  CHECK(table_data(table, o, 1).x[1] == 0);
  o.standardize = true;  // 0 in the units of the file
  const TableData scaled = table_data(table, o, 1);
  const ScaledColumn& x = scaled.spec.inputs[0];
  CHECK(x.mean > 1);
  CHECK(scaled.x[1] == static_cast<float>(-x.mean / x.deviation));

  const Table late = parse_csv_table("f.csv", "x,y\n1,2\n3,4\n,5\n1,1\n1,1\n1,1\n1,1\n");
  CHECK(data_error(late, {.target = "y", .at = "each"}) ==
        "f.csv:4: column \"x\": the value is missing. Hint: train with --missing previous, or zero");
  const Table first = parse_csv_table("f.csv", "x,y\n,2\n3,4\n3,5\n1,1\n1,1\n1,1\n1,1\n");
  CHECK(contains(data_error(first, {.target = "y", .at = "each", .missing = "previous"}),
                 "its sequence has none before"));
}

TEST_CASE("options that do not go with the table: one line with the option's name") {
  const Table table = counted(40);
  CHECK(data_error(table, {}) == "target: the column to predict is expected; f.csv has t, a, b, g");
  CHECK(data_error(table, {.target = "bb"}) == "target: f.csv: there is no column \"bb\". Hint: b.");
  CHECK(contains(data_error(table, {.inputs = "a,a", .target = "b"}), "inputs: \"a\" is there twice"));
  CHECK(contains(data_error(table, {.inputs = "a,b", .target = "b"}), "inputs: \"b\" is the target"));
  CHECK(contains(data_error(table, {.inputs = "g", .target = "b"}),
                 "f.csv:2: column \"g\": a number is expected, got \"g0\""));
  CHECK(contains(data_error(table, {.target = "b", .group = "x"}), "group: f.csv: there is no column \"x\""));
  CHECK(contains(data_error(table, {.target = "g", .group = "g"}), "target: \"g\" is the column of --group, too"));
  CHECK(contains(data_error(table, {.target = "b"}), "window: f.csv is one sequence, with one answer at its end"));
  CHECK(contains(data_error(table, {.target = "b", .split = "group", .window = 5}),
                 "split: group: there is one sequence"));
  CHECK(contains(data_error(table, {.target = "b", .split = "row", .window = 5}), "Hint: --split time, or --stride 5"));
  CHECK(contains(data_error(table, {.target = "g", .predict = "value", .window = 5}),
                 "a number is expected, got \"g0\""));
  CHECK(
      contains(data_error(table, {.target = "b", .predict = "class", .window = 5}), "\"b\" has 40 classes in 40 rows"));
  CHECK(contains(data_error(table, {.target = "a,b", .predict = "class", .window = 5}),
                 "predict: one column is expected"));
  CHECK(contains(data_error(table, {.target = "b", .window = 5, .valid = 0.5, .test = 0.5}),
                 "below 1 with --valid-part is expected, as the rest is trained on; got 0.5 and 0.5"));
  CHECK(contains(data_error(counted(4), {.target = "b", .at = "each", .horizon = 2}),
                 "part has no example, of 1 sequence with 4 rows in all. Hint: a smaller --horizon"));
  CHECK(contains(data_error(counted(20), {.target = "b", .group = "g"}), "Hint: more sequences, or --split time"));
  CHECK(data_error(table, {.target = "b", .group = "g", .window = 21}) ==
        "window: the longest sequence of f.csv has 20 rows, got 21. Hint: --window 0 reads whole sequences");
  CHECK(contains(data_error(table, {.target = "b", .group = "g", .window = 20, .horizon = 1}),
                 "has 19 rows with a target, got 20"));
  std::string ids = "x,id\n";
  for (int r = 0; r < 40; ++r) ids += fmt::format("{},n{}\n", r, r);
  CHECK(data_error(parse_csv_table("f.csv", ids), {.target = "id", .window = 5}) ==
        "predict: class: \"id\" has 40 classes in 40 rows. Hint: --target names another column");
  const Table mixed = parse_csv_table("f.csv", "x,m\n1,2\n2,n/a\n");
  CHECK(contains(data_error(mixed, {.target = "m", .at = "each"}),
                 "f.csv:3: column \"m\": a number is expected, got \"n/a\""));
  CHECK(contains(data_error(mixed, {.target = "x", .at = "each"}),
                 "Hint: an empty field is a missing value; --inputs names the columns to read"));
  CHECK(contains(data_error(mixed, {.target = "m", .at = "each"}),
                 "Hint: an empty field is a missing value; --predict class takes all of them as names of classes"));
  CHECK(contains(data_error(parse_csv_table("f.csv", "x,m\n1,2\n2,high\n"), {.target = "x", .at = "each"}),
                 "got \"high\". Hint: --inputs names the columns to read"));
}

TEST_CASE("numbers that are written otherwise are refused, not left out or taken for classes") {
  std::string text = "n;temp;power\n";
  for (int r = 0; r < 40; ++r) text += fmt::format("{};{},5;0,{}\n", r, r % 9, 100 + r);
  const Table table = parse_csv_table("f.csv", text);
  const std::string hint = "Hint: decimals have a point, not a comma, and nothing stands between thousands; ";
  CHECK(data_error(table, {.target = "power", .at = "each"}) ==
        "f.csv:2: column \"temp\": a number is expected, got \"0,5\". " + hint + "--inputs names the columns to read");
  CHECK(data_error(table, {.inputs = "n", .target = "power", .at = "each"}) ==
        "f.csv:2: column \"power\": a number is expected, got \"0,100\". " + hint +
            "--predict class takes all of them as names of classes");
  for (const std::string field : {"\"1,000\"", "\"1,234,567.5\"", "\"1.234.567,5\"", "5%", "2.5 %", "\"-0,5\""}) {
    CAPTURE(field);
    CHECK(contains(data_error(parse_csv_table("f.csv", "x,y\n" + field + ",1\n3,2\n"), {.target = "y", .at = "each"}),
                   "column \"x\": a number is expected"));
  }
  for (const std::string field : {"a", "\"a,b\"", "01.02.2024", "12:30", "1.2.3", "%", "\",\"", "10%-20%"}) {
    CAPTURE(field);
    CHECK_FALSE(parse_csv_table("f.csv", "x,y\n" + field + ",1\n").at("x").some_numbers);
  }
}

TEST_CASE("table.json: what is saved comes back; anything else is refused in one line") {
  const TempDir dir;
  TableSpec spec{.inputs = {{"a", 0.1, 1.0 / 3}, {"b \"c\"", -1e300, 2}}, .targets = {{"y"}}, .classes = {"no", "yes"}};
  spec.each = true, spec.group = "g", spec.window = 7, spec.horizon = 2, spec.missing = "zero", spec.data_crc32 = "0a";
  spec.save(dir / "table.json");
  CHECK(TableSpec::load(dir / "table.json") == spec);
  const std::string json = spec.json();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    REQUIRE(contains(text, from));
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { TableSpec::parse("t", text); });
  };
  CHECK(changed("{", "[").starts_with("t: this is not JSON: line "));
  CHECK(changed("\"deviation\": 2.0", "\"deviation\": 1e400").starts_with("t: this is not JSON: line "));
  CHECK(changed("\"version\": 1", "\"version\": 2") == "t: version: 1 is expected, as this Reel writes it, got 2");
  CHECK(changed("reel.table", "x") == "t: format: one of reel.table is expected, got \"x\"");
  CHECK(changed("\"deviation\": 2.0", "\"deviation\": 0") == "t: inputs[1].deviation: a number above 0 is expected");
  CHECK(changed("\"mean\": 0.1", "\"mean\": \"x\"") == "t: inputs[0].mean: a finite number is expected");
  CHECK(changed("\"a\"", "\"b \\\"c\\\"\"") == "t: inputs[1].name: is there twice");
  CHECK(changed("\"yes\"", "\"no\"") == "t: classes: \"no\" is there twice");
  CHECK(changed("\"class\"", "\"value\"") == "t: classes: none are expected with values");
  CHECK(changed("\"window\": 7", "\"window\": -7") == "t: window: an integer of 0 or more is expected");
  CHECK(changed("\"window\": 7", "\"window\": 18446744073709551615") ==
        "t: window: an integer of 0 or more is expected");
  CHECK(changed("\"each\"", "\"some\"") == "t: at: one of last, each is expected, got \"some\"");
  CHECK(changed("\"missing\"", "\"massing\"") == "t: missing: is missing");
  for (std::size_t size = 0; size + 2 < json.size(); size += 5)
    CHECK(contains(error_of([&] { TableSpec::parse("t", json.substr(0, size)); }), "t: this is not JSON: line "));
  CHECK(contains(error_of([&] { TableSpec::load(dir / "none.json"); }), "cannot be read"));
}

TEST_CASE("answers: values in the targets' units, probabilities of classes; features of new rows") {
  TableSpec spec{.inputs = {{"a", 2, 4}}, .targets = {{"y", 10, 3}, {"z", -1, 0.5}}};
  CHECK(spec.answers(std::vector<double>{1, 2}) == std::vector<double>{13, 0});
  TableSpec classes{.inputs = {{"a"}}, .targets = {{"y"}}, .classes = {"n", "y", "z"}};
  const std::vector<double> p = classes.answers(std::vector<double>{1000, 1000 + std::log(2.0), 1000});
  CHECK(p[0] == doctest::Approx(0.25));
  CHECK(p[1] == doctest::Approx(0.5));
  CHECK(classes.likeliest(p) == "y");

  spec.missing = "previous";
  Features next(spec);
  float out = 0;
  const auto feed = [&](double raw) {
    next(std::span(&raw, 1), std::span(&out, 1), [] { return std::string("here"); });
    return out;
  };
  CHECK(contains(error_of([&] { feed(missing_value); }), "here: column \"a\": the value is missing"));
  CHECK(feed(10) == 2);
  CHECK(feed(missing_value) == 2);
  next.reset();
  CHECK(contains(error_of([&] { feed(missing_value); }), "its sequence has none before"));
  CHECK(contains(error_of([&] { feed(1e300); }), "too large: a number of size 1.361e+39 or less"));  // 4 times f32's
  const Table table = parse_csv_table("f.csv", "z,a\n1,6\n2,2\n");
  const std::vector<std::int64_t> order{1, 0};
  CHECK(features(spec, table, order, std::vector<Rows>{{0, 2}}) == std::vector<float>{0, 1});
}
