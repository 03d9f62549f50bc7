// Presets: each of them starts on tiny data and has the parameters that are stated; what --preset does with a wrong
// name and with other options; files of presets that break the rules.
#include <matio.h>
#include <sndfile.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "tasks/harness/preset.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

void write_new(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  write_atomically(path, bytes);
}

void write_idx(const std::string& path, const std::vector<std::uint32_t>& shape) {
  std::string bytes{0, 0, 8, static_cast<char>(shape.size())};
  std::size_t count = 1;
  for (const std::uint32_t n : shape) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(n >> shift & 255);
    count *= n;
  }
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  fs::create_directories(fs::path(path).parent_path());
  gzFile file = gzopen(path.c_str(), "wb1");
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

void write_tunes(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  mat_t* mat = Mat_CreateVer(path.c_str(), nullptr, MAT_FT_MAT5);
  REQUIRE(mat);
  for (const char* name : {"traindata", "validdata", "testdata"}) {
    std::vector<double> frames(3 * 88, 1);
    std::size_t size[] = {3, 88}, one[] = {1, 1};
    matvar_t* cells[] = {Mat_VarCreate(nullptr, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, size, frames.data(), 0)};
    matvar_t* array = Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, one, cells, 0);
    REQUIRE(Mat_VarWrite(mat, array, MAT_COMPRESSION_NONE) == 0);
    Mat_VarFree(array);
  }
  Mat_Close(mat);
}

void write_sound(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  std::vector<double> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i) / 5);
  SF_INFO info{};
  info.samplerate = 8000, info.channels = 1, info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file);
  REQUIRE(sf_write_double(file, x.data(), static_cast<sf_count_t>(x.size())) == static_cast<sf_count_t>(x.size()));
  sf_close(file);
}

/// A little of every data set, with the sizes that models depend on: 50 characters, 88 keys, 10 digits.
void write_data(const std::string& data) {
  for (const auto& [part, n] : {std::pair{"train", 12000U}, {"t10k", 2U}}) {
    write_idx(fmt::format("{}/mnist/{}-images-idx3-ubyte.gz", data, part), {n, 28, 28});
    write_idx(fmt::format("{}/mnist/{}-labels-idx1-ubyte.gz", data, part), {n});
  }
  std::string text;
  for (int line = 0; line < 40; ++line) {
    for (int i = 0; i < 48; ++i) text += static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26);
    text.insert(text.size() - 20, " ");
    text += "\n";
  }
  for (const char* part : {"train", "valid", "test"}) write_new(fmt::format("{}/ptb/ptb.{}.txt", data, part), text);
  write_tunes(data + "/music/Nottingham.mat");
  for (int task = 1; task <= 20; ++task)
    for (const char* part : {"train", "valid", "test"})
      write_new(fmt::format("{}/babi/en-valid-10k/qa{}_{}.txt", data, task, part),
                "1 Ann went home.\n2 Where is Ann? \thome\t1\n");
  for (const char* path : {"train/dr1/fcjf0/si648.wav", "test/dr1/faks0/si943.wav", "test/dr1/mdab0/si1039.wav"})
    write_sound(data + "/timit/" + path);
}

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
  int presets = 0, counts = 0;
  for (const PresetTable& table : read_presets(REEL_SOURCE_DIR "/presets")) {
    CHECK(!table.where.empty());
    for (const Preset& p : table.presets) {
      CAPTURE(p.name);
      ++presets;
      std::vector<std::string> arguments{"--preset", p.name, "--dry-run", "--threads", "1"};
      for (const char* task : {"mnist", "charlm", "music", "babi", "speech"})
        if (p.task == task) arguments.insert(arguments.end(), {"--data", dir.path});
      if (p.task == "speech") arguments.insert(arguments.end(), {"--valid-size", "1"});  // all there is here
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
  CHECK(counts > 120);
}

TEST_CASE("--preset: near names, another program's, options over it; --list-presets") {
  const TempDir dir;
  const Result near = run("copying", {"--preset", "srnn/fig2/T10-srnn"}, dir.path);
  CHECK(near.code == 2);
  CHECK(contains(near.err, "--preset srnn/fig2/T10-srnn: there is no such preset of copying, near ones are "));
  CHECK(contains(near.err, "srnn/fig2/T100-srnn"));
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
}

TEST_CASE("a file of presets that breaks the rules is told with its line") {
  const TempDir dir;
  const std::string head = "[t]\ntitle = \"T\"\nwhere = \"W\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n";
  const auto why = [&](const std::string& toml) {
    const std::string folder = presets_of(dir, toml);
    return error_of([&] { read_presets(folder); });
  };
  CHECK(contains(why("[t]\nwhere = 3\n"), "tiny.toml:2] [t]: where = \"TEXT\" is wanted"));
  CHECK(contains(why(head + "model.a = \"\"\n"), "tiny.toml:7] [t]: model is no key of a section"));
  CHECK(
      contains(why(head + "models.a = \"\"\nreported.b = 3\n"), "reported.b: there is no such preset, model or case"));
  CHECK(contains(why(head), "cases or models are wanted"));
  CHECK(
      contains(why(head + "figure = \"pie\"\n"), "figure: curves, grad_norm, bars, map, pictures is wanted, got pie"));
  CHECK(contains(why("[t\n"), "tiny.toml:"));
  CHECK(contains(error_of([&] { read_presets(dir / "none"); }), "holds no presets"));
  const Result r = run("copying", {"--preset", "tiny/t/a"}, dir.path,
                       {"REEL_PRESETS=" + presets_of(dir, head + "models.a = \"--dely 3\"\n")});
  CHECK(r.code == 2);
  CHECK(contains(r.err, "preset tiny/t/a: --dely: there is no such option. Hint: delay."));
}
