// music: piano rolls of MATLAB files, what is wrong with them, frames and padding, the loss by hand, runs.
#define main music_main
#include "tasks/music.cpp"
#undef main

#include <matio.h>

#include <nlohmann/json.hpp>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Does key k sound in frame t of a tune of `frames`?
bool sounds(std::size_t frames, std::size_t t, std::size_t k) { return (t * 7 + k * 3 + frames) % 11 == 0; }

/// A matrix [frames, keys], by columns, of doubles or bytes.
matvar_t* roll(std::size_t frames, std::size_t keys, bool doubles, double other = 1) {
  std::vector<double> values;
  for (std::size_t k = 0; k < keys; ++k)
    for (std::size_t t = 0; t < frames; ++t) values.push_back(sounds(frames, t, k) ? other : 0);
  std::size_t dims[] = {frames, keys};
  if (doubles) return Mat_VarCreate(nullptr, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, dims, values.data(), 0);
  std::vector<std::uint8_t> bytes(values.begin(), values.end());
  return Mat_VarCreate(nullptr, MAT_C_UINT8, MAT_T_UINT8, 2, dims, bytes.data(), 0);
}

void write_cells(mat_t* mat, const char* name, const std::vector<matvar_t*>& cells) {
  std::size_t dims[] = {1, cells.size()};
  matvar_t* array = Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, dims, const_cast<matvar_t**>(cells.data()), 0);
  REQUIRE(array);
  REQUIRE(Mat_VarWrite(mat, array, MAT_COMPRESSION_ZLIB) == 0);
  Mat_VarFree(array);
}

/// DATA/music/Nottingham.mat: tunes of 5, 9 and 3 frames to train on, 6 and 4, 7.
struct Data {
  Data() { write({roll(6, 88, true), roll(4, 88, false)}); }
  void write(const std::vector<matvar_t*>& valid) const {
    std::filesystem::create_directories(dir / "music");
    mat_t* mat = Mat_CreateVer(file().c_str(), nullptr, MAT_FT_MAT5);
    REQUIRE(mat);
    write_cells(mat, "traindata", {roll(5, 88, false), roll(9, 88, true), roll(3, 88, false)});
    write_cells(mat, "testdata", {roll(7, 88, false)});
    if (!valid.empty()) write_cells(mat, "validdata", valid);
    Mat_Close(mat);
  }
  std::string file() const { return dir / "music/Nottingham.mat"; }
  Music task(const MusicOptions& o = {}) const { return Music(o, {.data = dir.path, .examples = {}}); }
  TempDir dir;
};

}  // namespace

TEST_CASE("music: the frame before as input, the next as target; shorter tunes have no weight behind their end") {
  const Data data;
  const Music task = data.task();
  CHECK(task.parts().train == 3);
  CHECK(task.parts().valid == 2);
  CHECK(task.parts().test == 1);
  const Batch batch = task.batch(1, {0, 1, 5});  // 5, 9 and 7 frames
  REQUIRE(batch.x.shape() == Shape{8, 3, 88});
  const auto x = batch.x.values<float>(), y = batch.y.values<float>(), w = batch.weight.values<float>();
  const std::size_t frames[] = {5, 9, 7};
  for (std::size_t t = 0; t < 8; ++t) {
    for (std::size_t b = 0; b < 3; ++b) {
      const bool there = t + 1 < frames[b];
      CHECK(w[t * 3 + b] == (there ? 1 : 0));
      for (std::size_t k = 0; k < 88; ++k) {
        const std::size_t i = (t * 3 + b) * 88 + k;
        CHECK(x[i] == (there && sounds(frames[b], t, k) ? 1 : 0));
        CHECK(y[i] == (there && sounds(frames[b], t + 1, k) ? 1 : 0));
      }
    }
  }
}

TEST_CASE("music: nats for a frame, by hand; trained on the sum over the tune") {
  const Data data;
  const Music task = data.task();
  const Batch batch = task.batch(1, {0, 1});
  const Tensor logits = random({8, 2, 88}, 3, DType::f64, -2, 2);
  const auto z = logits.values<double>();
  const auto y = batch.y.values<float>(), w = batch.weight.values<float>();
  double total = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double p = 1 / (1 + std::exp(-z[i]));
    total -= w[i / 88] * (y[i] * std::log(p) + (1 - y[i]) * std::log(1 - p));
  }
  CHECK(task.loss(logits, batch).item() == doctest::Approx(total / 12));
  CHECK(task.scale(batch) == 12);
  CHECK(task.scores(logits, batch)[0].mean() == doctest::Approx(total / 12));
  CHECK(std::isnan(task.accuracy(logits, batch)));
  CHECK(std::isfinite(task.loss(logits * 1e4, batch).item()));  // saturated: no infinity, as the published code has
  MusicOptions o;
  o.train_on = "mean";
  CHECK(data.task(o).scale(batch) == 1);
}

