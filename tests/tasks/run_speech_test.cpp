// speech: resampling, features and waveform metrics against NumPy and SciPy, files and splits, targets, runs.
#define main speech_main
#include "tasks/speech.cpp"
#undef main

#include <sndfile.h>

#include <nlohmann/json.hpp>

#include "tests/support/child.h"
#include "tests/support/golden.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

using Signal = std::vector<double>;

void write_sound(const std::string& path, const Signal& x, int rate = 8000,
                 int format = SF_FORMAT_WAV | SF_FORMAT_PCM_16, int channels = 1) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  SF_INFO info{};
  info.samplerate = rate, info.channels = channels, info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file);
  REQUIRE(sf_write_double(file, x.data(), static_cast<sf_count_t>(x.size())) == static_cast<sf_count_t>(x.size()));
  sf_close(file);
}

Signal tone(std::size_t n, double frequency) {
  Signal x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = std::round(8000 * std::sin(2 * std::numbers::pi * frequency * static_cast<double>(i) / 8000)) / 32768;
  return x;
}

/// DATA/speech with 4, 2 and 2 recordings of half a second and more.
struct Data {
  Data() {
    int i = 0;
    for (const auto& [part, count] : {std::pair{"train", 4}, {"valid", 2}, {"test", 2}})
      for (int k = 0; k < count; ++k, ++i)
        write_sound(fmt::format("{}/speech/{}/{}.wav", dir.path, part, k),
                    tone(6000 + 100 * static_cast<std::size_t>(i), 200 + 50 * i));
  }
  Speech task(const SpeechOptions& o = {}) const { return Speech(o, {.data = dir.path, .examples = {}}); }
  TempDir dir;
};

std::vector<std::string> names(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const auto& p : paths) out.push_back(std::filesystem::path(p).filename());
  return out;
}

}  // namespace

TEST_CASE("speech: resampling, features, segmental SNR and STOI as NumPy and SciPy have them") {
  Golden g("speech");
  const Signal x = g["x"].values<double>(), y = g["y"].values<double>(), band = g["band"].values<double>();
  for (const auto& [up, down] : {std::pair{1, 2}, {5, 4}, {80, 441}, {3, 7}}) {
    CAPTURE(up);
    const Signal short_x(x.begin(), x.begin() + 1500), moved = resample(short_x, up, down);
    const Tensor expected = g[fmt::format("resampled.{}_{}", up, down)];
    CHECK(difference(Tensor::from<double>(moved, {std::ssize(moved)}), expected) < 1e-13);
  }
  CHECK(difference(features(spectra(x)), g["features"]) < tolerance);
  CHECK(segmental_snr(x, y, 8000) == doctest::Approx(g["snr"].item()).epsilon(1e-12));
  CHECK(segmental_snr(x, band, 8000) == doctest::Approx(g["snr_band"].item()).epsilon(1e-12));
  CHECK(stoi(x, y, 8000) == doctest::Approx(g["stoi"].item()).epsilon(1e-11));
  CHECK(stoi(x, band, 8000) == doctest::Approx(g["stoi_band"].item()).epsilon(1e-11));
  CHECK(g.unseen().empty());
  CHECK(stoi(x, x, 8000) == doctest::Approx(1));
  CHECK(segmental_snr(x, x, 8000) == 35);
  CHECK(std::isnan(stoi(Signal(x.begin(), x.begin() + 2000), Signal(y.begin(), y.begin() + 2000), 8000)));
  CHECK(std::isnan(segmental_snr(Signal(800, 0), Signal(800, 1), 8000)));
  CHECK(std::isnan(stoi(Signal(9000, 0), Signal(9000, 1), 8000)));
}

