// Presets: each of them starts on tiny data and has the parameters that are stated; what --preset does with a wrong
// name and with other options; files of presets that break the rules.
#include <sys/stat.h>
#include <algorithm>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tasks/app/preset.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/little_data.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

#ifdef REEL_ADDRESS_SANITIZER
constexpr int nth_preset = 5;  // they meet the same code, and the plain build tries them all
#else
constexpr int nth_preset = 1;
#endif

std::int64_t count_of(const std::string& table) {
  std::istringstream lines(table);
  std::string line, word;
  std::int64_t count = -1;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    if (words >> word && word == "total") words >> count;
  }
  return count;
}

/// Presets of one table, written for a test.
std::string presets_of(const TempDir& dir, const std::string& toml) {
  write_new(dir / "presets/tiny.toml", "paper = \"Tiny (nobody 2000)\"\n" + toml);
  return dir / "presets";
}

}  // namespace

TEST_CASE("every preset starts, and its model has the parameters that are stated") {
  const TempDir dir;
  write_data(dir.path);
  fs::create_directories(dir / "digits");
  for (int i = 0; i < 10; ++i) write_sound(fmt::format("{}/digits/{}.wav", dir.path, i));
  int presets = 0, counts = 0;
  for (const PresetTable& table : read_presets(REEL_SOURCE_DIR "/presets")) {
    CHECK(!table.where.empty());
    for (const Preset& p : table.presets) {
      CAPTURE(p.name);
      if (presets++ % nth_preset != 0) continue;
      std::vector<std::string> arguments{"--preset", p.name, "--dry-run", "--threads", "1"};
      for (const char* task : {"mnist", "charlm", "music", "babi", "speech"})
        if (p.task == task) arguments.insert(arguments.end(), {"--data", dir.path});
      if (p.task == "speech") arguments.insert(arguments.end(), {"--valid-size", "1"});  // all there is here
      if (table.name == "srnn/digits") arguments.insert(arguments.end(), {"--folder", dir / "digits"});
      if (p.task == "babi") arguments.insert(arguments.end(), {"--valid", "0"});
      if (table.name == "goru/table4") arguments.insert(arguments.end(), {"--split", "core"});  // goru draws 4,000
      const Result r = run(p.task, arguments, dir.path);
      CAPTURE(r.err);
      CHECK(r.code == 0);
      if (r.code != 0) continue;
      if (p.task == "mechanism") continue;
      CHECK(contains(r.out, "\nupdates "));
      if (!p.parameters) continue;
      ++counts;
      CHECK(count_of(r.out) == *p.parameters);
    }
  }
  CHECK(presets > 400);
  CHECK(counts > 120 / nth_preset);
}

TEST_CASE("--preset: near names, another program's, options over it; --list-presets") {
  const TempDir dir;
  const Result near = run("copying", {"--preset", "srnn/fig2/T10-srnn"}, dir.path);
  CHECK(near.code == 2);
  CHECK(contains(near.err, "--preset srnn/fig2/T10-srnn: there is no such preset of copying, near ones are "));
  CHECK(contains(near.err, "srnn/fig2/T100-srnn"));
  const Result table = run("reproduce", {"srnn/table2/pmnist-srn"}, dir.path);
  CHECK_MESSAGE(contains(table.err, "figure or preset, near ones are srnn/table2/pmnist-srnn"), table.err);
  CHECK_FALSE(contains(table.err, "srnn/table2,"));
  const Result far = run("reproduce", {"results/mine"}, dir.path);
  CHECK_MESSAGE(contains(far.err, "results/mine: there is no such paper, table, figure or preset. See --list."),
                far.err);
  const Result other = run("copying", {"--preset", "srnn/fig3/T100-srnn"}, dir.path);
  CHECK(other.code == 2);
  CHECK(contains(other.err, "is one of the program adding"));
  const Result as_it_is = run("copying", {"--preset", "srnn/fig2/T100-srnn", "--dry-run"}, dir.path);
  CHECK(count_of(as_it_is.out) == 3746);
  const Result over =
      run("copying", {"--preset", "srnn/fig2/T100-srnn", "--cell", "lstm", "--hidden", "4", "--dry-run"}, dir.path);
  CHECK(over.code == 0);
  CHECK(contains(over.out, "cell.W_i"));
  const Result resumed = run("copying", {"--preset", "srnn/fig2/T100-srnn", "--resume", dir.path}, dir.path);
  CHECK(resumed.code == 2);
  const Result list = run("mnist", {"--list-presets"}, dir.path);
  CHECK(list.code == 0);
  CHECK(contains(list.out, "srnn/table2/pmnist-srnn           96.43 %"));
  CHECK(contains(list.out, "95.38 (unverified) %"));
  CHECK(!contains(list.out, "srnn/fig2/"));
}

