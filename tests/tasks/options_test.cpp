// Options: the command line, files of options, settings of cells, and what they say when something is wrong.
#include <cstring>
#include <sstream>

#include "cells/cell.h"
#include "tasks/app/options.h"
#include "tasks/app/provenance.h"
#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/stderr_of.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using test::TempDir;

namespace {

/// Cells of the tests' own, one with a setting of each kind and one without settings.
const bool registered_fakes = [] {
  using K = Setting::Kind;
  cell_registry().push_back({"fake",
                             "made for a test",
                             "",
                             "",
                             {{"width", K::integer, "8", "units inside", {}},
                              {"slope", K::real, "0.1", "of the ramp", {}},
                              {"gate", K::choice, "on", "a gate", {"on", "off"}}},
                             nullptr});
  cell_registry().push_back({"plain", "has no settings", "", "", {}, nullptr});
  return true;
}();

/// A program's options, with one of each kind.
struct Prog {
  std::int64_t batch = 20, steps = 100, threads = 0;
  std::uint64_t seed = 1;
  double lr = 1e-3, share = 0.5;
  std::string cell = "fake", data = "data/x", out;
  bool quiet = false, shuffle = true;
  Options options{"prog", "Trains a thing."};

  explicit Prog(const std::vector<std::string>& with_resume = {"steps", "quiet", "threads"}) {
    options.choice("cell", cell, {"fake", "plain"}, "recurrent cell", "Model");
    options.add("batch", batch, "sequences an update", "Training", {.low = 1});
    options.add("steps", steps, "updates", "Training", {.low = 1, .high = 1e6});
    options.add("seed", seed, "of all random numbers", "Training");
    options.add("lr", lr, "learning rate", "Training", {.low = 0});
    options.add("share", share, "kept", "Training", {.low = 0, .high = 1});
    options.add("data", data, "folder of the data");
    options.add("out", out, "run folder");
    options.add("threads", threads, "of the CPU");
    options.flag("quiet", quiet, "no progress");
    options.flag("shuffle", shuffle, "new order");
    options.cells();
    if (!with_resume.empty()) options.allow_with_resume(with_resume);
  }
  Prog& parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "prog");
    options.parse(static_cast<int>(arguments.size()), arguments.data());
    return *this;
  }
};

std::string usage_of(const std::vector<const char*>& arguments) {
  return test::error_of([&] { Prog().parse(arguments); });
}

std::string usage_of_file(const std::string& toml) {
  const TempDir dir;
  write_atomically(dir / "c.toml", toml);
  const std::string path = dir / "c.toml", text = usage_of({"--config", path.c_str()});
  return text.starts_with(path) ? text.substr(path.size()) : text;
}

}  // namespace

TEST_CASE("options: defaults, then the file, then the command line") {
  const TempDir dir;
  const std::string file = dir / "c.toml";
  write_atomically(file,
                   "batch = 7\nlr = 1\nquiet = true\nshuffle = false\nseed = 5\n[fake]\nwidth = 3\ngate = \"off\"\n");
  Prog p;
  p.parse({"--config", file.c_str(), "--seed=9", "--fake.width", "4", "--shuffle", "--lr", "1e-2", "--lr", "0.25"});
  CHECK(p.batch == 7);
  CHECK(p.steps == 100);
  CHECK(p.seed == 9);
  CHECK(p.lr == 0.25);
  CHECK(p.quiet);
  CHECK(p.shuffle);
  CHECK(p.options.config() == file);
  CHECK(p.options.resume().empty());
  CHECK(p.options.settings("fake") == std::map<std::string, std::string>{{"width", "4"}, {"gate", "off"}});
  CHECK(p.options.settings("plain").empty());
  CHECK(p.options.given("batch"));
  CHECK(p.options.given("fake.gate"));
  CHECK_FALSE(p.options.given("fake.slope"));
  CHECK_FALSE(p.options.given("steps"));
  CHECK_FALSE(Prog().parse({"--quiet=false"}).quiet);
  CHECK(Prog().parse({"--share", "-0"}).share == 0);
}