TEST_CASE("music: the baseline is the loss of each key's rate in training") {
  const Data data;
  const Music task = data.task();
  std::vector<double> n(88, 0), z(88);
  for (const std::size_t frames : {5, 9, 3})
    for (std::size_t t = 1; t < frames; ++t)
      for (std::size_t k = 0; k < 88; ++k) n[k] += sounds(frames, t, k);
  for (std::size_t k = 0; k < 88; ++k) {
    const double p = std::clamp(n[k], 0.5, 13.5) / 14;
    z[k] = std::log(p / (1 - p));
  }
  const Tensor logits = expand(Tensor::from<double>(z, {88}), {5, 2, 88});
  CHECK(task.loss(logits, task.batch(1, {3, 4})).item() == doctest::Approx(task.baseline()));
}

TEST_CASE("music: keys that always or never sound in training cost half a frame in the baseline, not infinity") {
  const Data data;
  std::filesystem::create_directories(data.dir / "music");
  const auto tune = [](std::size_t frames, std::size_t from, std::size_t to) {  // keys from..to - 1 all the time
    std::vector<double> values(frames * 88, 0);
    for (std::size_t k = from; k < to; ++k)
      for (std::size_t t = 0; t < frames; ++t) values[k * frames + t] = 1;
    std::size_t dims[] = {frames, 88};
    return Mat_VarCreate(nullptr, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, dims, values.data(), 0);
  };
  mat_t* mat = Mat_CreateVer(data.file().c_str(), nullptr, MAT_FT_MAT5);
  REQUIRE(mat);
  write_cells(mat, "traindata", {tune(6, 0, 2), tune(4, 0, 2)});  // 8 frames to predict
  write_cells(mat, "validdata", {tune(5, 1, 3)});                 // the first key is silent, the third sounds
  write_cells(mat, "testdata", {tune(3, 0, 2)});
  Mat_Close(mat);
  const double half = 0.5 / 8;
  CHECK(data.task().baseline() == doctest::Approx(-2 * std::log(half) - 86 * std::log(1 - half)).epsilon(1e-12));
}

TEST_CASE("music: files that are none, arrays that are missing or wrong") {
  const TempDir none;
  MusicOptions jsb;
  jsb.set = "jsb";
  CHECK(contains(error_of([&] { Music(jsb, {.data = none.path, .examples = {}}); }),
                 "[music] JSB_Chorales.mat: not found in"));
  const Data data;
  const auto error = [&] { return error_of([&] { data.task(); }); };
  const std::string name = "[music] Nottingham.mat: ";
  data.write({});
  CHECK(contains(error(), name + "has no array \"validdata\""));
  data.write({roll(4, 87, false)});
  CHECK(contains(error(), name + "validdata[0] is not a matrix with 88 columns"));
  data.write({roll(4, 88, true), roll(1, 88, true)});
  CHECK(contains(error(), name + "validdata[1] has 1 frames"));
  data.write({roll(5, 88, true, 0.5)});
  CHECK(contains(error(), "is neither 0 nor 1"));
  write_atomically(data.file(), "MATLAB is not this");
  CHECK(contains(error(), name + "is not a MATLAB file"));
  write_atomically(data.file(), "");
  CHECK(contains(error(), name + "is not a MATLAB file"));
  data.write({roll(6, 88, true)});
  const std::string whole = read_file(data.file());
  CHECK(error().empty());
  for (std::size_t cut = 129; cut < whole.size(); cut += 7) {  // anywhere behind the header
    write_atomically(data.file(), whole.substr(0, cut));       // cut off
    CHECK_MESSAGE(contains(error(), name), cut, " of ", whole.size());
    std::string changed = whole;
    changed[cut] = static_cast<char>(changed[cut] ^ 4);
    write_atomically(data.file(), changed);
    CHECK_MESSAGE(contains(error(), name), cut, " of ", whole.size());
  }
}

TEST_CASE("music: twenty steps with three cells; exit codes") {
  const Data data;
  for (const std::string cell : {"srnn", "lstm", "gru"}) {
    CAPTURE(cell);
    const std::string out = data.dir / cell;
    const Result r = run("music",
                         {"--data", data.dir.path, "--cell", cell, "--hidden", "8", "--layers", "2", "--dropout", "0.3",
                          "--steps", "20", "--threads", "1", "--quiet", "--out", out},
                         data.dir.path, {"PATH=" + data.dir.path});
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    CHECK_FALSE(contains(r.out, "nan"));
    const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
    CHECK(record["test"]["nll"].get<double>() == doctest::Approx(record["test"]["loss"].get<double>()));
    CHECK_FALSE(record["test"].contains("accuracy"));
  }
  CHECK(run("music", {"--data", data.dir / "no"}, data.dir.path).code == 1);
  CHECK(contains(run("music", {"--help"}, data.dir.path).out, "--train-on"));
}
