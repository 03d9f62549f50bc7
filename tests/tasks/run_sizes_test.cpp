// Programs with absurd values of every integer option that --help-all lists, and with too little memory: they end at
// once, well or in one clear line.
#include <sstream>

#include "cells/cell.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

#ifdef REEL_ADDRESS_SANITIZER
constexpr bool sanitized = true;  // needs address space of its own, and more time
#else
constexpr bool sanitized = false;
#endif

constexpr rlim_t GB = 1000 * 1000 * 1000;

Limits limits(rlim_t bytes = 3 * GB) {
  Limits all{{RLIMIT_CPU, sanitized ? 60 : 20}};  // half of it to touch 3 GB, on a slow virtual machine
  if (!sanitized) all.emplace_back(RLIMIT_AS, bytes);
  return all;
}

/// The names of a program's integer options: those with "N" behind them.
std::vector<std::string> integer_options(const std::string& program, const std::string& folder) {
  const Result help = run(program, {"--help-all"}, folder);
  REQUIRE(help.code == 0);
  std::vector<std::string> names;
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, metavar;
    words >> name >> metavar;
    if (line.starts_with("  --") && metavar == "N") names.push_back(name.substr(2));
  }
  return names;
}

/// Exit code 0, or 1 or 2 with one line of the program's own; others are warnings.
void ends_well(const std::string& program, const std::vector<std::string>& arguments, const Result& r) {
  std::string line = program;
  for (const std::string& a : arguments) line += " " + a;
  CAPTURE(line);
  CAPTURE(r.err);
  CHECK((r.code == 0 || r.code == 1 || r.code == 2));
  int own = 0;
  std::istringstream lines(r.err);
  for (std::string text; std::getline(lines, text);) own += text.starts_with(program + ": ") && text.size() < 400;
  CHECK(own == (r.code == 0 ? 0 : 1));
}

const std::vector<std::string> absurd{"2147483648", "4611686018427387904", "9223372036854775807"};

/// Ends well with each absurd value of each integer option; returns how many ended with code 2.
int try_all(const std::string& program, const std::vector<std::string>& others) {
  const TempDir dir;
  const std::vector<std::string> options = integer_options(program, dir.path);
  CHECK_MESSAGE(!options.empty(), program);
  int refused = 0;
  for (const std::string& option : options) {
    std::vector<std::string> values = absurd;
    std::vector<std::string> with = others;
    if (const std::size_t dot = option.find('.'); dot != std::string::npos) {
      if (program != "copying") continue;  // cells are the same everywhere
      values = {absurd.back()};
      with.insert(with.end(), {"--cell", option.substr(0, dot)});
    }
    for (const std::string& value : values) {
      std::vector<std::string> arguments = with;
      arguments.insert(arguments.end(), {"--" + option, value});
      if (option == "steps") arguments.emplace_back("--dry-run");  // 2^31 of them are allowed, and take their time
      const Result r = run(program, arguments, dir.path, {}, limits());
      ends_well(program, arguments, r);
      refused += r.code == 2;
      if (option == "seed") CHECK((r.code == 0 || r.code == 1));  // all 64 bits are seeds; 1: there are no data
    }
  }
  return refused;
}

/// Options of a run of a second.
std::vector<std::string> tiny(const std::string& out) {
  return {"--steps", "1",         "--hidden", "6",       "--batch", "2", "--valid-size",
          "2",       "--threads", "2",        "--quiet", "--out",   out};
}

}  // namespace

TEST_CASE("every integer option of tasks refuses absurd values, or copes") {
  for (const std::string program : {"copying", "adding", "denoising"}) {
    const TempDir dir;
    std::vector<std::string> arguments = tiny(dir / "run");
    arguments.insert(arguments.end(), {program == "adding" ? "--length" : "--delay", "20"});
    CHECK(try_all(program, arguments) > 20);
  }
}

TEST_CASE("every integer option of tasks on data, which are not there") {
  const TempDir dir;
  for (const std::string program : {"mnist", "charlm", "music", "babi", "speech", "paths"}) {
    std::vector<std::string> arguments{"--data", dir.path, "--dry-run"};
    if (program == "paths") arguments = {"--dry-run"};
    CHECK(try_all(program, arguments) > 20);
  }
}