TEST_CASE("options of a file override those of the preset: its steps, too, whatever epochs that has") {
  const TempDir dir;
  const std::string presets = presets_of(dir,
                                         "[t]\ntitle = \"T\"\ntask = \"paths\"\nmetric = \"valid_loss\"\n"
                                         "options = \"--epochs 3 --examples 20 --batch 10 --valid-size 10\"\n"
                                         "models.a = \"--cell srnn\"\n");
  for (const auto& [file, more, updates] : std::initializer_list<std::tuple<std::string, std::string, int>>{
           {"", "", 6},
           {"", "--steps 5", 5},
           {"steps = 5", "", 5},
           {"steps = 5\nepochs = 0.0", "", 5},
           {"steps = 5\nepochs = 2.0", "", 4},  // as a run's config.toml, which has both
           {"epochs = 2.0", "", 4},
           {"epochs = 0.0\nsteps = 5", "--epochs 4", 8},
           {"steps = 5", "--epochs 4", 8},
           {"epochs = 2.0", "--steps 7", 7}}) {
    CAPTURE(file);
    CAPTURE(more);
    write_atomically(dir / "s.toml", file + "\n");
    std::vector<std::string> line{"--preset", "tiny/t/a", "--config", dir / "s.toml", "--dry-run"};
    std::istringstream words(more);
    for (std::string word; words >> word;) line.push_back(word);
    const Result r = run("paths", line, dir.path, {"REEL_PRESETS=" + presets});
    CHECK_MESSAGE(r.code == 0, r.err);
    CHECK_MESSAGE(contains(r.out, fmt::format("\nupdates {}, batch 10", updates)), r.out);
  }
}

TEST_CASE("a preset's options may have = between name and value, as one may type them") {
  const TempDir dir;
  const auto said = [&](const std::string& options) {
    const std::string presets =
        presets_of(dir, "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"valid_loss\"\noptions = \"--batch 2 " +
                            options + "\"\nmodels.a = \"--cell srnn\"\n");
    const Result r = run("copying", {"--preset", "tiny/t/a", "--dry-run"}, dir.path, {"REEL_PRESETS=" + presets});
    fs::remove_all(presets);
    return r.out + r.err;
  };
  const std::string spaces = said("--delay 4 --hidden 5 --srnn.width 3 --group-lr head=1e-4 --steps 7 --bidirectional");
  CHECK(contains(spaces, "\nupdates 7, "));
  CHECK(said("--delay=4 --hidden=5 --srnn.width=3 --group-lr=head=1e-4 --steps=7 --bidirectional=true") == spaces);
  CHECK(said("--steps=7 --bidirectional=false") == said("--steps 7"));
  CHECK(contains(said("--bidirectional=no"), "preset tiny/t/a: --bidirectional: true or false expected, got \"no\""));
  CHECK(contains(said("--delay="), "preset tiny/t/a: --delay: a value is expected"));
  CHECK(contains(said("--delya=4"), "preset tiny/t/a: --delya=4: there is no such option. Hint: delay."));
}

