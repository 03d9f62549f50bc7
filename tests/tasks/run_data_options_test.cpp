// Options that do not go with the data, or that would let a model read its answers; names of files and columns as
// others write them.
#include <algorithm>

#include "tasks/data/babi.h"
#include "tasks/data/table_data.h"
#include "tasks/data/table_roles.h"
#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/little_data.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// A CSV file of 40 rows with the columns a and b, under this name.
std::string csv(const TempDir& dir, const std::string& name, const std::string& header = "a,b\n") {
  std::string text = header;
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i % 7, i % 5);
  write_atomically(dir / name, text);
  return dir / name;
}

std::string error_line(const TempDir& dir, const std::string& program, std::vector<std::string> options) {
  for (const char* option : {"--steps=1", "--hidden=2", "--quiet", "--no-report"}) options.emplace_back(option);
  options.push_back("--out=" + (dir / "run"));
  const Result r = run(program, options, dir.path);
  return r.code == 0 ? "" : r.err;
}

}  // namespace

TEST_CASE("no model reads its answers: --bidirectional where they are later inputs") {
  const TempDir dir;
  const std::string data = csv(dir, "x.csv");
  const char* const why = "--bidirectional: the answers of this task are later inputs";
  const std::vector<std::string> ahead{"--data",   data, "--target",       "b", "--horizon", "1",
                                       "--window", "5",  "--bidirectional"};
  auto each = ahead;
  each.insert(each.end(), {"--at", "each"});
  CHECK(contains(error_line(dir, "table", each), why));
  CHECK(error_line(dir, "table", ahead) == "");  // behind the last row that is read
  write_tunes(dir / "music/Nottingham.mat");
  CHECK(contains(
      error_line(dir, "music", {"--data", dir.path, "--set", "nottingham", "--batch", "1", "--bidirectional"}), why));
}