TEST_CASE("options: one line for every misuse of the command line") {
  CHECK(usage_of({"--batch", "0"}) == "--batch: an integer of 1 or more expected, got 0");
  CHECK(usage_of({"--batch", "12x"}) == "--batch: an integer of 1 or more expected, got \"12x\"");
  CHECK(usage_of({"--batch", "1.5"}) == "--batch: an integer of 1 or more expected, got 1.5");
  CHECK(usage_of({"--batch", ""}) == "--batch: an integer of 1 or more expected, got \"\"");
  CHECK(usage_of({"--steps", "-4"}) == "--steps: an integer from 1 to 1000000 expected, got -4");
  CHECK(usage_of({"--seed", "-1"}) == "--seed: an integer of 0 or more expected, got -1");
  CHECK(usage_of({"--seed", "18446744073709551616"}) ==
        "--seed: an integer from 0 to 18446744073709551615 expected, got 18446744073709551616");
  CHECK(usage_of({"--threads", "9223372036854775808"}) ==
        "--threads: an integer from -9223372036854775808 to 9223372036854775807 expected, got 9223372036854775808");
  CHECK(usage_of({"--batch", "9223372036854775808"}) ==
        "--batch: an integer from 1 to 9223372036854775807 expected, got 9223372036854775808");
  for (const char* bad : {"nan", "inf", "-inf", "1,5", "0x1", " 1"})
    CHECK(usage_of({"--lr", bad}) == fmt::format("--lr: a number of 0 or more expected, got \"{}\"", bad));
  CHECK(usage_of({"--lr", "1e400"}) == "--lr: a number from 0 to 1.7976931348623157e+308 expected, got 1e400");
  CHECK(usage_of({"--lr", "1e-320"}) == "--lr: 0 or a number of 2.23e-308 or more in size expected, got 1e-320");
  CHECK(usage_of({"--share", "1.01"}) == "--share: a number from 0 to 1 expected, got 1.01");
  CHECK(usage_of({"--cell", "fkae"}) == "--cell: one of fake, plain expected, got \"fkae\". Hint: fake.");
  CHECK(usage_of({"--quiet=maybe"}) == "--quiet: true or false expected, got \"maybe\"");
  CHECK(usage_of({"--data", "\xff"}) == "--data: text in UTF-8 without zero bytes expected, got \"\xff\"");
  CHECK(usage_of({"--bath", "3"}) == "--bath: there is no such option. Hint: --batch.");
  CHECK(usage_of({"--bath=3"}) == "--bath: there is no such option. Hint: --batch.");
  CHECK(usage_of({"--fake.widht", "3"}) == "--fake.widht: there is no such option. Hint: --fake.width.");
  CHECK(usage_of({"--zzzzzzzz"}) == "--zzzzzzzz: there is no such option. See --help.");
  CHECK(usage_of({"-q"}) == "-q: there is no such option. See --help.");
  CHECK(usage_of({"copying"}) == "\"copying\": an option starting with -- is expected. See --help.");
  CHECK(usage_of({"--lr"}) == "--lr: a value is expected");
  CHECK(usage_of({"--lr=", "1"}) == "--lr: a value is expected");
  CHECK(usage_of({"--data", "--quiet"}) == "--data: a value is expected, --quiet follows");
  CHECK(Prog().parse({"--data=--quiet"}).data == "--quiet");
  CHECK(usage_of({"--fake.width", "wide"}) == "--fake.width: an integer expected, got \"wide\"");
  CHECK(usage_of({"--fake.gate", "offf"}) == "--fake.gate: one of on, off expected, got \"offf\". Hint: off.");
  CHECK(usage_of({"--cell", "plain", "--fake.width", "3"}) == "--fake.width: is not a setting of --cell plain");
  CHECK(usage_of({"--config", "/dev/null/x"}) == "[/dev/null/x] cannot be read: Not a directory");
}

