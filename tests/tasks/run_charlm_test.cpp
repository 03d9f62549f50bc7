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

TEST_CASE("charlm: a model with a layer that has no state samples from the last --unroll characters") {
  const TempDir dir;
  const CharModel task = alphabet(dir, 3, 7);
  for (const std::vector<LayerOptions>& stack :
       {std::vector<LayerOptions>{{"r_transformer", 8}}, {{"lstm", 8}, {"r_transformer", 8}}}) {
    const Model model(task.shape(), {.stack = stack}, Init(3));
    REQUIRE_FALSE(model.recurrent());
    CharOptions o;
    o.sample = 30, o.temperature = 0;
    const std::string text = task.sample(model, o);
    REQUIRE(text.size() == 30);
    std::vector<std::int32_t> all{0};  // no newline in this alphabet: from its first letter on
    for (const char c : text) {
      const std::vector<std::int32_t> last(all.end() - std::min<std::ptrdiff_t>(7, std::ssize(all)), all.end());
      const auto logits = model(Tensor::from<std::int32_t>(last, {std::ssize(last), 1})).values<float>();
      const auto likely = std::max_element(logits.end() - 20, logits.end()) - (logits.end() - 20);
      CHECK(c - 'a' == likely);
      all.push_back(static_cast<std::int32_t>(c - 'a'));
    }
  }
  std::string pairs;
  for (int i = 0; i < 500; ++i) pairs += "aabb";
  write_atomically(dir / "pairs.txt", pairs);
  const Result r = run("charlm", {"--text",        dir / "pairs.txt",
                                  "--cell",        "r_transformer",
                                  "--hidden",      "16",
                                  "--batch",       "4",
                                  "--unroll",      "20",
                                  "--steps",       "120",
                                  "--lr",          "1e-2",
                                  "--optimizer",   "adam",
                                  "--temperature", "0",
                                  "--quiet",       "--no-report",
                                  "--threads",     "1",
                                  "--sample",      "60",
                                  "--out",         dir / "run"},
                       dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const std::string end = read_file(dir / "run/sample.txt").substr(20);
  CHECK_MESSAGE(contains(pairs, end), end);
}

TEST_CASE("charlm: a typed option that changes nothing beside the others is noted") {
  const TempDir dir;
  const std::string text = alphabet_file(dir), none = "--sample is 0\n";
  const auto note = [&](std::vector<std::string> words) {
    for (const char* word : {"--text", text.c_str(), "--hidden", "4", "--batch", "2", "--dry-run"})
      words.emplace_back(word);
    const Result r = run("charlm", words, dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  CHECK(note({"--temperature", "0.5"}) == "note: --temperature has no effect: " + none);
  CHECK(note({"--sample-seed", "2"}) == "note: --sample-seed has no effect: " + none);
  CHECK(note({"--sample-seed", "2", "--sample", "5", "--temperature", "0"}) ==
        "note: --sample-seed has no effect: --temperature is 0\n");
  CHECK(note({"--lines", "strip"}) ==
        "note: --lines has no effect: it is for the Penn Treebank, and --text is given\n");
  CHECK(note({"--data", dir.path}) == "note: --data has no effect: --text is given\n");
  CHECK(note({"--sample", "5", "--temperature", "0.5", "--sample-seed", "2"}).empty());
  CHECK(contains(note({"--shuffle", "off"}), "examples continue each other and are never shuffled"));
}

TEST_CASE("charlm: samples with the best parameters, tested or not, resumed or not") {
  const TempDir dir;
  std::string text;  // trains on pairs, validates on others: the best validation is an early one
  for (int i = 0; i < 900; ++i) text += "ab";
  for (int i = 0; i < 100; ++i) text += "ba"[i / 2 % 2];
  for (int i = 0; i < 100; ++i) text += "ba"[i / 2 % 2];
  write_atomically(dir / "text.txt", text);
  const auto sample = [&](const std::string& out, std::vector<std::string> more) {
    for (const std::string& word : std::vector<std::string>{"--sample", "300", "--quiet", "--no-report"})
      more.push_back(word);
    const Result r = run("charlm", more, dir.path, {"PATH=" + dir.path});
    CAPTURE(r.err);
    CHECK(r.code == 0);
    return read_file(out + "/sample.txt");
  };
  const auto trained = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "--text", dir / "text.txt", "--hidden", "8",    "--batch", "4",         "--steps", "60",    "--unroll",
        "20",     "--valid-every",  "10",       "--lr", "1e-2",    "--threads", "1",       "--out", dir / name};
    words.insert(words.end(), more.begin(), more.end());
    return sample(dir / name, words);
  };
  const std::string tested = trained("tested", {}), untested = trained("untested", {"--no-test"});
  CHECK(untested == tested);
  const auto record = nlohmann::json::parse(read_file(dir / "untested/run.json"));
  CHECK(record["best"]["step"] < 60);
  CHECK_FALSE(record.contains("test"));
  CHECK(read_file(dir / "untested/checkpoint.safetensors") != read_file(dir / "untested/best.safetensors"));
  CHECK(sample(dir / "untested", {"--resume", dir / "untested"}) == tested);
}

TEST_CASE("charlm: --init-from notes characters that are others, which parameters do not know") {
  const TempDir dir;
  write_atomically(dir / "xyz.txt", std::string(200, 'x') + std::string(200, 'y') + "\n");
  write_atomically(dir / "abc.txt", std::string(200, 'a') + std::string(200, 'b') + "\n");
  const std::string first = dir / "first";
  const auto go = [&](const std::string& text, const std::vector<std::string>& more) {
    std::vector<std::string> words{"--text", dir / text, "--hidden", "4",         "--batch",
                                   "2",      "--steps",  "2",        "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Result r = run("charlm", words, dir.path);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    return r.err;
  };
  go("abc.txt", {"--quiet", "--no-report", "--out", first});
  CHECK(go("abc.txt", {"--dry-run", "--init-from", first}).empty());
  CHECK(go("xyz.txt", {"--dry-run", "--init-from", first}) ==
        "note: --init-from " + first +
            ": character 2 was \"a\" and is \"x\"; parameters go by place, not by character\n");
  CHECK(contains(go("xyz.txt", {"--dry-run", "--init-from", first + "/best.safetensors"}), "character 2 was \"a\""));
  std::filesystem::remove(first + "/vocabulary.json");  // as in folders of older versions
  CHECK(go("xyz.txt", {"--dry-run", "--init-from", first}).empty());
}

TEST_CASE("charlm: a byte order mark at the start is no character, but of runs that began with it") {
  const TempDir dir;
  const std::string mark = "\xef\xbb\xbf", file = dir / "t.txt", out = dir / "run", text(800, 'a');
  const auto begun = [&](const std::string& start) {
    write_atomically(file, start + text + "b\n");
    std::filesystem::remove_all(out);
    REQUIRE(run("charlm", {"--text", file, "--hidden", "4", "--batch", "2", "--steps", "2", "--quiet", "--out", out},
                dir.path)
                .code == 0);
    return read_file(out + "/vocabulary.json");
  };
  CHECK(begun(mark) == begun(""));
  CHECK(contains(begun(mark + mark), mark));
  // a run of an older version, which took one mark for a character
  write_atomically(file, mark + text + "b\n");
  std::filesystem::remove(out + "/data.json");
  CHECK(run("charlm", {"--resume", out, "--steps", "4", "--quiet"}, dir.path).code == 0);
  std::filesystem::remove(out + "/vocabulary.json");
  CHECK(run("charlm", {"--resume", out, "--steps", "6", "--quiet"}, dir.path).code == 0);
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
  write_ptb(dir, "ptb.", "abcdefgh\n");
  CHECK(contains(error_of([&] { CharModel({}, setup(dir.path, 5)); }),
                 "9 characters to train on are too few for 5 tracks (--batch). Hint: a smaller --batch"));
  write_ptb(dir, "ptb.", "");
  CHECK(contains(error_of([&] { CharModel({}, setup(dir.path, 5)); }), "See docs/data.md"));
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
  CHECK(contains(resume("26").err, "data.json: is damaged. Hint: delete this file; the run can be resumed without it"));
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
