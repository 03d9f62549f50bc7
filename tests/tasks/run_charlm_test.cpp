// charlm: text and what is none, the Penn Treebank's two forms, tracks and windows, bits for a character, samples.
#define main charlm_main
#include "tasks/charlm.cpp"
#undef main

#include <nlohmann/json.hpp>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

Setup setup(const std::string& data, std::int64_t batch) {
  return {.data = data, .examples = {.batch = batch, .valid_size = 0}};
}

/// A file of 400 characters: a..t over and over, 360 of them to train on.
std::string alphabet_file(const TempDir& dir) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i % 20);
  write_atomically(dir / "text.txt", text);
  return dir / "text.txt";
}

CharModel alphabet(const TempDir& dir, std::int64_t batch, std::int64_t unroll) {
  CharOptions o;
  o.text = alphabet_file(dir), o.unroll = unroll;
  return CharModel(o, setup("", batch));
}

void write_ptb(const TempDir& dir, const std::string& prefix, const std::string& text) {
  std::filesystem::create_directories(dir / "ptb");
  for (const char* part : {"train", "valid", "test"})
    write_atomically(fmt::format("{}/ptb/{}{}.txt", dir.path, prefix, part), text);
}

}  // namespace

TEST_CASE("text: UTF-8 there and back; the place of what is not UTF-8") {
  const std::string all = "a\n\u00e9\u20ac\U0001F600\U0010FFFF\u0080\u0800\U00010000";
  const std::u32string text = characters("s", "n", all);
  CHECK(text == U"a\n\u00e9\u20ac\U0001F600\U0010FFFF\u0080\u0800\U00010000");
  CHECK(utf8(text) == all);
  struct Case {
    std::string bytes;
    int at;
  };
  for (const Case& c :
       {Case{"ab\xff", 2}, Case{"\x80", 0}, Case{"x\xc3", 1}, Case{"\xe2\x82", 0}, Case{"\xc0\xaf", 0},
        Case{"\xed\xa0\x80", 0}, Case{"\xf4\x90\x80\x80", 0}, Case{"\xe0\x80\x80", 0}, Case{"ok\xe9 then", 2}}) {
    CAPTURE(c.at);
    const std::string error = error_of([&] { characters("ptb", "f.txt", c.bytes); });
    CHECK(contains(error, fmt::format("[ptb] f.txt: is not UTF-8 text: byte {} is {:#04x}", c.at,
                                      static_cast<unsigned char>(c.bytes[static_cast<std::size_t>(c.at)]))));
  }
}

TEST_CASE("ptb: lines as they are, stripped, or as fields of single characters") {
  const TempDir dir;
  write_ptb(dir, "ptb.char.", "a b _ c\n_ <\n");
  CHECK(read_ptb(dir.path, false).train == U"ab c\n <\n");
  CHECK(read_ptb(dir.path, true).valid == U"ab c\n<\n");
  write_ptb(dir, "ptb.", " ab c \n\n d\n");
  CHECK(read_ptb(dir.path, false).test == U" ab c \n\n d\n");
  CHECK(read_ptb(dir.path, true).test == U"ab c\n\nd\n");
  std::filesystem::remove(dir / "ptb/ptb.test.txt");
  CHECK(contains(error_of([&] { read_ptb(dir.path, true); }), "[ptb] ptb.test.txt: not found in "));
}