TEST_CASE("copying --reset-every: a note where no states carry over") {
  const TempDir dir;
  const auto notes = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--reset-every", "3", "--hidden", "4", "--dry-run"});
    const Result r = run("copying", options, dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  CHECK(notes({"--cell", "gru", "--bidirectional"}) ==
        "note: --reset-every has no effect: --bidirectional reads whole sequences, and no states carry over\n");
  CHECK(notes({"--cell", "r_transformer"}) ==
        "note: --reset-every has no effect: --cell r_transformer has no states that carry over\n");
  CHECK(notes({"--cell", "gru"}) == "");
  CHECK(notes({"--cell", "gru,r_transformer"}) == "");
}

TEST_CASE("columns with commas are named in quotes, as in CSV") {
  using Names = std::vector<std::string>;
  CHECK(names_in("a, b ,c") == Names{"a", "b", "c"});
  CHECK(names_in(R"("Temp, C", "a ""b"" c",d)") == Names{"Temp, C", "a \"b\" c", "d"});
  CHECK(names_in("5\" nail,b") == Names{"5\" nail", "b"});
  CHECK(names_in("a,,b,") == Names{"a", "", "b"});
  CHECK(names_in("").empty());
  const TempDir dir;
  const std::string data = csv(dir, "x.csv", "\"Temp, C\",b\n");
  CHECK(error_line(dir, "table", {"--data", data, "--target", "\"Temp, C\"", "--window", "4"}) == "");
  CHECK(contains(error_line(dir, "table", {"--data", data, "--target", "something", "--window", "4"}),
                 "it has \"Temp, C\", b"));
}

TEST_CASE("endings of files in capitals; lines that end as on Windows") {
  const TempDir dir;
  CHECK(error_line(dir, "table", {"--data", csv(dir, "X.CSV"), "--target", "b", "--window", "4"}) == "");
  const TempDir other;
  save_safetensors(other / "X.SAFETENSORS", {{{"x", Tensor::full({40, 3, 1}, 0.5)}, {"y", Tensor::full({40}, 1)}}, {}});
  CHECK(error_line(other, "table", {"--data", other / "X.SAFETENSORS"}) == "");
  std::vector<std::string> word_names, answer_names;
  WordNumbers words(word_names), answers(answer_names);
  parse_babi("qa.txt", "1 Mary went home.\r\n2 Where is Mary?\thome\r\n", false, words, answers);
  parse_babi("qa.txt",
             "\xef\xbb\xbf"
             "1 Mary went home.\n2 Where is Mary?\thome\n\r\n\n",
             false, words, answers);
  CHECK(answer_names == std::vector<std::string>{"home"});
}

TEST_CASE("hints that lead somewhere") {
  const TempDir dir;
  const std::string data = csv(dir, "x.csv");
  CHECK(contains(error_line(dir, "table", {"--data", data, "--target", "b", "--split", "row"}), "Hint: --window N"));
  CHECK(contains(error_line(dir, "table", {"--data", csv(dir, "y.csv", ",b\n"), "--target", "b"}),
                 "column 1 of the header has no name. Hint: index=False in pandas' to_csv"));
  CHECK(contains(error_line(dir, "speech", {"--folder", dir / "nowhere"}), "does not exist"));
  for (const char* corpus : {"folder", "timit"})
    CHECK(contains(error_line(dir, "speech", {"--folder", data, "--corpus", corpus}),
                   "is no folder. Hint: --folder DIR"));

  std::string text = "a,kind,empty\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{},\n", i % 7, i % 3 == 0 ? "NA" : i % 3 == 1 ? "nan" : "up");
  write_atomically(dir / "kinds.csv", text);
  const std::vector<std::string> kinds{"--data", dir / "kinds.csv", "--window", "4", "--missing", "zero", "--target"};
  const auto with = [&](const std::string& target) {
    auto words = kinds;
    words.push_back(target);
    return words;
  };
  CHECK(contains(error_line(dir, "table", with("kind,a")), "Hint: \"kind\" is text, so it is the only --target"));
  CHECK(contains(error_line(dir, "table", with("empty")), "column \"empty\": the target is missing in all rows\n"));
  std::vector<std::string> words = with("kind");
  words.emplace_back("--dry-run");
  const Result noted = run("table", words, dir.path);
  CHECK_MESSAGE(
      contains(noted.err, "note: of the classes, \"NA\", \"nan\" look like a missing value, which is an empty field\n"),
      noted.err);
}

TEST_CASE("a run of values has no accuracy to compare") {
  const TempDir dir;
  REQUIRE(error_line(dir, "table", {"--data", csv(dir, "x.csv"), "--target", "b", "--window", "4"}) == "");
  const Result r = run("compare", {dir / "run", "--metric", "accuracy", "--out", dir / "c.svg"}, dir.path);
  CHECK(r.code == 1);
  CHECK_MESSAGE(contains(r.err, "there is nothing to draw: " + (dir / "run") + ": its metrics.csv has no accuracy"),
                r.err);
}

TEST_CASE("split.csv says of which part each answer was") {
  const TempDir dir;
  REQUIRE(error_line(dir, "table", {"--data", csv(dir, "x.csv"), "--target", "b", "--window", "4"}) == "");
  const std::string split = read_file(dir / "run/split.csv");
  CHECK(split.starts_with("line,part\n5,training\n6,training\n"));
  CHECK(split.ends_with("\n29,training\n33,validation\n34,validation\n35,validation\n39,test\n40,test\n41,test\n"));
  const Table table = parse_csv_table("x.csv", read_file(dir / "x.csv"));
  const std::string each =
      table_data(table, {.target = "b", .at = "each", .window = 4, .stride = 2}, 1).split_csv();  // windows overlap
  CHECK(each.starts_with("line,part\n2,training\n3,training\n4,training\n"));
  CHECK(std::count(each.begin(), each.end(), '\n') == 41);
}