TEST_CASE("speech: spectra become the same sound again, to 16 bit but for the power that is added") {
  Golden g("speech");
  const Signal x = g["x"].values<double>();
  const Tensor s = spectra(x);
  CHECK(s.shape() == Shape{(9001 + 127) / 128 + 3, 129});
  const Signal again = sound(features(s), angle(s), 9001);
  REQUIRE(again.size() == x.size());
  // The features are of the power with 1e-5 added; all else is the way back, and rounding to 16 bit.
  const Tensor louder = sqrt(square(abs(s)) + 1e-5);
  const Signal back = slice(istft(polar(louder, angle(s)), frames_of_speech()), 0, size, size + 9001).values<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(again[i] - back[i]));
  CHECK(worst < 0.5001 / 32768);
  CHECK(features(s).values<double>()[0] == doctest::Approx(-50));
  // A sound beyond full scale is scaled down as a whole, not cut off.
  double loudest = 0;
  for (const double v : back) loudest = std::max(loudest, std::abs(v));
  const Signal scaled = sound(features(s * (3 / loudest)), angle(s), 9001);
  worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(scaled[i] - back[i] / loudest));
  CHECK(worst < 0.01);
}

TEST_CASE("speech: WAV and SPHERE, resampling to 8 kHz, and files that are refused") {
  const TempDir dir;
  const Signal x = tone(4000, 440);
  write_sound(dir / "a.wav", x);
  CHECK(read_audio("s", dir / "a.wav", 8000) == x);
  write_sound(dir / "b.wav", x, 8000, SF_FORMAT_NIST | SF_FORMAT_PCM_16);  // as TIMIT has them
  CHECK(read_audio("s", dir / "b.wav", 8000) == x);
  write_sound(dir / "c.wav", x, 16000);
  const Signal half = read_audio("s", dir / "c.wav", 8000);
  CHECK(half.size() == 2000);
  double error = 0;
  const Signal wanted = tone(2000, 880);
  for (std::size_t i = 200; i < 1800; ++i) error = std::max(error, std::abs(half[i] - wanted[i]));
  CHECK(error <
        6e-5);  // both tones are rounded to 16 bit, by 1.5e-5; the filter lets through 2e-4 of what it takes out
  const auto why = [&](const std::string& name) {
    return error_of([&] { (void)read_audio("speech", dir / name, 8000); });
  };
  write_sound(dir / "slow.wav", x, 4000);
  CHECK(contains(why("slow.wav"), "slow.wav: has 4000 samples a second: 8000 expected"));
  write_sound(dir / "odd.wav", x, 8009);
  CHECK(contains(why("odd.wav"), "has 8009 samples a second"));
  write_sound(dir / "two.wav", x, 8000, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2);
  CHECK(contains(why("two.wav"), "has 2 channels, 1 expected"));
  write_sound(dir / "none.wav", {});
  CHECK(contains(why("none.wav"), "has 0 samples"));
  write_atomically(dir / "text.wav", "this is no sound at all, but long enough to be looked at");
  CHECK(contains(why("text.wav"), "[speech] " + dir.path + "/text.wav: is no sound file"));
  CHECK(contains(why("missing.wav"), "cannot be read: No such file"));
  const std::string whole = read_file(dir / "a.wav");
  for (std::size_t cut = 0; cut < whole.size(); cut += cut < 60 ? 1 : 199) {
    write_atomically(dir / "cut.wav", whole.substr(0, cut));
    CHECK_MESSAGE(contains(why("cut.wav"), "cut.wav: "), cut);
  }
}