TEST_CASE("every integer option of table, on a small one") {
  const TempDir dir;
  std::string rows = "a,y\n";
  for (int r = 0; r < 100; ++r) rows += fmt::format("{},{}\n", r % 7, r % 5);
  write_atomically(dir / "data.csv", rows);
  std::vector<std::string> arguments = tiny(dir / "run");
  arguments.insert(arguments.end(), {"--data", dir / "data.csv", "--target", "y", "--window", "5"});
  CHECK(try_all("table", arguments) > 20);
}

TEST_CASE("every integer option of the other programs") {
  const TempDir dir;
  CHECK(try_all("apply", {"--describe"}) >= 6);
  CHECK(try_all("mechanism", {"--dry-run"}) >= 6);
  CHECK(try_all("reproduce", {"--list"}) >= 3);
  CHECK(try_all("bench_device", {}) == 15);
  CHECK(try_all("bench_ops", {}) == 6);
  CHECK(try_all("bench_steps", {}) >= 12);
  CHECK(try_all("bench_bandwidth", {}) == 3);
}

TEST_CASE("values out of config files and lists are held to the same bounds") {
  const TempDir dir;
  write_atomically(dir / "hidden.toml", "hidden = 9223372036854775807\n");
  const auto says = [&](const std::string& program, const std::vector<std::string>& arguments,
                        const std::string& text) {
    const Result r = run(program, arguments, dir.path, {}, limits());
    ends_well(program, arguments, r);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, text), r.err);
  };
  says("copying", {"--config", dir / "hidden.toml"},
       "hidden: an integer from 1 to 1000000 expected, got 9223372036854775807");
  says("copying", {"--hidden", "4611686018427387904"}, "--hidden: an integer from 1 to 1000000 expected");
  says("copying", {"--cell", "srnn", "--srnn.width", "4611686018427387904"}, "--srnn.width: ");
  says("mechanism", {"--lengths", "2,9223372036854775807"}, "--lengths: ");
  says("bench_cells", {"--shapes", "9223372036854775807x2x2"}, "--shapes: ");
  says("bench_cells", {"--threads", "1,4611686018427387904"}, "--threads: ");
}

TEST_CASE("the largest values that are allowed say how much memory they would take") {
  const TempDir dir;
  const auto says = [&](const std::string& program, std::vector<std::string> more, const std::string& text) {
    std::vector<std::string> arguments = tiny(dir / "run");
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result r = run(program, arguments, dir.path, {}, limits());
    ends_well(program, arguments, r);
    CHECK(r.code == 1);
    CHECK_MESSAGE(contains(r.err, text), r.err);
    CHECK(contains(r.err, "Hint: "));
  };
  says("copying", {"--cell", "lstm", "--hidden", "1000000"},
       "[model] 8e+12 parameters and their gradients need 64 TB, ");
  says("copying", {"--cell", "lstm", "--hidden", "4000", "--layers", "1000"},
       "Hint: fewer layers or a smaller hidden size");
  says("copying", {"--delay", "100000000", "--batch", "1000000"},
       "[copying] 1000000 sequences of 100000020 steps need 1.6 PB");
  says("adding", {"--length", "100000000", "--batch", "1000000"},
       "[adding] 1000000 sequences of 100000000 steps need ");
  says("denoising", {"--delay", "100000000", "--batch", "1000000"},
       "[denoising] 1000000 sequences of 100000020 steps ");
  // The states of a step, which are known only once it runs.
  says("copying", {"--delay", "100000", "--batch", "1000", "--hidden", "100000"},
       ". Hint: a smaller --batch; --accumulate N, which cuts it into parts; or --checkpoint-every N, which keeps ");
}

TEST_CASE("with less address space than is needed, a run ends at once in one clear line or succeeds" *
          doctest::skip(sanitized)) {
  const TempDir dir;
  int good = 0, bad = 0;
  for (rlim_t MB = 100; MB <= 600; MB += MB < 250 ? 6 : 25) {
    std::vector<std::string> arguments = tiny(dir / fmt::format("run{}", MB));
    arguments.insert(arguments.end(), {"--cell", "lstm", "--hidden", "128"});
    const Result r = run("copying", arguments, dir.path, {"PATH=" + dir.path}, limits(MB * 1000 * 1000));
    CAPTURE(MB);
    ends_well("copying", arguments, r);
    (r.code == 0 ? good : bad) += 1;
  }
  CHECK(good > 0);
  CHECK(bad > 0);
}