TEST_CASE("charlm: tracks of the text, windows in order, the next character as target") {
  const TempDir dir;
  const CharModel task = alphabet(dir, 3, 50);  // 120 characters a track: windows of 50, 50 and 19
  CHECK(task.shape().vocabulary == 20);
  CHECK(task.baseline() == doctest::Approx(std::log(20)));
  CHECK(task.parts().train == 9);
  CHECK(task.parts().valid == 3);  // 20 characters: 6 a track
  CHECK(task.parts().test == 3);
  CHECK(task.parts().ordered);
  std::int64_t from = 0;
  for (std::uint64_t w = 0; w < 3; ++w) {
    const std::vector<std::uint64_t> place{3 * w, 3 * w + 1, 3 * w + 2};
    CHECK(task.continues(place) == (w > 0));
    const Batch batch = task.batch(1, place);
    const std::int64_t T = w < 2 ? 50 : 19;
    REQUIRE(batch.x.shape() == Shape{T, 3});
    const auto x = batch.x.values<std::int32_t>(), y = batch.y.values<std::int32_t>();
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t b = 0; b < 3; ++b) {
        const auto i = static_cast<std::size_t>(t * 3 + b);
        CHECK(x[i] == (120 * b + from + t) % 20);
        CHECK(y[i] == (x[i] + 1) % 20);
      }
    }
    from += T;
  }
  CHECK_FALSE(task.continues({9, 10, 11}));  // a part starts from zero
  CHECK_FALSE(task.continues({12, 13, 14}));
  CHECK(task.batch(1, {12, 13, 14}).x.shape() == Shape{5, 3});

  const CharModel even = alphabet(dir, 3, 17);  // 119 characters to predict: seven whole windows, and no empty one
  CHECK(even.parts().train == 21);
  CHECK(even.batch(1, {18, 19, 20}).x.shape() == Shape{17, 3});
  CHECK_FALSE(even.continues({21, 22, 23}));
  const CharModel odd = alphabet(dir, 3, 59);  // two windows of 59 and one of 1
  CHECK(odd.parts().train == 9);
  CHECK(odd.batch(1, {6, 7, 8}).x.shape() == Shape{1, 3});

  const Batch batch = task.batch(1, {0, 1, 2});
  const Tensor uniform = Tensor::zeros({50, 3, 20}, DType::f64);
  CHECK(task.scores(uniform, batch)[0].mean() == doctest::Approx(std::log2(20)));
  CHECK(task.accuracy(one_hot(batch.y, 20), batch) == 1);
}

TEST_CASE("vocabulary.json: any character there and back, and what is no such file") {
  const TempDir dir;
  const std::vector<std::string> five{"\n", "\"", "\\", "\xc3\xa9", "\xf0\x9f\x98\x80"};
  save_vocabulary(dir / "vocabulary.json", {{"characters", five}});
  CHECK(vocabulary_of_run(dir.path, 5) == five);
  for (const char* text : {"", "[]", "{}", R"({"characters": [1]})"}) {
    write_atomically(dir / "vocabulary.json", text);
    CHECK(contains(error_of([&] { vocabulary_of_run(dir.path, 1); }), "vocabulary.json: is damaged"));
  }
}

TEST_CASE("charlm: too short a text, no text, windows that are cut") {
  const TempDir dir;
  CHECK(contains(
      error_of([&] { alphabet(dir, 11, 50); }),
      "20 characters to validate on are too few for 11 tracks (--batch). Hint: a longer text, or a smaller --batch"));
  CharOptions o;
  o.text = dir / "nothing.txt";
  CHECK(contains(error_of([&] { CharModel(o, setup("", 2)); }),
                 "nothing.txt: is not there, or is no file. Hint: --text FILE"));
  o.text = dir.path;
  CHECK(contains(error_of([&] { CharModel(o, setup("", 2)); }), "is not there, or is no file"));
  write_atomically(dir / "bad.txt", "abc\xfe");
  o.text = dir / "bad.txt";
  CHECK(contains(error_of([&] { CharModel(o, setup("", 2)); }), "byte 3 is 0xfe. Hint: save it as UTF-8"));
  o.text = alphabet_file(dir);
  Setup part = setup("", 2);
  part.examples.examples = 3;
  CHECK(contains(error_of([&] { CharModel(o, part); }), "examples: windows are taken from all tracks at once"));
}

TEST_CASE("charlm: learns the alphabet, writes it, and so does the run when it is resumed") {
  const TempDir dir;
  const std::string out = dir / "run";
  const std::vector<std::string> common{"--text",    alphabet_file(dir),
                                        "--cell",    "gru",
                                        "--hidden",  "16",
                                        "--batch",   "4",
                                        "--unroll",  "10",
                                        "--lr",      "0.01",
                                        "--steps",   "200",
                                        "--threads", "1",
                                        "--quiet",   "--out",
                                        out,         "--sample",
                                        "45",        "--temperature",
                                        "0"};
  const Result r = run("charlm", common, dir.path, {"PATH=" + dir.path});
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const std::string text = read_file(out + "/sample.txt");
  REQUIRE(text.size() == 45);
  for (std::size_t i = 1; i < 45; ++i) CHECK(text[i] == 'a' + (text[i - 1] - 'a' + 1) % 20);
  CHECK(contains(r.out, text));
  const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
  CHECK(record["test"]["bpc"].get<double>() == doctest::Approx(record["test"]["loss"].get<double>() / std::log(2)));
  CHECK(record["test"]["accuracy"] > 0.9);

  const auto again = [&](const std::string& temperature, const std::string& seed) {
    const Result s =
        run("charlm", {"--resume", out, "--sample", "60", "--temperature", temperature, "--sample-seed", seed},
            dir.path, {"PATH=" + dir.path});
    CHECK(s.code == 0);
    return read_file(out + "/sample.txt");
  };
  CHECK(again("0", "1").substr(0, 45) == text);
  const std::string wild = again("50", "1");
  CHECK(wild.size() == 60);
  CHECK(wild != again("50", "2"));
  CHECK(wild == again("50", "1"));
  std::string sorted = wild;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::unique(sorted.begin(), sorted.end()) - sorted.begin() > 12);  // 60 of 20 letters: 19 on average
}

