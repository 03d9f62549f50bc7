// Pages of runs: what goes into them. run_report_test looks at them in a browser.
#include "tasks/page/page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tasks/io/event_file.h"
#include "tasks/page/groups.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::page;
using namespace reel::test;

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
using Row = RunFolder::Row;
using Rows = std::vector<Row>;

ReadRun run_of(const ComparedRun& run, std::vector<std::pair<std::string, std::string>> options, Rows rows) {
  RunData data{std::move(options), nlohmann::ordered_json::object(), std::move(rows)};
  auto numbers = numbers_of(data);
  return {&run, std::move(data), "", std::move(numbers)};
}

}  // namespace

TEST_CASE("nothing that a page is given gets out of its text") {
  const std::string hostile = "</script><script>alert(1)</script>&\"'|\xFF";
  const std::string page = html(hostile, {{"title", hostile}, {"number", none}});
  CHECK(contains(page, "<title>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'|"));
  CHECK(contains(page,
                 "{\"title\":\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>&\\\"'|\xEF\xBF\xBD\","
                 "\"number\":null}</script>"));
  CHECK(!contains(page, "<script>alert"));
  CHECK(!contains(page, "src=\""));
  CHECK(!contains(page, "@import"));
}

TEST_CASE("bytes in an address") {  // RFC 4648, section 10
  for (const auto& [bytes, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}})
    CHECK(data_uri("text/plain", bytes) == std::string("data:text/plain;base64,") + text);
  CHECK(data_uri("image/png", "\xFB\xFF\xFE") == "data:image/png;base64,+//+");
  CHECK(url_path("runs/a b#1?<\">%") == "runs/a%20b%231%3F%3C%22%3E%25");
}

TEST_CASE("numbers in six digits") {
  CHECK(number(1.0 / 3).dump() == "0.333333");
  CHECK(number(1.5e-12).dump() == "1.5e-12");
  for (const double x : {none, inf, -inf}) CHECK(number(x).is_null());
}

