// mechanism: how often the solution of copying works agrees with what NumPy counted; adding is exact; bad lists.
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>
#include <tuple>

#include "tasks/io/spawn.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/installed.h"
#include "tests/support/sweeps.h"
#include "tests/support/table.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::vector<double>> rows_of(const std::string& path, const std::string& header) {
  std::istringstream in(read_file(path));
  std::string line;
  REQUIRE(std::getline(in, line));
  CHECK(line == header);
  std::vector<std::vector<double>> rows;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (double v = 0; fields >> v;) rows.back().push_back(v);
  }
  return rows;
}

}  // namespace

TEST_CASE("mechanism: the share that is right, against NumPy's; fewer symbols and shorter sequences work more often") {
  const TempDir dir;
  const std::string out = dir / "table.tsv";
  const Result r = run("mechanism",
                       {"--symbols", "2,8", "--lengths", "5,10", "--planes", "64", "--draws", "400", "--out", out,
                        "--picture", dir / "map.svg"},
                       dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "K \\ S      5     10\n"));
  if (has_gnuplot()) CHECK(std::filesystem::exists(dir / "map.png"));
  const auto rows = rows_of(out, "K\tS\tplanes\tT\tright\tdraws");
  REQUIRE(rows.size() == 4);
  double golden = 0;
  for (const Row& row : table("henaff.tsv"))
    if (row.at("K") == "8" && row.at("S") == "10" && row.at("d") == "64") golden = std::stod(row.at("rate"));
  REQUIRE(golden > 0.5);
  CHECK(rows[3][0] == 8);
  CHECK(rows[3][1] == 10);
  CHECK(std::abs(rows[3][4] / 400 - golden) < 4 * std::sqrt(golden * (1 - golden) / 400));
  CHECK(rows[0][4] > rows[3][4]);
  CHECK(rows[2][4] > rows[3][4]);
}

TEST_CASE("mechanism: the gambler's ruin of SRNN's gradients, T / (1 + T)") {
  const TempDir dir;
  const std::string out = dir / "table.tsv";
  const Result r =
      run("mechanism", {"--solution", "ruin", "--lengths", "1,3,10", "--draws", "4000", "--out", out}, dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "expected\n"));
  const auto rows = rows_of(out, "T\truined\tdraws");
  REQUIRE(rows.size() == 3);
  for (const auto& row : rows) {
    const double p = row[0] / (1 + row[0]);
    CHECK(std::abs(row[1] / 4000 - p) < 4 * std::sqrt(p * (1 - p) / 4000));
  }
  CHECK(run("mechanism", {"--solution", "ruin", "--cell", "lstm"}, dir.path).code == 2);
  CHECK(contains(run("mechanism", {"--solution", "ruin", "--lengths", "100000"}, dir.path).err, "--lengths"));
}

TEST_CASE("mechanism: adding without error in f64; lists that are none") {
  const TempDir dir;
  const std::string out = dir / "table.tsv";
  REQUIRE(run("mechanism", {"--solution", "adding", "--lengths", "10,300", "--dtype", "f64", "--out", out}, dir.path)
              .code == 0);
  for (const auto& row : rows_of(out, "T\tlargest_error\tdraws")) CHECK(row[1] < 1e-12);
  REQUIRE(run("mechanism",
              {"--solution", "adding", "--cell", "lstm", "--lengths", "10,300", "--dtype", "f64", "--out", out},
              dir.path)
              .code == 0);
  for (const auto& row : rows_of(out, "T\tlargest_error\tdraws")) CHECK((row[1] > 0 && row[1] < 3.4e-6));
  CHECK(run("mechanism", {"--cell", "lstm"}, dir.path).code == 2);
  for (const std::string bad : {"", "8,", "8,x", "0", "-1", "1.5"}) {
    const Result r = run("mechanism", {"--symbols", bad}, dir.path);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "--symbols: "));
  }
  CHECK(run("mechanism", {"--solution", "adding", "--picture", dir / "map.svg"}, dir.path).code == 2);
  CHECK(run("mechanism", {"--solution", "adding", "--lengths", "1"}, dir.path).code == 2);
  CHECK(contains(run("mechanism", {"--help"}, dir.path).out, "--planes"));
}

TEST_CASE("mechanism: options of copying that the solution does not read are noted") {
  const TempDir dir;
  const auto notes = [&](const std::string& solution, const std::string& options) {
    const Result r = run("mechanism", words("--dry-run --solution " + solution + options), dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  const auto note = [](const char* option) {
    return fmt::format("note: --{} has no effect: it is for copying, and --solution is adding\n", option);
  };
  const std::string all = " --planes 5 --symbols 7 --delay 3";
  CHECK(notes("adding", all) == note("symbols") + note("delay") + note("planes"));
  CHECK(notes("ruin", " --delay 3") == "note: --delay has no effect: it is for copying, and --solution is ruin\n");
  CHECK((notes("copying", all) + notes("adding", " --lengths 7") + notes("ruin", "")).empty());
}

TEST_CASE("mechanism: a file that cannot be written is found before any draw") {
  const TempDir dir;
  for (const auto& [option, name, why] :
       {std::tuple{"--out", "none/table.tsv", "No such file"}, std::tuple{"--picture", "none/map.svg", "No such file"},
        std::tuple{"--picture", "map.txt", "ends with .svg"}, std::tuple{"--out", "/", "Is a directory"}}) {
    const std::string path = name[0] == '/' ? name : dir / name;
    const Result r = run("mechanism", {option, path}, dir.path);
    CHECK(r.code != 0);
    CHECK(r.out.empty());
    CHECK_MESSAGE(contains(r.err, why), r.err);
  }
  CHECK(contains(run("mechanism", {"--solution", "adding", "--lengths", "7", "--dry-run"}, dir.path).out,
                 ": 1 setting,"));
}

TEST_CASE("mechanism: ends when the program that started it is killed") {
  const TempDir dir;
  const pid_t owner = fork();
  if (owner == 0) {
    run_logged({REEL_BIN_DIR "/mechanism", "--draws", "1000000", "--delay", "5", "--out", dir / "table.tsv"},
               dir / "out", dir / "err", {});
    _exit(0);
  }
  const auto second = std::chrono::seconds(1);
  std::this_thread::sleep_for(second);
  kill(owner, SIGKILL);
  int status = 0;
  waitpid(owner, &status, 0);
  CHECK(WIFSIGNALED(status));  // mechanism was still at it
  std::this_thread::sleep_for(second);
  CHECK(kill_processes_of(dir.path) == 0);
}