TEST_CASE("a run of a preset has its options, and says at the end what was reported") {
  const TempDir dir;
  const std::string presets = presets_of(dir,
                                         "[t]\ntitle = \"T\"\nwhere = \"Table 9\"\ntask = \"copying\"\n"
                                         "options = \"--delay 3 --batch 2 --valid-size 2 --hidden 8 --steps 4\"\n"
                                         "metric = \"valid_loss\"\nmodels.a = \"--cell srnn\"\nreported.a = 0.5\n"
                                         "notes.a = \"The size is not established.\"\n");
  const Result r = run("copying", {"--preset", "tiny/t/a", "--quiet", "--steps", "3", "--out", dir / "run"}, dir.path,
                       {"REEL_PRESETS=" + presets});
  CHECK(r.code == 0);
  CHECK(
      contains(r.out, "reported: valid_loss 0.5 (Tiny (nobody 2000), Table 9)\nnote: The size is not established.\n"));
  const std::string config = read_file(dir / "run/config.toml");
  CHECK(contains(config, "delay = 3\n"));
  CHECK(contains(config, "steps = 3\n"));
  CHECK(contains(config, "hidden = 8\n"));

  const auto resumed = [&](const std::string& known, const std::string& steps) {
    return run("copying", {"--resume", dir / "run", "--steps", steps, "--quiet"}, dir.path, {"REEL_PRESETS=" + known});
  };
  const Result more = resumed(presets, "5");
  CHECK(more.code == 0);
  CHECK(contains(more.out,
                 "reported: valid_loss 0.5 (Tiny (nobody 2000), Table 9)\nnote: The size is not established.\n"));
  const std::string other = presets_of(dir,
                                       "[u]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n"
                                       "models.a = \"--cell srnn\"\n");
  const Result gone = resumed(other, "6");
  CHECK(gone.code == 0);
  CHECK(!contains(gone.out, "reported: "));
  CHECK(contains(gone.err, "copying: what was reported for tiny/t/a is not known: "));
  CHECK(std::count(gone.err.begin(), gone.err.end(), '\n') == 1);
}

TEST_CASE("a run keeps the name of its preset, also when it ended before its first run.json") {
  const TempDir dir;
  const std::string presets = presets_of(dir,
                                         "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n"
                                         "options = \"--delay 3 --batch 2 --valid-size 2 --hidden 8 --steps 4\"\n"
                                         "models.a = \"--cell srnn\"\n");
  const std::string folder = dir / "run", config = folder + "/config.toml", record = folder + "/run.json";
  const auto name_after = [&](const std::vector<std::string>& arguments, const std::string& known) {
    std::vector<std::string> all{"--quiet"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Result r = run("copying", all, dir.path, {"REEL_PRESETS=" + known});
    CHECK_MESSAGE(r.code == 0, r.err);
    return nlohmann::json::parse(read_file(record)).value("preset", "");
  };
  CHECK(name_after({"--preset", "tiny/t/a", "--out", folder}, presets) == "tiny/t/a");
  fs::remove(record);
  CHECK(name_after({"--resume", folder, "--steps", "5"}, presets) == "tiny/t/a");
  fs::remove(record);
  fs::remove(folder + "/checkpoint.safetensors");
  fs::remove(folder + "/metrics.csv");
  CHECK(name_after({"--resume", folder}, presets) == "tiny/t/a");

  // Folders of older versions have the name in run.json only; it stays when the preset is gone.
  const std::string text = read_file(config);
  REQUIRE(text.starts_with("# preset: tiny/t/a\n"));
  write_atomically(config, text.substr(text.find('\n') + 1));
  fs::create_directories(dir / "none");
  CHECK(name_after({"--resume", folder, "--steps", "6"}, dir / "none") == "tiny/t/a");
  fs::remove(record);
  CHECK(name_after({"--resume", folder, "--steps", "7"}, dir / "none") == "tiny/t/a");

  CHECK(name_after({"--config", config, "--out", dir / "again"}, presets) == "tiny/t/a");
  CHECK(!nlohmann::json::parse(read_file(dir / "again/run.json")).contains("preset"));  // it did not ask for one
}

TEST_CASE("a grid of one's own needs neither a paper nor a place in it") {
  const TempDir dir;
  write_atomically(dir / "mine.toml",
                   "[grid]\ntitle = \"Rates\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n"
                   "[grid.cases]\nlow = \"--lr 1e-4\"\nhigh = \"--lr 1e-2\"\n"
                   "[grid.models]\nsrnn = \"--cell srnn\"\ngru = \"--cell gru\"\n");
  const std::vector<PresetTable> tables = read_presets(dir.path);
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].name == "mine/grid");
  CHECK(tables[0].paper == "own runs");
  CHECK(tables[0].where == "grid");
  REQUIRE(tables[0].presets.size() == 4);
  CHECK(tables[0].presets[0].name == "mine/grid/low-srnn");
  CHECK(contains(error_of([&] { parse_presets("x.toml", "paper = 3\n"); }), "paper = \"NAME\" expected at the top"));
}