TEST_CASE("charlm: a resumed run must have the text that it began with") {
  const TempDir dir;
  const std::string out = dir / "run", text = alphabet_file(dir), letters = read_file(text);
  REQUIRE(run("charlm",
              {"--text", text, "--cell", "gru", "--hidden", "4", "--batch", "2", "--unroll", "10", "--steps", "20",
               "--threads", "1", "--quiet", "--out", out},
              dir.path)
              .code == 0);
  const auto resume = [&](const std::string& steps) {
    return run("charlm", {"--resume", out, "--steps", steps, "--quiet"}, dir.path);
  };
  CHECK(vocabulary_of_run(out, 20) == std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
                                                               "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"});
  CHECK(contains(error_of([&] { vocabulary_of_run(out, 21); }), "has 20 characters, the model 21 symbols"));
  std::filesystem::remove(out + "/vocabulary.json");  // as in folders of older versions
  CHECK(vocabulary_of_run(out, 20).empty());
  CHECK(resume("22").code == 0);
  CHECK(vocabulary_of_run(out, 20).size() == 20);
  write_atomically(text, std::string(letters.rbegin(), letters.rend()));  // the same letters, as many of each
  const Result other = resume("24");
  CHECK(other.code == 1);
  CHECK(contains(other.err, "charlm: " + out + ": the data have changed since the run began. Hint: start a new run."));
  CHECK(contains(read_file(out + "/config.toml"), "steps = 22"));
  write_atomically(text, letters);
  const std::string checkpoint = read_file(out + "/checkpoint.safetensors");
  write_atomically(out + "/checkpoint.safetensors", "damaged");
  CHECK(resume("24").code == 1);
  CHECK(contains(read_file(out + "/config.toml"), "steps = 22"));
  write_atomically(out + "/checkpoint.safetensors", checkpoint);
  std::filesystem::rename(text, dir / "moved.txt");
  CHECK(contains(resume("24").err, "text.txt: is not there"));
  CHECK(run("charlm", {"--resume", out, "--text", dir / "moved.txt", "--steps", "23", "--quiet"}, dir.path).code == 0);
  write_atomically(text, std::string(letters.rbegin(), letters.rend()));
  CHECK(contains(run("charlm", {"--resume", out, "--text", text, "--steps", "23"}, dir.path).err, "data have changed"));
  CHECK(contains(read_file(out + "/config.toml"), "moved.txt"));
  std::filesystem::rename(dir / "moved.txt", text);
  CHECK(run("charlm", {"--resume", out, "--text", text, "--quiet"}, dir.path).code == 0);
  CHECK(resume("24").code == 0);
  const std::string kept = read_file(out + "/data.json");
  write_atomically(out + "/data.json", "{}");
  CHECK(contains(resume("26").err, "data.json: is damaged. Hint: without this file the run can be resumed, too"));
  std::filesystem::remove(out + "/data.json");  // as in folders of older versions
  CHECK(resume("26").code == 0);
  CHECK(read_file(out + "/data.json") == kept);
}

TEST_CASE("charlm: twenty steps with three cells; exit codes") {
  const TempDir dir;
  write_ptb(dir, "ptb.", std::string(40, 'a') + " one two three four\n");
  for (const std::string cell : {"srnn", "lstm", "nru"}) {
    const Result r = run("charlm",
                         {"--data", dir.path, "--cell", cell, "--hidden", "8", "--batch", "2", "--unroll", "7",
                          "--steps", "20", "--threads", "1", "--quiet", "--out", dir / cell, "--input", "one-hot"},
                         dir.path, {"PATH=" + dir.path});
    CAPTURE(r.err);
    CHECK(r.code == 0);
    CHECK(contains(r.out, "bpc "));
  }
  CHECK(run("charlm", {"--data", dir / "no"}, dir.path).code == 1);
  CHECK(run("charlm", {"--temperature", "-1"}, dir.path).code == 2);
  CHECK(contains(run("charlm", {"--help"}, dir.path).out, "--sample-seed"));
}