TEST_CASE("speech: parts of a folder, and of TIMIT, with and without the speakers that published code loses") {
  const TempDir dir;
  for (int i = 0; i < 25; ++i) write_sound(fmt::format("{}/plain/{}/{:02}.WAV", dir.path, i % 3, i), {0.1});
  write_atomically(dir / "plain/readme.txt", "no sound");
  SpeechFiles files = speech_in_folder(dir / "plain");
  CHECK(files.train.size() == 19);
  CHECK(files.valid.size() == 3);
  CHECK(files.test.size() == 3);
  CHECK(speech_in_folder(dir / "plain").test == files.test);
  std::filesystem::create_directory(dir / "empty");
  CHECK(contains(error_of([&] { speech_in_folder(dir / "empty"); }), "holds no .wav or .sph file to train on"));
  CHECK(contains(error_of([&] { speech_in_folder(dir / "nowhere"); }), "does not exist"));
  for (const char* name : {"a", "b"}) write_sound(fmt::format("{}/few/{}.wav", dir.path, name), {0.1});
  CHECK(contains(error_of([&] { speech_in_folder(dir / "few"); }),
                 "holds 2 recordings, .wav or .sph, and 3 or more are"));
  CHECK(contains(error_of([&] { speech_in_folder(dir / "plain/readme.txt"); }), "is no folder"));
  CHECK(contains(error_of([&] { audio_files(dir / "plain/readme.txt"); }), "cannot be read: Not a directory"));

  const std::string root = dir / "timit";
  for (const std::string file :
       {"TRAIN/DR1/FCJF0/SA1.WAV", "TRAIN/DR1/FCJF0/SI648.WAV", "TRAIN/DR2/MSAT0/SX86.WAV", "TEST/DR1/FAKS0/SA2.WAV",
        "TEST/DR1/FAKS0/SI1573.WAV", "TEST/DR1/MDAB0/SX139.WAV", "TEST/DR1/MSJS1/SX9.WAV"})
    write_sound(root + "/" + file, {0.1});
  files = timit(root, false);
  CHECK(names(files.train) == std::vector<std::string>{"SI648.WAV", "SX86.WAV"});
  CHECK(names(files.valid) == std::vector<std::string>{"SI1573.WAV"});
  CHECK(names(files.test) == std::vector<std::string>{"SX139.WAV"});
  CHECK(names(timit(root, true).train) == std::vector<std::string>{"SI648.WAV"});
  CHECK(contains(error_of([&] { timit(dir / "plain", false); }), "[timit] train: not found in"));

  // drawn: two parts of the one folder, one of the other, and no sentence twice
  const SpeechFiles drawn = timit_drawn(root, false, 1, 1, 2);
  std::vector<std::string> both = drawn.train;
  both.insert(both.end(), drawn.valid.begin(), drawn.valid.end());
  std::sort(both.begin(), both.end());
  CHECK(names(both) == std::vector<std::string>{"SI648.WAV", "SX86.WAV"});
  CHECK(drawn.train.size() == 1);
  CHECK(drawn.test.size() == 2);
  CHECK(drawn.test[0] != drawn.test[1]);
  for (const std::string& file : drawn.test) CHECK(contains(file, "/TEST/"));
  CHECK(timit_drawn(root, false, 1, 1, 2).test == drawn.test);
  CHECK(contains(error_of([&] { timit_drawn(root, false, 2, 1, 1); }),
                 "holds 2 of the 3 sentences that are drawn from it"));
  CHECK(contains(error_of([&] { timit_drawn(root, true, 1, 1, 1); }),
                 "holds 1 of the 2 sentences that are drawn from it"));
}

TEST_CASE("speech: the next frame as target, silence behind the end; both means, the baseline") {
  const Data data;
  const Speech task = data.task();
  CHECK(task.parts().train == 4);
  const Batch batch = task.batch(1, {0, 3});
  const std::int64_t shorter = (6000 + 127) / 128 + 3, longer = (6300 + 127) / 128 + 3;
  REQUIRE(batch.x.shape() == Shape{longer, 2, 129});
  const Tensor f = features(spectra(tone(6000, 200)));
  const Tensor x = reshape(slice(cast(batch.x, DType::f64), 1, 0, 1), {longer, 129});
  const Tensor y = reshape(slice(cast(batch.y, DType::f64), 1, 0, 1), {longer, 129});
  CHECK(difference(slice(x, 0, 0, shorter), f) < 1e-6);
  CHECK(difference(slice(y, 0, 0, shorter - 1), slice(f, 0, 1, shorter)) < 1e-6);
  CHECK(difference(slice(y, 0, shorter - 1, longer), Tensor::full({longer - shorter + 1, 129}, -50, DType::f64)) == 0);
  CHECK(sum(batch.weight).item() == static_cast<double>(shorter + longer));

  // an error of 2 dB in the first bin of all frames, and anything behind the end
  std::vector<double> off(static_cast<std::size_t>(longer * 2 * 129), 0);
  for (std::size_t i = 0; i < off.size(); i += 129) off[i] = 2;
  const auto end = static_cast<std::size_t>(shorter * 2 * 129);
  for (std::size_t k = end; k < end + 129; ++k) off[k] = 1000;
  const Tensor said = cast(batch.y, DType::f64) + Tensor::from<double>(off, {longer, 2, 129});
  CHECK(task.loss(said, batch).item() == doctest::Approx(4.0 / 129));
  CHECK(task.scale(batch) == 1);
  SpeechOptions o;
  o.mean = "steps";
  CHECK(data.task(o).scale(batch) ==
        doctest::Approx(static_cast<double>(shorter + longer) / static_cast<double>(2 * longer)));

  const Batch test = task.batch(1, {6, 7});
  auto scores = task.scores(cast(test.y, DType::f64), test);
  REQUIRE(scores.size() == 3);
  CHECK(scores[0].mean() == 0);
  CHECK(scores[1].mean() == 35);
  CHECK(scores[2].mean() == doctest::Approx(1));
  CHECK(scores[2].count == 2);
  scores = task.scores(0.5 * cast(test.y, DType::f64) - 20, test);
  CHECK(scores[1].mean() < 20);
  CHECK(scores[2].mean() < 1);
}