TEST_CASE("options: a file says where it is wrong") {
  CHECK(usage_of_file("steps = 1\nbathc = 3\n") == ":2: bathc: there is no such option. Hint: batch.");
  CHECK(usage_of_file("\n\nbatch = \"3\"\n") ==
        ":3: batch: an integer of 1 or more expected, got a value of type string");
  CHECK(usage_of_file("batch = 2.0") ==
        ":1: batch: an integer of 1 or more expected, got a value of type floating-point");
  CHECK(usage_of_file("batch = [1]") == ":1: batch: an integer of 1 or more expected, got a value of type array");
  CHECK(usage_of_file("quiet = 1") == ":1: quiet: true or false expected, got a value of type integer");
  CHECK(usage_of_file("data = 1") ==
        ":1: data: text in UTF-8 without zero bytes expected, got a value of type integer");
  CHECK(usage_of_file("batch = 0") == ":1: batch: an integer of 1 or more expected, got 0");
  CHECK(usage_of_file("lr = nan") == ":1: lr: a number of 0 or more expected, got \"nan\"");
  CHECK(usage_of_file("[fake]\n\nwidht = 3") == ":3: fake.widht: there is no such option. Hint: fake.width.");
  CHECK(usage_of_file("[fakke]\nwidth = 3") == ":1: fakke: there is no such option. Hint: fake.");
  CHECK(usage_of_file("[lr]\nx = 3") == ":1: lr: a number of 0 or more expected, got a value of type table");
  CHECK(usage_of_file("[fake.width]\nx = 3") == ":1: fake.width: an integer expected, got a value of type table");
  CHECK(usage_of_file("config = \"x\"") == ":1: config: there is no such option");
  for (const char* damaged :
       {"batch = ", "batch 3", "batch = 3\nbatch = 4", "[fake", "lr = 1e", "data = \"x", "\xff = 1"}) {
    const std::string text = usage_of_file(damaged);
    CAPTURE(text);
    CHECK(text[0] == ':');
    CHECK(std::isdigit(text[1]));
    CHECK(text.find('\n') == std::string::npos);
  }
  CHECK(usage_of_file("plain = {}\n[fake]\n") == "");
}

TEST_CASE("options: toml() read again is the same, to the last bit") {
  const TempDir dir;
  const std::string file = dir / "c.toml", again = dir / "d.toml";
  const char* text = "a \"quoted\" 'path'\\with\ttabs, \n lines, \x01 and \xc3\xa9";
  for (const char* lr :
       {"0.1", "1", "1e-5", "1e300", "2.2250738585072014e-308", "0.30000000000000004", "123456789.123", "1e20"}) {
    Prog p, q;
    p.parse({"--lr", lr, "--seed", "18446744073709551615", "--data", text, "--fake.slope", "1.", "--fake.width", "007",
             "--out", "o", "--quiet"});
    write_atomically(file, p.options.toml());
    q.parse({"--config", file.c_str()});
    CHECK(std::memcmp(&p.lr, &q.lr, sizeof p.lr) == 0);
    CHECK(q.seed == p.seed);
    CHECK(q.data == text);
    CHECK(q.options.settings("fake") ==
          std::map<std::string, std::string>{{"gate", "on"}, {"slope", "1"}, {"width", "7"}});
    CHECK(q.out.empty());
    CHECK_FALSE(q.quiet);
    CHECK(q.options.toml() == p.options.toml());
  }
  CHECK(Prog().parse({}).options.toml() ==
        "cell = \"fake\"\nbatch = 20\nsteps = 100\nseed = 1\nlr = 0.001\nshare = 0.5\ndata = \"data/x\"\nthreads = 0\n"
        "shuffle = true\n\n[fake]\nwidth = 8\nslope = 0.1\ngate = \"on\"\n");
  CHECK(Prog().parse({"--cell", "plain"}).options.toml().find('[') == std::string::npos);
}