TEST_CASE("thinned rows have every peak and the last row") {
  Rows rows;
  for (std::int64_t i = 0; i < 100'000; ++i)
    rows.push_back({.step = i + 1, .train_loss = 1, .valid_loss = 1, .accuracy = none, .grad_norm = 1});
  rows[12'345].train_loss = 50;
  rows[67'890].valid_loss = 0.01;
  rows[67'895].grad_norm = 99;
  rows[5].accuracy = 0.5;
  const Rows few = thinned(rows, 1000);
  CHECK(few.size() <= 1000);
  CHECK(few.size() >= 100);
  CHECK(few.back().step == 100'000);
  CHECK(std::is_sorted(few.begin(), few.end(), [](const Row& a, const Row& b) { return a.step < b.step; }));
  for (const std::int64_t step : {12'346, 67'891, 67'896, 6})
    CHECK(std::any_of(few.begin(), few.end(), [&](const Row& row) { return row.step == step; }));
  CHECK(thinned(few, 1000).size() == few.size());
}

TEST_CASE("the numbers that a run has come to") {
  const RunData data{{},
                     {{"test", {{"step", 20}, {"accuracy", 0.9}, {"name", "x"}}}},
                     {{.step = 10, .train_loss = 2, .valid_loss = 1, .accuracy = none, .grad_norm = inf},
                      {.step = 20, .train_loss = 1, .valid_loss = 0.5, .accuracy = none, .grad_norm = 3},
                      {.step = 30, .train_loss = none, .valid_loss = 0.75, .accuracy = none, .grad_norm = inf}}};
  CHECK(numbers_of(data) ==
        std::map<std::string, double>{{"best valid_loss", 0.5}, {"test.accuracy", 0.9}, {"valid_loss", 0.75}});
}

TEST_CASE("runs that differ in their seed are a group, with mean and range at the steps that all have") {
  const ComparedRun any{"folder", "name"};
  const auto options = [](const char* cell, const char* lr, const char* seed) {
    std::vector<std::pair<std::string, std::string>> out{{"cell", cell}, {"lr", lr}, {"seed", seed}, {"batch", "8"}};
    if (std::string(cell) == "lstm") out.emplace_back("lstm.biases", "1");
    return out;
  };
  const auto row = [](std::int64_t step, double seconds, double loss, double accuracy) {
    return Row{step, step * 8, seconds, loss, loss / 2, accuracy, 1};
  };
  const std::vector<ReadRun> runs{
      run_of(any, options("gru", "0.1", "1"), {row(10, 1, 6, 0.5), row(20, 2, 4, none), row(30, 3, 2, 1)}),
      run_of(any, options("gru", "0.1", "2"), {row(10, 3, 2, 0.25), row(20, 4, 1, 1)}),
      run_of(any, options("gru", "0.2", "1"), {row(10, 1, 0.5, 1)}),
      run_of(any, options("gru", "0.1", "3"), {}),  // has not begun
      run_of(any, options("lstm", "0.1", "1"), {row(10, 1, 1, 1)})};
  const Groups out = group(runs, {});
  CHECK(out.differing == std::vector<std::string>{"cell", "lr"});
  REQUIRE(out.groups.size() == 3);
  CHECK(out.groups[0].name == "gru, lr 0.2");
  CHECK(out.groups[1].name == "lstm, lr 0.1");
  const Group& seeds = out.groups[2];
  CHECK(seeds.name == "gru, lr 0.1");
  CHECK(seeds.runs.size() == 3);
  CHECK(seeds.numbers("valid_loss") == std::vector<double>{1, 0.5});
  CHECK(mean(seeds.numbers("valid_loss")) == 0.75);
  CHECK(deviation(seeds.numbers("valid_loss")) == doctest::Approx(0.3535533905932738));
  REQUIRE(seeds.rows.mean.size() == 2);  // the third step is of one seed alone
  CHECK(seeds.rows.mean[0] == Row{10, 80, 2, 4, 2, 0.375, 1});
  CHECK(seeds.rows.low[0] == Row{10, 80, 1, 2, 1, 0.25, 1});
  CHECK(seeds.rows.high[0] == Row{10, 80, 3, 6, 3, 0.5, 1});
  CHECK(std::isnan(seeds.rows.mean[1].accuracy));
  const Groups other_way = group(runs, {.metric = "valid_loss", .higher_is_better = true});
  CHECK(other_way.groups[0].name == "lstm, lr 0.1");
  CHECK(other_way.groups[2].name == "gru, lr 0.1");  // its runs were stopped at different updates
  CHECK(std::isnan(mean({})));
  CHECK(std::isnan(deviation({1})));
}

TEST_CASE("options that change nothing in what is learned, and a task that is not known yet, make no groups") {
  const ComparedRun any{"folder", "name"};
  std::vector<ReadRun> runs{run_of(any, {{"picture", "states"}, {"seed", "1"}}, {}), run_of(any, {{"seed", "2"}}, {}),
                            run_of(any, {{"picture", "none"}, {"seed", "3"}}, {})};
  runs[0].data.record["task"] = "copying";
  const Groups out = group(runs, {});
  CHECK(out.differing.empty());
  CHECK(out.groups.size() == 1);
  runs = {run_of(any, {{"threads", "0"}, {"rank-patience", "9.0"}, {"seed", "1"}}, {}),
          run_of(any, {{"device", "cuda"}, {"no-test", "true"}, {"solved-below", "0.3"}, {"seed", "2"}}, {}),
          run_of(any, {{"threads", "1"}, {"rank-patience", "3.0"}, {"solved-below", "0.1"}, {"seed", "1"}}, {})};
  runs[0].seed = runs[2].seed = "1";
  runs[2].numbers["test.accuracy"] = 0.5;
  const Groups one = group(runs, {});
  CHECK(one.differing.empty());
  REQUIRE(one.groups.size() == 1);
  REQUIRE(one.groups[0].runs.size() == 2);  // the first and the third are the same run; the third has been tested
  CHECK(one.groups[0].runs[0] == &runs[2]);
  CHECK(group(runs, {.metric = "solved_at.step"}).groups.size() == 3);  // of other shares
}

TEST_CASE("groups that a caller names") {
  const ComparedRun a{"a", "a", "first"}, b{"b", "b", "second"};
  const std::vector<ReadRun> runs{run_of(a, {{"lr", "1"}}, {}), run_of(b, {{"lr", "1"}}, {})};
  const Groups out = group(runs, {});
  REQUIRE(out.groups.size() == 2);
  CHECK(out.groups[1].name == "second");
}

TEST_CASE("pictures of a folder: the smaller file, and a name where there is no more room") {
  const TempDir dir;
  write_atomically(dir / "a.svg", "<svg/>");
  write_atomically(dir / "b.svg", std::string(100, 'x'));
  write_atomically(dir / "b.png", "png");
  write_atomically(dir / "c d.svg", std::string(100, 'x'));
  write_atomically(dir / "curve.svg", "<svg/>");
  const auto found = pictures(dir.path, 50);
  CHECK(found == nlohmann::ordered_json{{{"name", "a"}, {"source", data_uri("image/svg+xml", "<svg/>")}},
                                        {{"name", "b"}, {"source", data_uri("image/png", "png")}},
                                        {{"name", "c d"}, {"source", "./c%20d.svg"}}});
  write_atomically(dir / "c d.svg", "<svg/>");
  CHECK(pictures(dir.path, 10)[2]["source"] == "./c%20d.svg");  // 6 bytes, and 9 of 10 are taken
  CHECK(pictures(dir.path, 15)[2]["source"] == data_uri("image/svg+xml", "<svg/>"));
  CHECK(pictures(dir / "nowhere", 15).empty());
  CHECK(contains(error_of([&] { pictures(dir / "a.svg", 15); }), "a.svg] cannot be read: Not a directory"));
}

namespace {

/// What a page that compares these runs is given.
nlohmann::json compared(const TempDir& dir, const Comparison& with) {
  Comparison comparison = with;
  comparison.runs = runs_below(dir / "runs");
  CHECK(write_comparison(comparison, dir / "page.html").unreadable.empty());
  const std::string html = read_file(dir / "page.html");
  const std::string mark = "id=\"data\">";
  const std::size_t first = html.find(mark) + mark.size();
  return nlohmann::json::parse(html.substr(first, html.find("</script>", first) - first));
}

void write_run(const std::string& folder, const std::string& config, const std::string& rows,
               const std::string& record) {
  std::filesystem::create_directories(folder);
  write_atomically(folder + "/config.toml", config);
  write_atomically(folder + "/metrics.csv", "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n" + rows);
  write_atomically(folder + "/run.json", record);
}

}  // namespace

TEST_CASE("the best of each column, in the direction of its metric; a baseline that all share") {
  const TempDir dir;
  write_run(dir / "runs/a", "lr = 0.1\n", "1,8,1,3,2,0.5,1\n", R"({"task": "t", "baseline": 7})");
  write_run(dir / "runs/b", "lr = 0.2\n", "1,8,1,3,1,0.25,1\n", R"({"task": "t", "baseline": 7})");
  const auto page = compared(dir, {});
  CHECK(page["baseline"] == 7);
  const auto& table = page["tables"][1];
  const auto column = [&](const std::string& name) {
    std::size_t i = 0;
    while (table["columns"].at(i)[0] != name) ++i;
    return i;
  };
  for (const auto& row : table["rows"]) {
    CAPTURE(row["cells"][0]);
    const bool a = row["cells"][0] == "a";
    CHECK(row["best"] == !a);
    const std::vector<std::size_t> top = row["top"];
    CHECK(std::ranges::count(top, column("accuracy")) == (a ? 1 : 0));
    CHECK(std::ranges::count(top, column("valid_loss")) == (a ? 0 : 1));
  }
  write_run(dir / "runs/c", "lr = 0.3\n", "1,8,1,3,4,0.1,1\n", R"({"task": "t", "baseline": 8})");
  CHECK(compared(dir, {})["baseline"].is_null());
}

namespace {

/// A line of metrics.csv.
std::string line(int step, double loss) { return fmt::format("{},8,1,3,{},,1\n", step, loss); }

/// The cells of the table of groups by the names of their columns, without the time, and "*" behind the best one.
std::string groups_of(const nlohmann::json& page, const std::string& metric) {
  const auto& table = page["tables"][0];
  std::string out;
  for (const auto& row : table["rows"]) {
    out += row["cells"][0];
    for (std::size_t c = 0; c < table["columns"].size(); ++c)
      for (const std::string& name : {metric, std::string("seeds"), std::string("updates")})
        if (table["columns"][c][0] == name) out += " " + row["cells"][c].dump();
    out += row["best"] == true ? " *\n" : "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("runs that diverged are left out of their group's numbers and curves; whole groups come first") {
  const TempDir dir;
  const auto write = [&](const std::string& name, double lr, int seed, double loss, bool diverged) {
    write_run(dir / ("runs/" + name), fmt::format("lr = {}\nseed = {}\n", lr, seed),
              line(10, loss) + (diverged ? "" : line(20, loss)),
              diverged ? R"({"diverged_at_step": 13})" : R"({"finished": true})");
  };
  write("a1", 0.1, 1, 1, false);
  write("a2", 0.1, 2, 3, false);
  write("a3", 0.1, 3, 90, true);
  write("b1", 0.2, 1, 4, false);
  write("c1", 0.3, 1, 0.5, true);
  const auto page = compared(dir, {});
  CHECK(groups_of(page, "valid_loss") == "lr 0.2 4.0 1 20 *\nlr 0.1 2.0 \"2 of 3\" 20\nlr 0.3 null \"0 of 1\" 10\n");
  CHECK(page["groups"][1]["seeds"] == 2);
  CHECK(page["groups"][1]["curve"]["high"]["valid_loss"] == std::vector<double>{3, 3});
  CHECK(page["groups"][2]["curve"]["mean"]["step"] == std::vector<int>{10});  // where it went wrong is seen
  for (const auto& row : page["tables"][1]["rows"]) CHECK((row["best"] == true) == (row["cells"][0] == "a1"));
}

TEST_CASE("a group with runs of several lengths says so and is not the best, unless all are like it") {
  const TempDir dir;
  const auto write = [&](double lr, int seed, int steps, double loss, bool finished) {
    write_run(dir / fmt::format("runs/{}s{}", lr, seed), fmt::format("lr = {}\nseed = {}\n", lr, seed),
              line(steps, loss), finished ? R"({"finished": true})" : "{}");
  };
  write(0.1, 1, 400, 1, false);
  write(0.1, 2, 3000, 2, true);
  CHECK(groups_of(compared(dir, {}), "valid_loss") == "all runs 1.5 2 \"400 to 3000\" *\n");
  write(0.2, 1, 3000, 4, true);
  write(0.2, 2, 3000, 6, true);
  write(0.3, 1, 700, 1, true);  // stopped by --stop-below
  write(0.3, 2, 900, 2, true);
  CHECK(groups_of(compared(dir, {}), "valid_loss") ==
        "lr 0.3 1.5 2 \"700 to 900\" *\nlr 0.2 5.0 2 3000\nlr 0.1 1.5 2 \"400 to 3000\"\n");
}

TEST_CASE("of two runs with the same options and seed the longer one counts, and a line names the other") {
  const TempDir dir;
  write_run(dir / "runs/a", "lr = 0.1\nseed = 1\npicture = \"states\"\n", line(10, 4), "{}");
  write_run(dir / "runs/b", "lr = 0.1\nseed = 1\n", line(10, 4) + line(20, 2), "{}");
  write_run(dir / "runs/c", "lr = 0.1\nseed = 2\n", line(20, 6), "{}");
  write_run(dir / "runs/d", "lr = 0.1\nseed = 2\n", line(20, 6), "{}");
  const auto page = compared(dir, {});
  CHECK(groups_of(page, "valid_loss") == "all runs 4.0 2 20 *\n");
  CHECK(page["tables"][1]["rows"].size() == 2);
  CHECK(page["problems"] ==
        std::vector<std::string>{"left out: a: has the options and the seed of b, which alone counts",
                                 "left out: d: has the options and the seed of c, which alone counts"});
  CHECK(page["facts"][0].get<std::string>().starts_with("2 runs in 1 group;"));
}

TEST_CASE("with halving the best is among the groups with the most updates") {
  const TempDir dir;
  const auto write = [&](double lr, int steps, double loss) {
    write_run(dir / fmt::format("runs/{}", lr), fmt::format("lr = {}\nsteps = {}\nseed = 1\n", lr, steps),
              line(30, loss) + (steps > 30 ? line(steps, loss) : ""), R"({"finished": true})");
  };
  write(0.1, 30, 1);
  write(0.2, 90, 3);
  write(0.3, 90, 2);
  CHECK(groups_of(compared(dir, {.most_updates_first = true}), "valid_loss") ==
        "lr 0.3, steps 90 2.0 1 90 *\nlr 0.2, steps 90 3.0 1 90\nlr 0.1, steps 30 1.0 1 30\n");
  CHECK(groups_of(compared(dir, {}), "valid_loss").starts_with("lr 0.1, steps 30 1.0 1 30 *\n"));
}

TEST_CASE("any number of run.json is a metric; what was never solved comes last") {
  const TempDir dir;
  const auto write = [&](const std::string& lr, int seed, const std::string& best, const std::string& solved) {
    write_run(dir / ("runs/" + lr + "s" + std::to_string(seed)), fmt::format("lr = {}\nseed = {}\n", lr, seed),
              line(10, 1),
              R"({"finished": true, "best": {"valid_loss": )" + best + R"(}, "solved_at": {"step": )" + solved + "}}");
  };
  write("0.1", 1, "3", "5");
  write("0.1", 2, "5", "null");
  write("0.2", 1, "2", "null");
  write("0.3", 1, "1", "9");
  CHECK(groups_of(compared(dir, {.metric = "best.valid_loss"}), "best.valid_loss") ==
        "lr 0.3 1.0 1 10 *\nlr 0.2 2.0 1 10\nlr 0.1 4.0 2 10\n");
  CHECK(groups_of(compared(dir, {.metric = "solved_at.step"}), "solved_at.step") ==
        "lr 0.3 9.0 1 10 *\nlr 0.1 \"1 of 2 never\" 2 10\nlr 0.2 \"never\" 1 10\n");
  for (const int seed : {1, 2, 3}) write("0.05", seed, "1", seed == 3 ? "2" : "null");
  CHECK(groups_of(compared(dir, {.metric = "solved_at.step"}), "solved_at.step")
            .ends_with("lr 0.1 \"1 of 2 never\" 2 10\nlr 0.2 \"never\" 1 10\nlr 0.05 \"2 of 3 never\" 3 10\n"));
}

TEST_CASE("the range over seeds has the steps of the thinned mean") {
  const TempDir dir;
  for (const int seed : {1, 2}) {
    std::string rows;
    for (int i = 1; i <= 9000; ++i) rows += fmt::format("{},{},1,{},{},,\n", i, i, seed, seed + i % 13);
    write_run(dir / fmt::format("runs/{}", seed), fmt::format("seed = {}\n", seed), rows, "{}");
  }
  const auto page = compared(dir, {});
  const auto& curve = page["groups"][0]["curve"];
  CHECK(curve["mean"]["step"].size() < 9000);
  for (const char* band : {"low", "high"}) CHECK(curve[band]["step"] == curve["mean"]["step"]);
}

TEST_CASE("events: the checksum, histograms, whole records after a failure") {
  CHECK(crc32c("123456789") == 0xE3069283u);              // the check value of CRC-32C
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);    // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43u);  // the same
  const Histogram h = histogram(std::vector<double>{0, 3, 30, none, 15, inf});
  CHECK(h.count == 4);
  CHECK(h.sum == 48);
  CHECK(h.squares == 1134);
  CHECK(h.limits.size() == 30);
  CHECK(h.limits[2] == 3);
  CHECK(h.counts[0] == 1);
  CHECK(h.counts[2] == 1);
  CHECK(h.counts[14] == 1);
  CHECK(h.counts[29] == 1);
  CHECK(histogram(std::vector<double>{2, 2}).counts == std::vector<double>{2});
  CHECK(histogram(std::vector<double>{none}).limits.empty());
  CHECK(image_value("x", "no picture").empty());

  const TempDir dir;
  write_atomically(dir / "file", "");
  EventFile nowhere(dir / "file", 0);
  CHECK(contains(error_of([&] { nowhere.add(1, {scalar_value("a", 1)}); }), "cannot be made"));
  EventFile file(dir / "events", 0);
  file.add(1, {scalar_value("a", 1)});
  const std::string path = std::filesystem::directory_iterator(dir / "events")->path();
  const std::string before = read_file(path);
  CHECK(before.substr(0, 8) == std::string("\x1A\0\0\0\0\0\0\0", 8));     // the length of the first record
  CHECK(before.size() == (12 + 26 + 4) + (12 + 15 + 4) + (12 + 23 + 4));  // version, start, value
  file.add(2, {scalar_value("a", 1)});
  CHECK(read_file(path).size() > before.size());
  CHECK(read_file(path).starts_with(before));
}