TEST_CASE("speech: PESQ by a program of the user's; what it says when there is none") {
  const TempDir dir;
  const auto program = [&](const std::string& body) {
    write_atomically(dir / "pesq", "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(dir / "pesq", std::filesystem::perms::owner_all);
    return dir / "pesq";
  };
  const Signal x = tone(400, 300), y = tone(400, 500);
  const std::string says = "echo 'P.862 Prediction (Raw MOS, MOS-LQO):  = 2.237\t1.844'";
  CHECK(pesq(program("[ \"$1\" = +8000 ] && [ $(wc -c <\"$2\") = 844 ] && [ -s \"$3\" ] && " + says), x, y, 8000) ==
        2.237);
  CHECK(contains(error_of([&] { pesq(program("echo nothing"), x, y, 8000); }), "says no number"));
  CHECK(contains(error_of([&] { pesq(program("echo x = y"), x, y, 8000); }), "says no number"));
  CHECK(contains(error_of([&] { pesq(program("echo oh no >&2; exit 3"), x, y, 8000); }), "pesq failed: oh no"));
  CHECK(contains(error_of([&] { pesq(program("exit 3"), x, y, 8000); }), "pesq failed with exit status 3"));
  CHECK(contains(error_of([&] { pesq(dir / "none", x, y, 8000); }), "none is not installed"));
  const Data data;
  SpeechOptions o;
  o.pesq = program(says);
  const Speech task = data.task(o);
  const Batch test = task.batch(1, {6, 7});
  const auto scores = task.scores(cast(test.y, DType::f64), test);
  REQUIRE(scores.size() == 4);
  CHECK(scores[3].name == "pesq");
  CHECK(scores[3].mean() == 2.237);
  o.pesq = program("exit 1");
  const int before = warnings("speech");
  CHECK(data.task(o).scores(cast(test.y, DType::f64), test)[3].count == 0);
  CHECK(warnings("speech") == before + 1);  // two recordings, one warning
  write_atomically(dir / "text", says);
  for (const std::string& no_program : {dir / "none", dir / "text", dir.path, std::string("no-such-program")}) {
    o.pesq = no_program;
    CHECK(contains(error_of([&] { data.task(o); }), "pesq: a program that can be run is expected, got " + no_program));
  }
  o.pesq = "true";  // in a folder of PATH
  CHECK(error_of([&] { data.task(o); }).empty());
}

TEST_CASE("speech: a score that no recording has is none, with the reason") {
  const TempDir dir;
  for (const char* part : {"train", "valid"}) write_sound(dir / "short/" + part + "/0.wav", tone(2000, 300));
  write_sound(dir / "short/test/0.wav", Signal(2000, 0));
  const std::string out = dir / "run";
  const Result r = run("speech",
                       {"--folder", dir / "short", "--hidden", "4", "--batch", "1", "--steps", "2", "--threads", "1",
                        "--no-report", "--pesq", "false", "--out", out},
                       dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK_MESSAGE(contains(r.out, ", segsnr_db none, stoi none, pesq none\n"), r.out);
  CHECK(contains(r.err, "segsnr_db has no value: no recording of the test set has 10 ms that are not silent\n"));
  CHECK(contains(r.err, "stoi has no value: no recording of the test set has 0.4 s that are not silent\n"));
  CHECK(contains(r.err, "pesq has no value: the program of --pesq gave none\n"));
  CHECK(contains(r.err, "0.wav: [pesq] false failed with exit status 1; recordings without a score do not count\n"));
  CHECK(nlohmann::json::parse(read_file(out + "/run.json"))["test"]["stoi"].is_null());
}

TEST_CASE("speech: a typed option that changes nothing beside the others is noted") {
  const Data data;
  const auto note = [&](std::vector<std::string> words) {
    for (const std::string& word : std::vector<std::string>{"--hidden", "4", "--dry-run"}) words.push_back(word);
    const Result r = run("speech", words, data.dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  const std::string folder = data.dir / "speech", timit = " has no effect: it is for --corpus timit\n";
  CHECK(note({"--folder", folder, "--sa-filter", "path"}) == "note: --sa-filter" + timit);
  CHECK(note({"--folder", folder, "--split", "goru"}) == "note: --split" + timit);
  CHECK(note({"--folder", folder, "--data", data.dir.path}) == "note: --data has no effect: --folder is given\n");
  CHECK(note({"--folder", folder, "--pesq", "true", "--waveforms", "off"}) ==
        "note: --pesq has no effect: --waveforms is off\n");
  CHECK(note({"--data", data.dir.path, "--pesq", "true", "--roles", "exprnn"}).empty());
}

TEST_CASE("speech: twenty steps with three cells; exit codes") {
  const Data data;
  for (const std::string cell : {"srnn", "lstm", "enrnn"}) {
    CAPTURE(cell);
    const std::string out = data.dir / cell;
    const Result r = run("speech",
                         {"--data", data.dir.path, "--cell", cell, "--hidden", "8", "--batch", "2", "--steps", "20",
                          "--threads", "1", "--quiet", "--out", out},
                         data.dir.path, {"PATH=" + data.dir.path});
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    const auto test = nlohmann::json::parse(read_file(out + "/run.json"))["test"];
    for (const char* key : {"loss", "mse_over_steps", "segsnr_db", "stoi"}) CHECK(test[key].is_number());
  }
  std::filesystem::rename(data.dir / "speech", data.dir / "moved");
  CHECK(run("speech", {"--resume", data.dir / "lstm", "--steps", "21"}, data.dir.path).code == 1);
  const Result moved =
      run("speech", {"--resume", data.dir / "lstm", "--steps", "21", "--folder", data.dir / "moved"}, data.dir.path);
  CAPTURE(moved.err);
  CHECK(moved.code == 0);
  write_sound(data.dir / "moved/train/0.wav", tone(4000, 440), 8000, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2);
  const Result stereo = run("speech", {"--folder", data.dir / "moved"}, data.dir.path);
  CHECK(stereo.code == 1);
  CHECK_MESSAGE(contains(stereo.err, "has 2 channels, 1 expected. Hint: --folder DIR has recordings with one channel"),
                stereo.err);
  CHECK(run("speech", {"--data", data.dir / "no"}, data.dir.path).code == 1);
  CHECK(contains(run("speech", {"--corpus", "timit", "--data", data.dir.path}, data.dir.path).err, "[timit] train"));
  CHECK(contains(run("speech", {"--help"}, data.dir.path).out, "--sa-filter"));
  const std::string corpus = data.dir / "timit";
  for (const std::string part : {"train", "test"}) write_sound(corpus + "/" + part + "/SX1.WAV", {0.1});
  CHECK(contains(run("speech", {"--corpus", "timit", "--split", "goru", "--data", data.dir.path}, data.dir.path).err,
                 "timit/train: holds 1 of the 3000 sentences that are drawn from it"));
}