TEST_CASE("options: --resume reads the run's own file and keeps it") {
  const TempDir dir;
  write_atomically(dir / "config.toml", "batch = 3\nsteps = 10\n[fake]\nwidth = 2\n");
  const char* folder = dir.path.c_str();
  Prog p;
  p.parse({"--resume", folder, "--steps", "50", "--quiet"});
  CHECK(p.options.resume() == folder);
  CHECK(p.batch == 3);
  CHECK(p.steps == 50);
  CHECK(p.options.settings("fake").at("width") == "2");
  CHECK(usage_of({"--resume", folder, "--lr", "1"}) ==
        "--lr: a resumed run keeps its options; with --resume only --steps, --quiet, --threads may be given");
  CHECK(usage_of({"--resume", folder, "--config", "x"}).starts_with("--config: a resumed run keeps its options"));
  CHECK(usage_of({"--resume", "/dev/null"}) ==
        "--resume /dev/null: the folder has no config.toml, so there is no run to resume");
  CHECK(Prog(std::vector<std::string>{"lr"}).parse({"--resume", folder, "--lr", "1"}).lr == 1);
  Prog never(std::vector<std::string>{});  // has nothing to resume
  never.options.hint("resume", "start again");
  CHECK(test::error_of([&] {
          never.parse({"--resume", folder});
        }) == "--resume: there is no such option. Hint: start again.");
  CHECK(never.options.help().find("--resume") == std::string::npos);
}

TEST_CASE("options: an empty name, as a variable of the shell that is not set leaves it, is refused") {
  CHECK(usage_of({"--resume", ""}) == "--resume: a name that is not empty expected, got \"\"");
  CHECK(usage_of({"--config", ""}) == "--config: a name that is not empty expected, got \"\"");
  CHECK(usage_of({"--data", ""}).empty());
}

TEST_CASE("options: a default that breaks the rule of its own option is told where it is added") {
  Options options{"prog", "Trains a thing."};
  std::int64_t n = 50;
  double x = -0.5;
  CHECK(test::error_of([&] { options.add("length", n, "steps", "Task", {.low = 1, .high = 10}); }) ==
        "[options] the default of --length is 50, an integer from 1 to 10 expected");
  CHECK(test::error_of([&] { options.add("share", x, "kept", "Task", {.low = 0}); }) ==
        "[options] the default of --share is -0.5, a number of 0 or more expected");
}

TEST_CASE("options: a list is text with commas or an array of TOML") {
  const auto sizes_of = [](const std::string& toml) {
    const TempDir dir;
    write_atomically(dir / "c.toml", "sizes = " + toml + "\n");
    std::string sizes = "1";
    Options options{"prog", "Trains a thing."};
    options.list("sizes", sizes, {.low = 1, .high = 9}, "of layers", "Model");
    const std::string path = dir / "c.toml";
    const char* const words[] = {"prog", "--config", path.c_str()};
    const std::string error = test::error_of([&] { options.parse(3, words); });
    return error.empty() ? sizes : error.substr(std::min(path.size(), error.size()));
  };
  CHECK(sizes_of("4") == "4");
  CHECK(sizes_of("\"4,8\"") == "4,8");
  CHECK(sizes_of("[4, 8]") == "4,8");
  CHECK(sizes_of("[4]") == "4");
  CHECK(sizes_of("[4, 10]") == ":1: sizes: an integer from 1 to 9 expected, got 10");
  CHECK(sizes_of("[4, 0.5]") == ":1: sizes: an integer from 1 to 9 expected, got 0.5");
  CHECK(sizes_of("[4, {}]") == ":1: sizes: an integer from 1 to 9 expected, got \"\"");
  CHECK(sizes_of("[]") == ":1: sizes: an integer from 1 to 9 expected, got \"\"");
}

TEST_CASE("options: a section's name without a section") {
  CHECK(usage_of_file("fake = 3") == ":1: fake: there is no such option. Hint: section [fake]");
}