TEST_CASE("options have quotes and backslashes as in a shell") {
  const auto options = [](const std::string& typed) {
    return parse_presets("x.toml", "[t]\ntitle = \"T\"\ntask = \"table\"\nmetric = \"valid_loss\"\noptions = '''" +
                                       typed + "'''\nmodels.a = \"\"\n")
        .at(0)
        .presets.at(0)
        .options;
  };
  using Words = std::vector<std::string>;
  CHECK(options("--data 'my data/a.csv'  --target \"the 'y'\"") ==
        Words{"--data", "my data/a.csv", "--target", "the 'y'"});
  CHECK(options(R"(--data=my\ data/"a \"b\" \c".csv --target '' x)") ==
        Words{"--data=my data/a \"b\" \\c.csv", "--target", "", "x"});
  CHECK(options(" \t ").empty());
  CHECK(contains(error_of([&] { options("--data 'my data"); }),
                 "a: a quote is left open in the options --data 'my data"));
}

TEST_CASE("a pipe among the presets is an error, not waited for") {
  const TempDir dir;
  const std::string presets = presets_of(dir, "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"accuracy\"\n");
  REQUIRE(mkfifo((presets + "/x.toml").c_str(), 0600) == 0);
  const Result r = run("copying", {"--list-presets"}, dir.path, {"REEL_PRESETS=" + presets});
  CHECK(r.code != 0);
  CHECK(contains(r.err, presets + "/x.toml] is not a file of presets"));
}

TEST_CASE("a file of presets that breaks the rules is told with its line") {
  const TempDir dir;
  const std::string head = "[t]\ntitle = \"T\"\nwhere = \"W\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n";
  const auto why = [&](const std::string& toml) {
    const std::string folder = presets_of(dir, toml);
    return error_of([&] { read_presets(folder); });
  };
  CHECK(contains(why("[t]\nwhere = 3\n"), "tiny.toml:2] [t]: where = \"TEXT\" expected"));
  CHECK(contains(why(head + "model.a = \"\"\n"), "tiny.toml:7] [t]: model is no key of a section"));
  CHECK(
      contains(why(head + "models.a = \"\"\nreported.b = 3\n"), "reported.b: there is no such preset, model or case"));
  CHECK(contains(why(head), "cases or models expected"));
  CHECK(contains(why(head + "figure = \"pie\"\n"), "figure: curves, grad_norm, bars, map, pictures expected, got pie"));
  CHECK(contains(why(head + "cases = { gru = \"\", gru-big = \"\" }\nmodels = { big-x = \"\", x = \"\" }\n"),
                 "tiny.toml:2] [t]: gru-big-x is the name of two presets: of case gru with model big-x, and of case "
                 "gru-big with model x"));
  const std::string timed = "[t]\ntitle = \"T\"\ntask = \"copying\"\nmetric = \"epoch_seconds\"\nmodels.a = \"\"\n",
                    column = head + "models.a = \"\"\n[t.columns.time]\nmetric = \"epoch_seconds\"\n";
  for (const std::string& toml : {timed, timed + "epoch_updates.a = 0\n", timed + "epoch_updates.a = inf\n", column})
    CHECK_MESSAGE(contains(why(toml), "metric = \"epoch_seconds\": the updates of an epoch of a expected"), toml);
  CHECK(why(timed + "epoch_updates.a = 10\n").empty());
  CHECK(contains(why("[t\n"), "tiny.toml:"));
  CHECK(contains(error_of([&] { read_presets(dir / "none"); }), "holds no presets"));
  const Result r = run("copying", {"--preset", "tiny/t/a"}, dir.path,
                       {"REEL_PRESETS=" + presets_of(dir, head + "models.a = \"--dely 3\"\n")});
  CHECK(r.code == 2);
  CHECK(contains(r.err, "preset tiny/t/a: --dely: there is no such option. Hint: delay."));
}