TEST_CASE("options: only the command line names a program to run") {
  const TempDir dir;
  write_atomically(dir / "config.toml", "batch = 3\ndata = \"evil prog\"\n");
  const std::string file = dir / "config.toml";
  const auto parsed = [](const std::vector<const char*>& arguments) {
    Prog p({"data"});
    p.options.typed_only("data");
    p.parse(arguments);
    CHECK(p.batch == 3);
    return p.data;
  };
  CHECK(test::error_of([&] {
          parsed({"--config", file.c_str()});
        }) == file + ":2: data: names a program to run, so only the command line may set it. Hint: --data 'evil prog'");
  CHECK(parsed({"--config", file.c_str(), "--data", "mine"}) == "mine");
  const std::string said = test::stderr_of([&] { CHECK(parsed({"--resume", dir.path.c_str()}) == "data/x"); });
  CHECK(said == file + ":2: data is left out: it names a program to run. Hint: --data 'evil prog'\n");
  CHECK(test::stderr_of([&] { CHECK(parsed({"--resume", dir.path.c_str(), "--data", "mine"}) == "mine"); }).empty());
  write_atomically(dir / "config.toml", "batch = 3\ndata = \"\"\n");
  CHECK(parsed({"--config", file.c_str()}) == "data/x");
}

/// The text with which the program ends at once.
std::string text_of(const std::vector<const char*>& arguments) {
  try {
    Prog().parse(arguments);
  } catch (const Exit& e) {
    CHECK(e.code == 0);
    return e.text;
  }
  return "it did not end";
}

TEST_CASE("options: --version names the version, and the commit where it is known") {
  const std::string text = text_of({"--nonsense", "--version"});
  CHECK(text.starts_with("prog (Reel) " + version()));
  CHECK(version().find('.') != std::string::npos);
  CHECK((commit().empty() || (commit().size() == 40 && test::contains(text, ", commit " + commit().substr(0, 12)))));
  CHECK(text.ends_with("\n"));
}

TEST_CASE("options: a command line as a shell would read it") {
  const char* words[] = {"/a/b/copying", "--out", "it's $x", "--lr=1e-3", ""};
  CHECK(command_line(5, words) == "copying --out 'it'\\''s $x' --lr=1e-3 ''");
  const char* control[] = {"copying", "--out", "it's\n\x1bx"};  // one line, which a terminal shows as it is
  CHECK(command_line(3, control) == "copying --out $'it\\'s\\012\\033x'");
}

TEST_CASE("options: --help has the settings of the chosen cell, --help-all those of all") {
  const std::string other = "The settings of another cell: --cell NAME --help; of every cell: --help-all.\n";
  for (const char* name : {"--help", "-h"}) {
    const std::string fake = text_of({name}), plain = text_of({"--cell", "plain", name});
    CHECK(test::contains(fake, "cell fake: made for a test\n  --fake.width N"));
    CHECK_FALSE(test::contains(fake, "cell plain"));
    CHECK(fake.ends_with(other));
    CHECK(test::contains(plain, "cell plain: has no settings\n  (no settings)\n"));
    CHECK_FALSE(test::contains(plain, "--fake.width"));
  }
  const std::string all = text_of({"--cell=plain", "--help-all"});
  CHECK(test::contains(all, "--fake.width N"));
  CHECK(test::contains(all, "cell plain: has no settings"));
  CHECK_FALSE(test::contains(all, other));
  CHECK(usage_of({"--cell", "fkae", "--help"}) == "--cell: one of fake, plain expected, got \"fkae\". Hint: fake.");
}

TEST_CASE("options: --help-all tells all, in order, within 100 columns") {
  try {
    Prog().parse({"--help-all", "--nonsense"});
    FAIL("--help-all must end the program");
  } catch (const Exit& e) {
    CHECK(e.code == 0);
    std::size_t at = 0;
    for (const char* part : {"Trains a thing.",
                             "Usage: prog [options]",
                             "Model",
                             "  --cell CHOICE",
                             "[fake, plain; default fake]",
                             "Training",
                             "  --lr X",
                             "learning rate [default 0.001]",
                             "Options",
                             "  --data TEXT",
                             "  --quiet",
                             "Configuration and help",
                             "  --config FILE",
                             "  --help",
                             "  --version",
                             "  --help-all",
                             "  --resume DIR",
                             "cell fake: made for a test",
                             "  --fake.width N",
                             "units inside [default 8]",
                             "[on, off; default on]",
                             "cell plain: has no settings"}) {
      CAPTURE(part);
      const std::size_t found = e.text.find(part, at);
      REQUIRE(found != std::string::npos);
      at = found;
    }
    std::istringstream lines(e.text);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  }
}
